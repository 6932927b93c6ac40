"""The core's memory ports in front of LiteDRAM: every line in order, nothing lost, nothing outside of the memory."""

import random
from collections import deque
from collections.abc import Generator
from typing import Any

import pytest
from litedram.common import LiteDRAMNativePort
from litex.soc.interconnect import axi
from litex.soc.interconnect.axi import RESP_DECERR, RESP_OKAY
from migen import run_simulation

from daedal.fpga.soc.memory_ports import ReadPort, WritePort

LINE_BYTES, LINES = 8, 64
BYTES = LINE_BYTES * LINES
LIMIT = 5000
"""Cycles of a run that does not come to an end; the longest takes some 2,000."""
RATES = [(1.0, 1.0), (0.3, 1.0), (1.0, 0.3), (0.5, 0.5)]
"""How often LiteDRAM takes a command, and how often the core is ready or offers something."""

Bench = Generator[Any, Any, None]


def interfaces(mode: str) -> tuple[axi.AXIInterface, LiteDRAMNativePort]:
    bus = axi.AXIInterface(data_width=8 * LINE_BYTES, address_width=40, id_width=1)
    return bus, LiteDRAMNativePort(mode, address_width=6, data_width=8 * LINE_BYTES)


def bursts(dice: random.Random, count: int = 40) -> list[tuple[int, int]]:
    """First lines and lengths; one in five lies outside of the memory."""
    found = []
    for _ in range(count):
        length = dice.randint(1, 16)
        first = dice.randint(0, LINES - length)
        found.append((first + LINES * dice.choice((0, 0, 0, 0, dice.choice((1, 2, 1 << 30)))), length))
    return found


def until(ready: Any) -> Bench:
    """Wait for what is offered to be taken."""
    for _ in range(LIMIT):
        if (yield ready):
            return
        yield
    raise AssertionError(f"nothing was taken for {LIMIT} cycles")


def address_channel(channel: Any, wanted: list[tuple[int, int]], dice: random.Random, rate: float) -> Bench:
    for first, length in wanted:
        while dice.random() > rate:
            yield
        yield channel.addr.eq(first * LINE_BYTES)
        yield channel.len.eq(length - 1)
        yield channel.valid.eq(1)
        yield
        yield from until(channel.ready)
        yield channel.valid.eq(0)


@pytest.mark.parametrize(("memory_rate", "core_rate"), RATES)
def test_reads_come_in_order(memory_rate: float, core_rate: float) -> None:
    dice = random.Random(f"read {memory_rate} {core_rate}")
    wanted = bursts(dice)
    content = [dice.getrandbits(8 * LINE_BYTES) for _ in range(LINES)]
    bus, port = interfaces("read")
    dut = ReadPort(bus, port, memory_bytes=BYTES)
    got: list[tuple[int, int, int]] = []
    total = sum(length for _, length in wanted)

    def memory() -> Bench:
        """Lines come two cycles or more after their command, in order, whether anybody wants them or not."""
        pending: deque[tuple[int, int]] = deque()
        for cycle in range(LIMIT):
            if len(got) == total:
                return
            if (yield port.cmd.valid) and (yield port.cmd.ready):
                assert not (yield port.cmd.we)
                pending.append((cycle + dice.randint(2, 12), (yield port.cmd.addr)))
            due = bool(pending) and pending[0][0] <= cycle
            yield port.rdata.valid.eq(due)
            if due:
                yield port.rdata.data.eq(content[pending.popleft()[1]])
            yield port.cmd.ready.eq(dice.random() < memory_rate)
            yield

    def core() -> Bench:
        for _ in range(LIMIT):
            if len(got) == total:
                return
            if (yield bus.r.valid) and (yield bus.r.ready):
                got.append(((yield bus.r.data), (yield bus.r.resp), (yield bus.r.last)))
            yield bus.r.ready.eq(dice.random() < core_rate)
            yield

    run_simulation(dut, [memory(), core(), address_channel(bus.ar, wanted, dice, core_rate)])
    assert len(got) == total
    beats = iter(got)
    for first, length in wanted:
        for line in range(first, first + length):
            data, response, last = next(beats)
            assert last == (line == first + length - 1)
            assert response == (RESP_OKAY if line < LINES else RESP_DECERR)
            assert line >= LINES or data == content[line]


@pytest.mark.parametrize(("memory_rate", "core_rate"), RATES)
def test_writes_are_acknowledged_when_they_are_done(memory_rate: float, core_rate: float) -> None:
    dice = random.Random(f"write {memory_rate} {core_rate}")
    wanted = bursts(dice)
    content = [0] * LINES
    expected = [0] * LINES
    lines = []
    for first, length in wanted:
        for line in range(first, first + length):
            data, strobe = dice.getrandbits(8 * LINE_BYTES), dice.getrandbits(LINE_BYTES)
            lines.append((data, strobe, line == first + length - 1))
            if line < LINES:
                expected[line] = merged(expected[line], data, strobe)
    bus, port = interfaces("write")
    dut = WritePort(bus, port, memory_bytes=BYTES)
    answers: list[int] = []
    written: list[int] = []

    def memory() -> Bench:
        """Takes a line two cycles or more after its command, sometimes much later; it must be there by then."""
        pending: deque[tuple[int, int]] = deque()
        for cycle in range(LIMIT):
            if len(answers) == len(wanted):
                return
            if (yield port.wdata.ready):
                assert (yield port.wdata.valid), "LiteDRAM took a line that was not there"
                line = pending.popleft()[1]
                content[line] = merged(content[line], (yield port.wdata.data), (yield port.wdata.we))
                written.append(line)
            if (yield port.cmd.valid) and (yield port.cmd.ready):
                assert (yield port.cmd.we)
                pending.append((cycle + dice.randint(1, dice.choice((8,) * 15 + (100,))), (yield port.cmd.addr)))
            yield port.wdata.ready.eq(bool(pending) and pending[0][0] <= cycle)
            yield port.cmd.ready.eq(dice.random() < memory_rate)
            yield

    def data() -> Bench:
        for value, strobe, last in lines:
            while dice.random() > core_rate:
                yield
            yield bus.w.data.eq(value)
            yield bus.w.strb.eq(strobe)
            yield bus.w.last.eq(last)
            yield bus.w.valid.eq(1)
            yield
            yield from until(bus.w.ready)
            yield bus.w.valid.eq(0)

    def core() -> Bench:
        inside = 0
        for _ in range(LIMIT):
            if len(answers) == len(wanted):
                return
            if (yield bus.b.valid) and (yield bus.b.ready):
                first, length = wanted[len(answers)]
                answers.append((yield bus.b.resp))
                inside += length if first < LINES else 0
                assert len(written) >= inside, "acknowledged before it was written"
            yield bus.b.ready.eq(dice.random() < core_rate)
            yield

    run_simulation(dut, [memory(), data(), core(), address_channel(bus.aw, wanted, dice, core_rate)])
    assert answers == [RESP_OKAY if first < LINES else RESP_DECERR for first, _ in wanted]
    assert content == expected


def merged(old: int, new: int, strobe: int) -> int:
    """``old`` with the bytes of ``new`` whose strobe is set."""
    for byte in range(LINE_BYTES):
        if strobe >> byte & 1:
            mask = 0xFF << 8 * byte
            old = old & ~mask | new & mask
    return old


@pytest.mark.parametrize("outstanding", [16, 32])
def test_reads_run_at_one_line_per_cycle(outstanding: int) -> None:
    """Bursts of one line after the other, with a latency that the lines in flight cover."""
    bus, port = interfaces("read")
    dut = ReadPort(bus, port, memory_bytes=BYTES, outstanding=outstanding)
    latency, count = 8, 60
    cycles = []

    def bench() -> Bench:
        pending: deque[int] = deque([0] * latency)
        yield bus.r.ready.eq(1)
        yield bus.ar.len.eq(3)
        yield bus.ar.valid.eq(1)
        yield port.cmd.ready.eq(1)
        for cycle in range(LIMIT):
            yield
            pending.append((yield port.cmd.valid))
            yield port.rdata.valid.eq(pending.popleft())
            if (yield bus.r.valid):
                cycles.append(cycle)
            if len(cycles) == count:
                return

    run_simulation(dut, bench())
    assert cycles == list(range(cycles[0], cycles[0] + count))
