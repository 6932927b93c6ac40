"""cocotb bench of cutters and packers: rows keep their elements, order and ends; one narrow beat per cycle."""

import random

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from daedal.hw.interfaces import beat_layout, lane_beat_layout
from daedal.hw.isa.elements import ROW_GRANULE, STORE_STEP
from tests.unit.harness import bench_config, parameters
from tests.unit.streams import Sink, Source, count_cycles, start

ROWS = 120


class Bench:
    """The converter, what goes in and what must come out: cut from bytes, independently of the hardware."""

    def __init__(self, dut, rows: list[bytes], *, idle: float = 0.0, pause: float = 0.0, seed: int = 0) -> None:
        config = bench_config()
        line, piece = (beat_layout(config), config.bus_bytes), (lane_beat_layout(config), config.lane_bytes)
        first, second = sorted((line, piece), key=lambda one: one[1], reverse=parameters()["name"] == "cutter")
        self.sent, self.expected = beats(rows, first[1]), beats(rows, second[1])
        self.dut = dut
        self.source = Source(dut, "i", first[0], idle=idle, seed=seed)
        self.sink = Sink(dut, "o", second[0], pause=pause, seed=seed)

    async def run(self) -> None:
        """Send everything and compare."""
        self.source.start(self.sent)
        got = await self.sink.wait(len(self.expected))
        for _ in range(5):
            await RisingEdge(self.dut.clk)
        assert len(got) == len(self.expected), "more than there was"
        for have, want in zip(got, self.expected, strict=True):
            assert (have.bytes, have.last) == (want["bytes"], want["last"])
            assert have.data & ((1 << 8 * want["bytes"]) - 1) == want["data"]


def beats(rows: list[bytes], size: int) -> list[dict[str, int]]:
    """The beats of ``size`` bytes that carry the rows."""
    return [
        {"data": int.from_bytes(row[at : at + size], "little"), "bytes": len(row[at : at + size]),
         "last": int(at + size >= len(row))}
        for row in rows for at in range(0, len(row), size)
    ]  # fmt: skip


def _widest() -> int:
    return max(bench_config().bus_bytes, bench_config().lane_bytes)


def _pieces() -> int:
    """Narrow beats in a wide one."""
    return _widest() // min(bench_config().bus_bytes, bench_config().lane_bytes)


def _beats_held() -> int:
    """Wide beats that there is room for."""
    return {"cutter": 0, "packer": 1, "packers": 3}[parameters()["name"]]


def some_rows(seed: int, longest: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    step = ROW_GRANULE if parameters()["name"] == "cutter" else STORE_STEP
    return [rng.bytes(step * int(rng.integers(1, longest * ROW_GRANULE // step + 1))) for _ in range(ROWS)]


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5], seed=[1, 2])
async def rows_of_all_lengths(dut, idle, pause, seed):
    await start(dut)
    await Bench(dut, some_rows(seed, 3 * bench_config().line_granules), idle=idle, pause=pause, seed=seed).run()


@cocotb.test()
@cocotb.parametrize(short=[False, True])
async def one_narrow_beat_per_cycle(dut, short):
    """Nobody waits: rows of many lines, and rows of a single element, each of which is a line of its own."""
    await start(dut)
    rows = [random.randbytes(4 if short else 5 * _widest()) for _ in range(20)]
    bench = Bench(dut, rows)
    narrow = max(len(bench.sent), len(bench.expected))
    cycles = await count_cycles(dut, cocotb.start_soon(bench.run()))
    assert cycles <= narrow + 5 + 4, f"{cycles} cycles for {narrow} beats"


@cocotb.test()
async def nothing_is_lost_while_nobody_takes(dut):
    """The cutter holds nothing back from the queue in front of it; the packer says when it is empty."""
    await start(dut)
    bench = Bench(dut, some_rows(3, bench_config().line_granules), pause=1.0)
    is_packer = parameters()["name"] != "cutter"
    assert not is_packer or dut.empty.value
    bench.source.start(bench.sent)
    for _ in range(20):
        await RisingEdge(dut.clk)
    assert not dut.i__ready.value
    assert bench.source.sent <= _beats_held() * _pieces()
    assert not is_packer or not dut.empty.value
    bench.sink.pause = 0.0
    await bench.sink.wait(len(bench.expected))
    await RisingEdge(dut.clk)
    assert not is_packer or dut.empty.value


@cocotb.test()
@cocotb.parametrize(pause=[0.0, 0.5])
async def only_what_holds_nothing_is_empty(dut, pause):
    """In every cycle; also with a part of a line, whose other pieces are long in coming."""
    if parameters()["name"] == "cutter":
        return
    await start(dut)
    config = bench_config()
    bench = Bench(dut, some_rows(4, 2 * config.line_granules), idle=0.8, pause=pause)
    pieces, taken, part, lines, delivered = _pieces(), 0, 0, 0, 0
    bench.source.start(bench.sent)
    while delivered < len(bench.expected):
        await RisingEdge(dut.clk)
        assert int(dut.empty.value) == (part == 0 and lines == 0), f"{part} pieces and {lines} lines held"
        goes = int(dut.o__valid.value) and int(dut.o__ready.value)
        lines, delivered = lines - goes, delivered + goes
        if dut.i__valid.value and dut.i__ready.value:
            part = 0 if bench.sent[taken]["last"] or part + 1 == pieces else part + 1
            taken, lines = taken + 1, lines + (part == 0)
