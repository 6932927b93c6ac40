"""Launches that follow each other at once: results, counters and faults are as if each ran alone."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.driver.memory.regions import Region
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, PRESETS
from daedal.hw.isa.address_mapping import PLAIN
from daedal.hw.isa.launch import LaunchFlags, LaunchWord
from daedal.hw.isa.program import unpack
from tests.compiler.layers.compiler_support import same_bits, wild_table
from tests.driver.test_driver_targets import FOR_EVER, copy_program
from tests.system.test_rtl_configs import CONFIGS

RTL = (pytest.mark.rtl, pytest.mark.slow)
STALLS, FAR = "ideal:stall=0.3,seed=5", "ideal:latency=300,stall=0.05,seed=2"
DRAM = "litedram-ddr3-x16"
SIMULATED = [("edge", "ideal"), ("edge", STALLS), ("ddr3", DRAM), ("minimum", "ideal:latency=3"), ("small", FAR)]
FURTHER = [("uneven", FAR), ("ddr3", "ideal"), ("broad", "litedram-ddr3-x64"), ("broad", "litedram-ddr4-x64")]
OPENED = [
    pytest.param(("emulator", "edge", "ideal"), id="emulator"),
    *(pytest.param(("verilator", name, memory), id=f"{name}-{memory}", marks=RTL) for name, memory in SIMULATED),
    *(
        pytest.param(("verilator", name, memory), id=f"{name}-{memory}", marks=(*RTL, pytest.mark.full))
        for name, memory in FURTHER
    ),
]
COUNTED = ("rows", "lookups", "bytes_written", "bounds_warnings")


@pytest.fixture(params=OPENED)
def dev(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    target, name, memory = request.param
    with daedal.Device.open(target, CONFIGS[name], memory, memory_bytes=1 << 24) as device:
        yield device


@pytest.fixture
def emulator(dev: daedal.Device) -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", dev.config, memory_bytes=1 << 24) as device:
        yield device


def bags(rng: np.random.Generator, device: daedal.Device, width: int, count: int) -> tuple[nn.Module, tuple[Any, ...]]:
    """A layer and inputs for it, with bags of 0 to 11 indices."""
    table = nn.EmbeddingBag.from_pretrained(wild_table(50, width, rng), mode=str(rng.choice(["sum", "max"])))
    lengths = rng.integers(0, 12, count)
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)[:-1]]))
    return table, (torch.from_numpy(rng.integers(0, 50, int(lengths.sum()))), offsets)


def stats(future: Any) -> list[int]:
    return [future.stats[name] for name in COUNTED]


def test_many_launches_give_what_each_gives_alone(dev, emulator, rng):
    """More than the machine can queue, of different lengths, so that each one's end meets the next one's beginning."""
    jobs = []
    for number in range(3 * LAUNCH_QUEUE_DEPTH):
        width, count = int(rng.choice([1, 3, 16, 40])), int(rng.choice([0, 1, 2, 30]))
        module, inputs = bags(rng, dev, width, count)
        executables = [daedal.compile(module, inputs, device=device) for device in (dev, emulator)]
        if number % 2:
            jobs.append((*executables, inputs, module(*inputs)))
        else:  # the same again
            jobs += [(*executables, inputs, module(*inputs))] * 2
    futures = [executable.submit(*inputs) for executable, _, inputs, _ in jobs]
    for future, (_, alone, inputs, expected) in zip(futures, jobs, strict=True):
        assert same_bits(future.result(), expected)
        assert same_bits(alone(*inputs), expected)
        assert stats(future) == stats(alone)
    assert all(future.done() for future in futures)
    free = dev.free_bytes
    jobs[0][0].submit(*jobs[0][2]).result()
    assert dev.free_bytes == free


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_fault_is_that_launch_s_alone(dev, rng, place):
    module, (indices, offsets) = bags(rng, dev, 16, 20)
    executable = daedal.compile(module, (indices, offsets), device=dev)
    bad, expected = indices.clone(), module(indices, offsets)
    bad[-1] = 50
    futures = [executable.submit(bad if number == place else indices, offsets) for number in range(LAUNCH_QUEUE_DEPTH)]
    for future in futures[:place]:
        assert same_bits(future.result(), expected)
    with pytest.raises(IndexError, match="index 50"):
        futures[place].result()
    for future in futures[place + 1 :]:
        assert same_bits(future.result(), expected)
    again = [executable.submit(indices, offsets) for _ in range(3)]
    assert all(same_bits(future.result(), expected) for future in again)


@pytest.mark.parametrize("place", [0, 1])
def test_a_fault_of_the_next_launch_hides_none_of_this_one(dev, copier, place):
    """The loader refuses the next one while this one still reads rows, of which the last lie behind memory."""
    rows, size = 600, 64
    illegal = bytearray(dev.memory.read(copier, len(copy_program())))
    illegal[5 * 8 : 6 * 8] = b"\xff" * 8
    with dev.arena() as arena:
        bad = arena.upload(np.frombuffer(illegal, np.uint8), mapping=PLAIN)
        origin, target = dev.target.memory_bytes - (rows - 5) * size, arena.reserve(rows * size)
        before = [dev.submit(copier, [origin, target, 10, size, size]) for _ in range(place)]
        late = dev.submit(copier, [origin, target, rows, size, size])
        early = dev.submit(bad, [0, 0, 1, size, size])
        assert all(launch.result().stats.rows == 10 for launch in before)
        assert isinstance(late.exception(), daedal.MemoryFault)
        assert isinstance(early.exception(), daedal.LaunchCancelled)


def test_warnings_are_of_their_own_launch(dev, rng):
    module, (indices, offsets) = bags(rng, dev, 16, 20)
    executable = daedal.compile(module, (indices, offsets), device=dev, bounds="warn")
    inputs = [indices.clone() for _ in range(4)]
    inputs[1][3], inputs[3][-1] = 77, -5
    futures = [executable.submit(each, offsets) for each in inputs]
    for number, (future, text) in enumerate(zip(futures, (None, "77", None, "-5"), strict=True)):
        if text is None:
            future.result()
        else:
            with pytest.warns(daedal.BoundsWarning, match=text):
                future.result()
        tiles = -(-16 // dev.config.vl_max)  # a row is looked up once for each
        assert future.stats.bounds_warnings == number % 2 * tiles


@pytest.fixture
def copier(dev: daedal.Device) -> int:
    body = daedal.disassemble(copy_program()).replace(f"{PRESETS['edge'].hash:#010x}", f"{dev.config.hash:#010x}")
    return dev.load_program(daedal.assemble(body))


def fence(device: daedal.Device, launch: Any) -> int:
    """The flag in the launch block that goes with a launch."""
    blocks = {record: block for block, record in device._launcher._slots}
    at = blocks[launch.record_address] + 8 * LaunchWord.FLAGS.value
    return int(unpack(LaunchFlags, int.from_bytes(device.target.mem_read(at, 8), "little"))["fence"])


def test_a_launch_reads_what_the_one_before_wrote(dev, copier, rng):
    source = rng.random((40, 16), np.float32)
    size = source.nbytes
    with dev.arena() as arena:
        places = [arena.upload(source), *(arena.reserve(size) for _ in range(6))]
        launches = [
            dev.submit(copier, [a, b, len(source), 64, 64], reads=[Region(a, size)], writes=[Region(b, size)])
            for a, b in pairwise(places)
        ]
        assert [fence(dev, launch) for launch in launches[-LAUNCH_QUEUE_DEPTH:]] == [1] * LAUNCH_QUEUE_DEPTH
        for launch in launches:
            assert launch.result().stats.rows == len(source)
        assert np.array_equal(arena.download(places[-1], source.shape), source)


def test_a_launch_that_reads_something_else_is_not_fenced(dev, copier, rng):
    source = rng.random((40, 16), np.float32)
    size = source.nbytes
    with dev.arena() as arena:
        origin, *places = [arena.upload(source), *(arena.reserve(size) for _ in range(3))]
        launches = [
            dev.submit(copier, [origin, b, len(source), 64, 64], reads=[Region(origin, size)], writes=[Region(b, size)])
            for b in places
        ]
        unknown = dev.submit(copier, [origin, places[0], len(source), 64, 64])
        assert [fence(dev, launch) for launch in (*launches, unknown)] == [0, 0, 0, 1]
        assert unknown.result().launch == unknown.number
        assert all(np.array_equal(arena.download(place, source.shape), source) for place in places)


def test_reset_in_the_middle(dev, copier, rng):
    module, inputs = bags(rng, dev, 16, 30)
    executable = daedal.compile(module, inputs, device=dev)
    first = [executable.submit(*inputs), dev.submit(copier, [16, 0, FOR_EVER, 16, 0]), executable.submit(*inputs)]
    assert same_bits(first[0].result(), module(*inputs))
    assert not first[1].done()
    with pytest.raises(TimeoutError):
        first[1].result(timeout=0.05)
    dev.reset()
    for future in first[1:]:
        with pytest.raises(daedal.LaunchCancelled, match="the device was reset"):
            future.result()
    assert same_bits(executable(*inputs), module(*inputs))
    assert same_bits(executable.submit(*inputs).result(), module(*inputs))


def test_a_table_that_changes_between_launches(dev, rng):
    module, inputs = bags(rng, dev, 16, 30)
    executable = daedal.compile(module, inputs, device=dev)
    before = module(*inputs).clone()
    first = executable.submit(*inputs)
    with torch.no_grad():
        module.weight.mul_(2)
    second = executable.submit(*inputs)
    assert same_bits(second.result(), module(*inputs))
    assert same_bits(first.result(), before)


class TwoOfThem(nn.Module):
    """PyTorch works on what the device gives, and the device on that."""

    def __init__(self, table: nn.EmbeddingBag) -> None:
        super().__init__()
        self.table = table

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        first = self.table(indices, offsets)
        rounded = (first.sum(1).abs().nan_to_num(0.0, 0.0, 0.0) % 50).long()
        return self.table(rounded, torch.arange(len(rounded))) + first


def test_pytorch_waits_for_what_it_needs(dev, rng):
    table, inputs = bags(rng, dev, 16, 20)
    module = TwoOfThem(nn.EmbeddingBag.from_pretrained(torch.rand(50, 16), mode=table.mode))
    executable = daedal.compile(module, inputs, device=dev)
    futures = [executable.submit(*inputs) for _ in range(2)]
    assert all(same_bits(future.result(), module(*inputs)) for future in futures)


def test_await(dev, rng):
    module, inputs = bags(rng, dev, 16, 20)
    executable = daedal.compile(module, inputs, device=dev)

    async def both() -> list[Any]:
        return await asyncio.gather(*(one(executable.submit(*inputs)) for _ in range(2)))

    async def one(future: Any) -> Any:
        return await future

    assert all(same_bits(result, module(*inputs)) for result in asyncio.run(both()))


INTERRUPTED = """
import sys
import numpy as np
import daedal
from daedal.driver.memory.regions import Region
from tests.driver.test_driver_targets import CONFIG, FOR_EVER, copy, copy_program

with daedal.Device.open(sys.argv[1], CONFIG, sys.argv[3], memory_bytes=1 << 24) as dev:
    source = np.arange(64, dtype=np.float32).reshape(4, 16)
    program = dev.load_program(copy_program())
    with dev.arena() as arena:
        origin, target = arena.upload(source), arena.reserve(source.nbytes)
        first = dev.submit(program, [origin, target, 4, 64, 64])
        endless = dev.submit(program, [16, 0, FOR_EVER, 16, 0])
        last = dev.submit(program, [origin, target, 4, 64, 64])
        print("ready", flush=True)
        try:
            endless.result() if sys.argv[2] == "result" else dev.launch(program, [16, 0, FOR_EVER, 16, 0])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        first.result()
        if sys.argv[2] == "result":
            dev.reset()
        for launch in (endless, last):
            assert isinstance(launch.exception(), daedal.LaunchCancelled), launch
    assert np.array_equal(copy(dev, source), source)
    print("usable", flush=True)
"""


@pytest.mark.parametrize("where", ["result", "launch"])
@pytest.mark.parametrize(
    ("target", "memory"), [("emulator", "ideal"), *(pytest.param("verilator", m, marks=RTL) for m in ("ideal", DRAM))]
)
def test_interrupt_from_the_keyboard_leaves_the_device_usable(target, memory, where, root):
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, target, where, memory], cwd=root, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=120)
    finally:
        child.kill()
    assert output.split() == ["interrupted", "usable"]
    assert child.returncode == 0
