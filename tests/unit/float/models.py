"""The verilated lane and reciprocal unit as Python functions that compare millions of results in C++."""

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from amaranth import Module, Mux
from amaranth.back import verilog
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.cosim import coverage
from daedal.cosim.build import build_verilated, read_sources
from daedal.hw.execute_unit.float_divide import COUNT_BITS, DivideFixup
from daedal.hw.execute_unit.float_format import CANONICAL_NAN
from daedal.hw.execute_unit.float_reciprocal import Reciprocal
from daedal.hw.execute_unit.lane import Lane
from daedal.hw.execute_unit.lane_op import LaneOp

HERE = Path(__file__).parent


class DividingLane(wiring.Component):
    """A lane whose operands go through the fix-up of the third pass under ``divide``.

    ``a`` is then the remainder and ``b`` the quotient; in the other passes the sequencer selects.
    """

    op: In(LaneOp)
    negate_product: In(1)
    negate_addend: In(1)
    a: In(32)
    b: In(32)
    c: In(32)
    divide: In(1)
    count: In(COUNT_BITS)
    reciprocal: In(32)
    o: Out(32)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.lane = lane = Lane()
        m.submodules.fixup = fixup = DivideFixup()
        m.d.comb += [
            fixup.remainder.eq(self.a), fixup.quotient.eq(self.b), fixup.count.eq(self.count),
            fixup.reciprocal.eq(self.reciprocal), lane.op.eq(Mux(self.divide, fixup.op, self.op)),
            lane.a.eq(Mux(self.divide, fixup.a, self.a)), lane.b.eq(Mux(self.divide, fixup.b, self.b)),
            lane.negate_product.eq(self.negate_product), lane.negate_addend.eq(self.negate_addend),
            lane.c.eq(self.c), self.o.eq(lane.o),
        ]  # fmt: skip
        return m


class LaneOperation(ctypes.Structure):
    """One operation, as the harness reports it."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("op", "negate_product", "negate_addend", "a", "b", "c")]


class Report(ctypes.Structure):
    """What a run found: results checked, wrong ones, ties noted, and the first wrong one."""

    _fields_ = [("checked", ctypes.c_uint64), ("wrong", ctypes.c_uint64), ("noted", ctypes.c_uint64),
                ("first", LaneOperation), ("got", ctypes.c_uint32), ("want", ctypes.c_uint32)]  # fmt: skip

    def __str__(self) -> str:
        """The first wrong result, for an assertion's message."""
        x = self.first
        call = f"{LaneOp(x.op).name}(a={x.a:#010x}, b={x.b:#010x}, c={x.c:#010x})"
        flags = f"negate_product={x.negate_product}, negate_addend={x.negate_addend}"
        got = f"got {self.got:#010x}, not {self.want:#010x}"
        return f"{self.wrong} of {self.checked} wrong, first {call}, {flags}: {got}"


class ReciprocalReport(ctypes.Structure):
    """What a run of the reciprocal unit found; ``longest`` and ``shortest`` are waits in cycles."""

    _fields_ = [*((name, ctypes.c_uint64) for name in ("checked", "wrong", "cycles", "longest", "shortest")),
                ("first", ctypes.c_uint32)]  # fmt: skip


def lane_parameters() -> str:
    """The lane's timing and encodings as a C header."""
    return "\n".join(["#pragma once", f"enum {{ JOIN = {Lane.join}, LATENCY = {Lane.latency},",
                      f"OPERATIONS = {len(LaneOp)},", *(f"OP_{op.name} = {op.value}," for op in LaneOp), "};",
                      f"static const uint32_t CANONICAL_NAN = {CANONICAL_NAN:#x};", ""])  # fmt: skip


@cache
def lane_model() -> ctypes.CDLL:
    """The verilated lane with its harness."""
    files = {**read_sources(HERE, "lane_harness.cpp"), "lane_parameters.h": lane_parameters()}
    text = verilog.convert(DividingLane(), name="lane", emit_src=coverage.is_wanted())
    return ctypes.CDLL(str(build_verilated("lane", text, files, top="lane")))


@cache
def reciprocal_model() -> ctypes.CDLL:
    """The verilated reciprocal unit with its harness."""
    text = verilog.convert(Reciprocal(), name="reciprocal", emit_src=coverage.is_wanted())
    files = read_sources(HERE, "reciprocal_harness.cpp")
    return ctypes.CDLL(str(build_verilated("reciprocal", text, files, top="reciprocal")))


def words(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint32]:
    """Integers as an array of 32-bit words."""
    return (ctypes.c_uint32 * len(values))(*values)


def run_directed(values: Sequence[int]) -> Report:
    """Every operation, with every sign flag, on every triple of ``values``."""
    report = Report()
    lane_model().check_triples(words(values), len(values), ctypes.byref(report))
    return report


def run_random(seed: int, count: int) -> Report:
    """``count`` operations on operands chosen to be hard."""
    report = Report()
    lane_model().check_random(ctypes.c_uint64(seed), ctypes.c_uint64(count), ctypes.byref(report))
    return report


def run_divisions(seed: int, counts: Sequence[int], *, each: int) -> Report:
    """``each`` hard dividends, divided by every one of ``counts``; ``noted`` counts subnormal ties."""
    report, size = Report(), len(counts)
    lane_model().check_divisions(ctypes.c_uint64(seed), words(counts), size, each, ctypes.byref(report))
    return report


def run_near_halfway(counts: Sequence[int]) -> Report:
    """Odd ``counts`` into dividends whose quotient is next to a halfway point."""
    report = Report()
    lane_model().check_near_halfway(words(counts), len(counts), ctypes.byref(report))
    return report


def run_reciprocals(counts: Sequence[int], *, pause: int = 0) -> ReciprocalReport:
    """Ask the reciprocal unit for each of ``counts``; every answer is held for ``pause`` cycles."""
    report = ReciprocalReport()
    reciprocal_model().check_reciprocals(words(counts), len(counts), pause, ctypes.byref(report))
    return report
