"""Interrupts at any moment: no device memory is lost, and what is computed afterwards is right."""

import _thread
import asyncio
import gc
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal import f32, i64
from daedal.cosim.emulator import EmulatorTarget
from daedal.driver.launch import launcher
from daedal.driver.tables.table_store import Table
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.registers import Register
from daedal.hw.isa.words import LevelField
from tests.driver.fake_target import FakeTarget
from tests.driver.test_driver_targets import CONFIG, copy

RTL = (pytest.mark.rtl, pytest.mark.slow)
TraceFunction = Callable[[FrameType, str, Any], Any]
B, D, N, P = daedal.dims("B D N P")


@daedal.kernel
def pooled(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]


class Several(nn.Module):
    """Bags that are one launch, which is prepared."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(40, 8, mode="sum") for _ in range(3)])

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return torch.cat([bag(indices, offsets) for bag in self.bags], 1)


class Interrupts:
    """Interrupts what runs, as Ctrl-C does, so many seconds after it was begun, at the longest."""

    def __init__(self, seed: int) -> None:
        self._random, self.count = random.Random(seed), 0
        self._before = signal.signal(signal.SIGALRM, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        raise KeyboardInterrupt

    def during(self, act: Callable[[], Any], longest: float) -> None:
        with suppress(KeyboardInterrupt):
            try:
                signal.setitimer(signal.ITIMER_REAL, self._random.uniform(1e-6, longest))
                act()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)


@pytest.fixture
def interrupts(seed: int) -> Iterator[Interrupts]:
    found = Interrupts(seed)
    yield found
    found.end()


@pytest.fixture(params=["emulator", pytest.param("verilator", marks=RTL)])
def dev(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open(request.param, CONFIG, memory_bytes=1 << 22) as device, torch.no_grad():
        yield device


class Uses:
    """What is done with a device, and what must come of it."""

    def __init__(self, device: daedal.Device, rng: np.random.Generator) -> None:
        self.device, self.bag, self.several = device, nn.EmbeddingBag(60, 16, mode="sum"), Several()
        self.one = (torch.arange(40).view(8, 5),)
        self.more = (torch.randint(40, (30,)), torch.arange(0, 30, 6))
        self.arrays = rng.random((20, 8), np.float32), rng.integers(0, 20, 12), np.array([0, 5, 12])
        self.out = np.zeros((2, 8), np.float32)
        self.changing = nn.EmbeddingBag(40, 8, mode="sum")
        self.bag_of = daedal.compile(self.bag, self.one, device=device)
        self.several_of = daedal.compile(self.several, self.more, device=device)
        self.changing_of = daedal.compile(self.changing, self.one, device=device)
        self.kernel_of = daedal.compile(pooled, (self.out, *self.arrays), device=device)
        self.kernel_of(self.out, *self.arrays)
        self.loaded = 0
        self.copied = rng.random((9, 16), np.float32)

    def call(self) -> None:
        assert torch.equal(self.bag_of(*self.one), self.bag(*self.one))

    def submit(self) -> None:
        futures = [self.bag_of.submit(*self.one) for _ in range(4)]
        for future in futures:
            assert torch.equal(future.result(), self.bag(*self.one))

    def prepared(self) -> None:
        for _ in range(3):
            assert torch.equal(self.several_of(*self.more), self.several(*self.more))

    def kernel(self) -> None:
        outs = [np.zeros_like(self.out) for _ in range(3)]
        futures = [self.kernel_of.submit(out, *self.arrays) for out in outs]
        for out, future in zip(outs, futures, strict=True):
            future.result()
            assert np.array_equal(out, self.out)

    def awaited(self) -> None:
        async def one() -> torch.Tensor:
            return await self.bag_of.submit(*self.one)

        async def both() -> list[torch.Tensor]:
            return await asyncio.gather(one(), one())

        for found in asyncio.run(both()):
            assert torch.equal(found, self.bag(*self.one))

    def faulty(self) -> None:
        futures = [self.bag_of.submit(each) for each in (self.one[0] + 40, *self.one)]
        assert isinstance(futures[0].exception(), daedal.IndexOutOfRange | daedal.LaunchCancelled)
        assert torch.equal(futures[1].result(), self.bag(*self.one))

    def tables(self) -> None:
        self.changing.weight.add_(1)
        assert torch.equal(self.changing_of(self.one[0] % 40), self.changing(self.one[0] % 40))

    def buffers(self) -> None:
        with suppress(daedal.LaunchCancelled):  # behind a fault of one that was left alone
            assert np.array_equal(copy(self.device, self.copied), self.copied)

    def loads(self) -> None:
        """Another program each time, which stays."""
        self.loaded += 1
        self.device.load_program(Program(CONFIG.hash, [Word(LevelField.LOWER, 0, self.loaded)] * 5).to_bytes())

    @property
    def all(self) -> list[Callable[[], None]]:
        return [
            self.call,
            self.submit,
            self.prepared,
            self.kernel,
            self.faulty,
            self.tables,
            self.buffers,
            self.loads,
        ]


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # interrupts in finalizers, of PyTorch too
def test_a_thousand_interrupts_lose_no_memory(dev, rng, interrupts):
    uses = Uses(dev, rng)
    for act in (*uses.all, uses.awaited):
        act()

    def lost() -> int:
        gc.collect()
        return dev.free_bytes + sum(len(raw) for raw in dev._programs)

    before, most = lost(), 1000 if isinstance(dev.target, EmulatorTarget) else 60
    number = 0
    while interrupts.count < most:
        number += 1
        interrupts.during(uses.all[number % len(uses.all)], 0.002 if most == 1000 else 0.1)
        if number % 20 == 0:
            uses.all[number // 20 % len(uses.all)]()
    for act in 2 * [*uses.all, uses.awaited]:
        act()
    assert dev.flying == 0
    assert lost() == before


DRIVER = Path(launcher.__file__).parents[1]
"""Where the driver's modules are."""


class EachLine:
    """Interrupts behind lines of the driver that are executed, by their numbers counted from 1."""

    def __init__(self, *at: int) -> None:
        self._at, self.lines = at, 0

    def __enter__(self) -> "EachLine":
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        if DRIVER not in Path(frame.f_code.co_filename).parents:
            return None
        if event == "line":
            self.lines += 1
            if self.lines in self._at:
                _thread.interrupt_main()  # an exception in here would be the last thing that is traced
        return self._trace


class Queue(FakeTarget):
    """Ends all launches that it was given, each well."""

    def __init__(self) -> None:
        super().__init__(CONFIG)
        self.blocks: list[tuple[int, int]] = []
        self.doorbells = 0

    def csr_write(self, address: int, value: int) -> None:
        super().csr_write(address, value)
        if address == Register.DOORBELL.value:
            self.doorbells += 1
            self.blocks.append((self.registers[Register.LAUNCH_LOW], self.registers[Register.LAUNCH_HIGH]))
        elif self.control.reset:
            self.blocks.clear()

    def wait(self, timeout: float | None = None) -> bool:
        while self.blocks:
            self.registers[Register.LAUNCH_LOW], self.registers[Register.LAUNCH_HIGH] = self.blocks.pop(0)
            super().wait(timeout)
        return True


@pytest.mark.parametrize("then", [None, 1, 2, 5, 11])
@pytest.mark.parametrize("wait", [daedal.Device.finish, lambda _, launch: launch.result()], ids=["finish", "result"])
def test_interrupts_at_each_line_and_once_more_after_some(then, wait):
    """What is known of the machine and the machine agree afterwards, or it is reset."""
    raw = Program(CONFIG.hash, [Word(LevelField.LOWER, 0, 1)] * 4).to_bytes()
    for number in count(1):
        target, ended = Queue(), list[object]()
        device = daedal.Device(target, CONFIG)
        program, free = device.load_program(raw), device.free_bytes
        lines = EachLine(number, *([] if then is None else [number + then]))
        with suppress(KeyboardInterrupt), lines:
            wait(device, device.submit(program, reads=[], writes=[], ended=ended.append))
        target.doorbells = 0
        after = device.submit(program, ended=ended.append)
        assert after.result().launch == after.number, f"interrupted at line {number}"
        assert target.doorbells == 1, f"what may not be repeated was, after an interrupt at line {number}"
        assert ended[-1] is not None and device.flying == 0 and device.free_bytes == free
        if lines.lines < number:
            break
    assert number > 100


def content(device: daedal.Device, table: Table) -> np.ndarray:
    raw = device.memory.read(table.address, table.rows * table.pitch)
    return np.frombuffer(raw, np.float32).reshape(table.rows, -1)[:, : table.dim]


class Bound:
    """A device with a table of an array, and ways to change it."""

    def __init__(self) -> None:
        self.device = daedal.Device(FakeTarget(CONFIG), CONFIG)
        self.free = self.device.free_bytes
        self.source = np.ones((9, 8), np.float32)
        self.device.bind_table("t", self.source)

    def changed(self) -> None:
        self.source += 1
        self.bind()

    def resized(self) -> None:
        self.source = self.source.reshape(-1).view()[:40].reshape(5, 8)
        self.bind()

    def retyped(self) -> None:
        self.source = self.source.reshape(3, 24)
        self.bind()

    def mapped(self) -> None:
        self.device.bind_table("t", self.source, mapping=0)

    def dropped(self) -> None:
        self.device.drop_table("t")

    def bind(self) -> Table:
        return self.device.bind_table("t", self.source)


@pytest.mark.parametrize("act", [Bound.changed, Bound.resized, Bound.retyped, Bound.mapped, Bound.dropped])
def test_interrupts_at_each_line_while_a_table_is_bound_or_dropped(act):
    for number in count(1):
        bound, lines = Bound(), EachLine(number)
        with suppress(KeyboardInterrupt), lines:
            act(bound)
        for _ in range(2):
            assert np.array_equal(content(bound.device, bound.bind()), bound.source), f"interrupted at line {number}"
        bound.source += 1
        assert np.array_equal(content(bound.device, bound.bind()), bound.source), f"interrupted at line {number}"
        for name in list(bound.device.tables):
            bound.device.drop_table(name)
        assert bound.device.free_bytes == bound.free, f"interrupted at line {number}"
        if lines.lines < number:
            break
    assert number > 10
