"""What a fault takes along: launches behind it run again unless they need its output; damaged programs are mended."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal import f32, i64
from daedal.driver.launch.launch import Launch
from daedal.driver.memory.regions import Region
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH
from daedal.hw.isa.launch import BLOCK_REGION, Cause
from tests.driver.test_driver_targets import CONFIG, FOR_EVER, copy_program

RTL = (pytest.mark.rtl, pytest.mark.slow)
WIDTH = 64
"""Bytes of a row."""

B, D, N, P = daedal.dims("B D N P")


@daedal.kernel
def added(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]


@pytest.fixture(params=["emulator", pytest.param("verilator", marks=RTL)])
def dev(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open(request.param, CONFIG, memory_bytes=1 << 24) as device:
        yield device


class Copies:
    """Launches that copy rows from one numbered place to another; place 0 has the rows ``source``."""

    def __init__(self, device: daedal.Device, rng: np.random.Generator) -> None:
        self._device, self._arena = device, device.arena()
        self.source = rng.random((12, WIDTH // 4), np.float32)
        self._places = [self._arena.upload(self.source), *(self._arena.reserve(self.source.nbytes) for _ in range(7))]
        self.program = device.load_program(copy_program())

    def submit(self, origin: int, to: int, *, rows: int = 12, size: int = WIDTH, known: bool = True) -> Launch:
        """With ``size`` 6 it has a fault, with ``rows`` without end it does not end."""
        at = [self._places[origin], self._places[to]]
        reads, writes = ([Region(place, self.source.nbytes)] for place in at)
        regions: dict[str, Any] = {"reads": reads, "writes": writes} if known else {}
        return self._device.submit(self.program, [*at, rows, size, 0 if rows == FOR_EVER else WIDTH], **regions)

    def is_at(self, place: int) -> bool:
        found = self._arena.download(self._places[place], self.source.shape)
        return np.array_equal(found, self.source)


@pytest.fixture
def copies(dev: daedal.Device, rng: np.random.Generator) -> Copies:
    return Copies(dev, rng)


def test_only_what_needs_a_fault_s_output_is_cancelled(copies):
    first, bad, other = copies.submit(0, 1), copies.submit(0, 2, size=6), copies.submit(0, 3)
    needs, needs_that, after = copies.submit(2, 4), copies.submit(4, 5), copies.submit(3, 6)
    assert first.result().launch == first.number and copies.is_at(1)
    assert isinstance(bad.exception(), daedal.ProgramError)
    for launch in (needs, needs_that):
        with pytest.raises(daedal.LaunchCancelled, match=r"may read what launch \d+, which had a fault, was to write"):
            launch.result()
    assert other.result().launch == other.number and after.result().launch == after.number
    assert copies.is_at(3) and copies.is_at(6)


def test_what_reads_who_knows_what_is_cancelled(copies):
    bad, unknown, known = copies.submit(0, 1, size=6), copies.submit(0, 2, known=False), copies.submit(0, 3)
    assert isinstance(bad.exception(), daedal.ProgramError)
    assert isinstance(unknown.exception(), daedal.LaunchCancelled)
    assert isinstance(known.exception(), daedal.LaunchCancelled), (
        "what was cancelled might have written what this reads"
    )
    unknown = copies.submit(0, 2, known=False)
    assert unknown.result().launch == unknown.number and copies.is_at(2)


def test_several_faults_among_many(dev, copies):
    """More than the machine can queue, so that some are submitted while others run again."""
    launches = [copies.submit(0, 1 + n % 6, size=6 if n % 3 == 1 else WIDTH) for n in range(4 * LAUNCH_QUEUE_DEPTH)]
    for number, launch in enumerate(launches):
        assert (launch.exception() is not None) == (number % 3 == 1)
        assert launch.exception() is None or isinstance(launch.exception(), daedal.ProgramError)
    assert dev.flying == 0


def test_a_launch_that_is_cancelled_in_between_gives_its_place_to_nobody_too_soon(dev, copies):
    """Launch blocks are written in turn; those of launches that run again are still needed."""
    for number in range(3):
        bad, kept, needs = copies.submit(0, 1, size=6), copies.submit(0, 2), copies.submit(1, 3)
        others = [copies.submit(0, 4 + n % 4) for n in range(LAUNCH_QUEUE_DEPTH - 3)]
        assert isinstance(bad.exception(), daedal.ProgramError) and needs.done() and not kept.done()
        assert dev.flying == LAUNCH_QUEUE_DEPTH - 2
        launches = [kept, *others]
        for n in range(2 * LAUNCH_QUEUE_DEPTH + number):
            launches.append(copies.submit(0, 4 + n % 4))
            places = [launch.record_address for launch in launches if not launch.done()]
            assert len(set(places)) == len(places)
        for launch in launches:
            assert launch.result().launch == launch.number


def test_submitted_when_what_it_needs_has_failed_for_want_of_room(dev, copies):
    bad = copies.submit(0, 1, size=6)
    for _ in range(LAUNCH_QUEUE_DEPTH - 1):
        copies.submit(0, 2)
    late = copies.submit(1, 3)
    assert bad.done() and isinstance(late.exception(), daedal.LaunchCancelled)


def test_time_that_is_over_stops_that_launch_and_the_one_at_work(dev, copies):
    endless, needs, other = copies.submit(0, 1, rows=FOR_EVER), copies.submit(1, 2), copies.submit(0, 3)
    with pytest.raises(daedal.DeviceHang, match=r"did not end within 0.05 s .*allow more time"):
        dev.finish(endless, timeout=0.05)
    assert isinstance(endless.exception(), daedal.DeviceHang)
    assert isinstance(needs.exception(), daedal.LaunchCancelled)
    assert other.result().launch == other.number and copies.is_at(3)
    endless, between, late = copies.submit(0, 1, rows=FOR_EVER), copies.submit(0, 4), copies.submit(0, 5)
    with pytest.raises(daedal.DeviceHang):
        dev.finish(late, timeout=0.05)
    with pytest.raises(daedal.LaunchCancelled, match=f"because launch {late.number} did not end in time"):
        endless.result()
    assert between.result().launch == between.number and copies.is_at(4)


def test_a_sum_onto_what_is_there_is_added_once(dev, rng):
    table, idx, off = rng.random((30, 16), np.float32), rng.integers(0, 30, 40), np.array([0, 13, 40])
    outs = [np.ones((2, 16), np.float32) for _ in range(4)]
    executable = daedal.compile(added, (outs[0], table, idx, off), device=dev)
    wanted = outs[0].copy()
    executable(wanted, table, idx, off)
    wrong = idx.copy()
    wrong[3] = 30
    futures = [executable.submit(out, table, wrong if n == 0 else idx, off) for n, out in enumerate(outs)]
    with pytest.raises(daedal.IndexOutOfRange):
        futures[0].result()
    assert (outs[0] == 1).all()
    for out, future in zip(outs[1:], futures[1:], strict=True):
        future.result()
        assert np.array_equal(out, wanted)


class Several(nn.Module):
    """Bags that are one launch, which is prepared."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(40, 8, mode="sum") for _ in range(3)])

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> list[torch.Tensor]:
        return [bag(indices, offsets) for bag in self.bags]


def test_prepared_launches_and_those_awaited(dev):
    module, indices, offsets = Several(), torch.randint(40, (20,)), torch.arange(0, 20, 5)
    bad = indices.clone()
    bad[7] = 40
    with torch.no_grad():
        executable = daedal.compile(module, (indices, offsets), device=dev)
        wanted = module(indices, offsets)
        for _ in range(3):
            executable(indices, offsets)

        async def one(each: torch.Tensor) -> Any:
            return await executable.submit(each, offsets)

        async def all_of_them() -> list[Any]:
            inputs = [bad if number % 4 == 1 else indices for number in range(10)]
            return await asyncio.gather(*map(one, inputs), return_exceptions=True)

        for number, result in enumerate(asyncio.run(all_of_them())):
            if number % 4 == 1:
                assert isinstance(result, daedal.IndexOutOfRange) and "index 40" in str(result)
            else:
                assert all(map(torch.equal, result, wanted))


def test_devices_do_not_matter_to_each_other(dev):
    module, indices = nn.EmbeddingBag(50, 8, mode="sum"), torch.arange(12).view(4, 3)
    bad = indices + 40
    with torch.no_grad(), daedal.Device.open("emulator", CONFIG) as second:
        executables = [daedal.compile(module, (indices,), device=device) for device in (dev, second)]
        futures = [executables[n % 2].submit(bad if n in (1, 2) else indices) for n in range(8)]
        failed = [future.exception() for future in futures]
    assert [type(error) for error in failed] == [type(None), *[daedal.IndexOutOfRange] * 2, *[type(None)] * 5]
    assert all(torch.equal(f.result(), module(indices)) for n, f in enumerate(futures) if n not in (1, 2))


def damage(device: daedal.Device, raw: bytes, word: int) -> int:
    """Change a word in every copy of a program in device memory; how many there are."""
    memory, found = device.target.mem_read(0, 1 << 18), 0
    at = memory.find(raw)
    while at >= 0:
        device.target.mem_write(at + 8 * word, bytes(value ^ 0xFF for value in memory[at + 8 * word :][:8]))
        at, found = memory.find(raw, at + 1), found + 1
    return found


@pytest.mark.parametrize("word", [0, 5, -1])
def test_a_damaged_program_is_written_anew(dev, copies, word):
    raw = copy_program()
    for _ in range(LAUNCH_QUEUE_DEPTH):
        copies.submit(0, 1).result()
    assert damage(dev, raw, word % (len(raw) // 8)) == 1 + LAUNCH_QUEUE_DEPTH
    launches = [copies.submit(0, 2 + number) for number in range(3)]
    assert [launch.exception() for launch in launches] == [None] * 3
    assert copies.is_at(2) and copies.is_at(3) and copies.is_at(4)
    for _ in range(2 * LAUNCH_QUEUE_DEPTH):
        launch = copies.submit(0, 5)
        assert launch.result().launch == launch.number
    assert not launch.mended, "all copies are whole again"


def test_a_damaged_program_that_does_not_follow_its_launch_block(dev, rng):
    """Because it is too long."""
    width = 8
    module = nn.ModuleList([nn.EmbeddingBag(20, width << n, mode="sum") for n in range(6)])

    def forward(indices: torch.Tensor, offsets: torch.Tensor) -> list[torch.Tensor]:
        return [bag(indices, offsets) for bag in module]

    whole = Several()
    whole.bags, inputs = module, (torch.randint(20, (12,)), torch.arange(0, 12, 4))
    with torch.no_grad():
        executable = daedal.compile(whole, inputs, device=dev)
        wanted = whole(*inputs)
        assert len(executable.program) > BLOCK_REGION or len(executable._programs()) > 1
        for _ in range(2):
            assert all(map(torch.equal, executable(*inputs), wanted))
            for raw in executable._programs():
                assert damage(dev, raw, 3)
        assert all(map(torch.equal, executable(*inputs), wanted))


def test_a_damaged_program_of_which_nothing_is_known(dev, copies):
    raw, free = copy_program(), dev.free_bytes
    copies.submit(0, 1).result()
    assert damage(dev, raw, 2) == 2
    for _ in range(LAUNCH_QUEUE_DEPTH - 1):
        copies.submit(0, 2, known=False).result()
    with pytest.raises(daedal.ProgramError, match=r"8 bytes of its program had changed .* written anew") as caught:
        copies.submit(0, 2, known=False).result()
    assert caught.value.record.cause is Cause.PROGRAM and isinstance(caught.value.__cause__, daedal.ProgramError)
    again = copies.submit(0, 2, known=False)
    assert again.result().launch == again.number and copies.is_at(2) and dev.free_bytes == free


def test_a_program_that_stays_damaged(dev, copies, monkeypatch):
    """Memory that keeps nothing: the launch is not submitted for ever."""
    write = dev.target.mem_write

    def loses(address: int, data: bytes | memoryview) -> None:
        write(address, bytes(data)[:-8] + bytes(8) if bytes(data).endswith(copy_program()[-8:]) else data)

    monkeypatch.setattr(dev.target, "mem_write", loses)
    with pytest.raises(daedal.MemoryFault, match=r"\d bytes of its program had changed in device memory, although"):
        copies.submit(0, 1).result()
