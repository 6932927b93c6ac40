"""Drivers and checks for amaranth streams in cocotb benches.

Payloads are given and taken as Python values: an ``int`` for a plain shape, and for a layout a mapping (to send)
or an ``amaranth.lib.data.Const`` (received), whose fields are attributes.
"""

import random
from collections.abc import Iterable
from typing import Any

import cocotb
from amaranth.hdl import ShapeLike
from amaranth.lib import data
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer

from tests.unit.payload import Payload

PERIOD = 10
"""Nanoseconds of a clock cycle."""

LONGEST = 300_000
"""Cycles within which a test must end: one that hangs fails soon, not when its process is ended."""

PATIENCE = 20_000
"""Cycles within which an input must take what is offered."""


async def start(dut: Any) -> None:
    """Start the clock and reset the design for two cycles; the test must then end within ``LONGEST`` cycles."""
    Clock(dut.clk, PERIOD, unit="ns").start()
    cocotb.start_soon(_end_of_time())
    await reset(dut)


async def _end_of_time() -> None:
    await Timer(LONGEST * PERIOD, unit="ns")
    raise AssertionError(f"the test must end within {LONGEST} cycles")


async def reset(dut: Any) -> None:
    """Reset the design for two cycles."""
    dut.rst.value = 1
    for _ in range(2):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)


def decode(shape: ShapeLike, bits: int) -> Any:
    """The value of ``bits``; a mapping-like constant for a layout."""
    return shape.from_bits(bits) if isinstance(shape, data.Layout) else bits


class Port:
    """The three signals of the stream ``name`` of ``dut``, whose payload has ``shape``."""

    def __init__(self, dut: Any, name: str, shape: ShapeLike) -> None:
        self.clk, self.name, self.shape = dut.clk, name, shape
        self.encode = Payload(shape).pack if isinstance(shape, data.Layout) else int
        self.payload = getattr(dut, f"{name}__payload")
        self.valid = getattr(dut, f"{name}__valid")
        self.ready = getattr(dut, f"{name}__ready")


class Source:
    """Sends payloads into an input stream, pausing with probability ``idle`` before each."""

    def __init__(self, dut: Any, name: str, shape: ShapeLike, *, idle: float = 0.0, seed: int = 0) -> None:
        self.port, self.idle = Port(dut, name, shape), idle
        self.sent = 0
        self._random = random.Random(f"{name}{seed}")
        self.port.valid.value = 0

    async def send(self, payloads: Iterable[Any]) -> None:
        """Send all ``payloads``; returns in the cycle after the last one was taken."""
        port = self.port
        for payload in payloads:
            await self._pause()
            port.payload.value = port.encode(payload)
            port.valid.value = 1
            await RisingEdge(port.clk)
            for _ in range(PATIENCE):
                if port.ready.value:
                    break
                await RisingEdge(port.clk)
            else:
                raise AssertionError(f"{port.name}: payload {self.sent} not taken within {PATIENCE} cycles")
            self.sent += 1
            port.valid.value = 0

    def start(self, payloads: Iterable[Any]) -> cocotb.task.Task[None]:
        """``send`` in the background."""
        return cocotb.start_soon(self.send(payloads))

    async def _pause(self) -> None:
        while self._random.random() < self.idle:
            # What a payload is while not valid is nobody's business: make sure that nobody looks.
            self.port.payload.value = self._random.getrandbits(len(self.port.payload))
            await RisingEdge(self.port.clk)


class Sink:
    """Takes everything from an output stream, refusing with probability ``pause`` in each cycle.

    ``got`` lists the payloads. The stream's contract is checked all the time.
    """

    def __init__(self, dut: Any, name: str, shape: ShapeLike, *, pause: float = 0.0, seed: int = 0) -> None:
        self.port, self.pause = Port(dut, name, shape), pause
        self.got: list[Any] = []
        self._random = random.Random(f"{name}{seed}")
        self.port.ready.value = 0
        cocotb.start_soon(self._run())
        watch(dut, name)

    async def wait(self, count: int, *, cycles: int = 20_000) -> list[Any]:
        """Return ``got`` as soon as it has ``count`` entries; AssertionError after ``cycles`` without."""
        for _ in range(cycles):
            if len(self.got) >= count:
                return self.got
            await RisingEdge(self.port.clk)
        raise AssertionError(f"{self.port.name}: {len(self.got)} of {count} payloads after {cycles} cycles")

    async def _run(self) -> None:
        port = self.port
        while True:
            ready = self._random.random() >= self.pause
            port.ready.value = ready
            await RisingEdge(port.clk)
            if ready and port.valid.value:
                self.got.append(decode(port.shape, int(port.payload.value)))


def watch(dut: Any, name: str) -> None:
    """Check the contract of an output stream: once valid, valid with the same payload until taken."""
    watch_handshake(dut, f"{name}__", [f"{name}__payload"])


def watch_handshake(dut: Any, prefix: str, payloads: list[str]) -> None:
    """The same for ``{prefix}valid`` and ``{prefix}ready`` with several payload signals."""
    cocotb.start_soon(_watch(dut, prefix, payloads))


async def _watch(dut: Any, prefix: str, payloads: list[str]) -> None:
    valid, ready = getattr(dut, f"{prefix}valid"), getattr(dut, f"{prefix}ready")
    signals = [getattr(dut, name) for name in payloads]
    waiting = None
    while True:
        await RisingEdge(dut.clk)
        if dut.rst.value:
            waiting = None
            continue
        if waiting is not None:
            assert valid.value, f"{prefix}valid fell before the payload was taken"
            assert [int(signal.value) for signal in signals] == waiting, f"{prefix}: payload changed while waiting"
        waiting = [int(signal.value) for signal in signals] if valid.value and not ready.value else None


async def count_cycles(dut: Any, task: Any, *, limit: int = 100_000) -> int:
    """Cycles until ``task`` is done."""
    for cycles in range(limit):
        if task.done():
            return cycles
        await RisingEdge(dut.clk)
    raise AssertionError(f"not done after {limit} cycles")


async def settled(dut: Any) -> None:
    """Wait for the next clock edge and for all signals after it to be final; nothing may be driven then."""
    await RisingEdge(dut.clk)
    await ReadOnly()
