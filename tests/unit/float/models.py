"""The verilated lane, reciprocal and iterative unit as Python functions that compare millions of results in C++."""

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path

from amaranth import Shape
from amaranth.back import verilog

from daedal.base import coverage
from daedal.cosim.builder.library import build_library, read_sources
from daedal.cosim.builder.rtl_library import build_verilated
from daedal.hw.execute_unit.fpu.float_format import CANONICAL_NAN
from daedal.hw.execute_unit.fpu.float_reciprocal import Reciprocal
from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.execute_unit.fpu.iterative_unit import IterativeUnit
from daedal.hw.execute_unit.fpu.lane import Lane
from daedal.hw.execute_unit.fpu.lane_op import LaneOp

HERE = Path(__file__).parent


class Kind(IntEnum):
    """Operands chosen to be hard, in one way each; the harness knows how."""

    ANY_BITS = 0
    """All bits random."""
    ALIGN = 1
    """Product and addend up to 54 binades apart, fractions with long runs of equal bits."""
    CANCEL = 2
    """An addend that leaves a few units of the product's last place."""
    TIE = 3
    """A result halfway between two numbers, or the smallest possible bit beside."""
    SUBNORMAL = 4
    """Subnormal operands, products and sums on both sides of the smallest normal number."""
    OVERFLOW = 5
    """Results on both sides of the largest number."""
    SPECIAL = 6
    """NaN, infinity, zero, the smallest and largest numbers, for one operand or more."""


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


class IterativeReport(ctypes.Structure):
    """What a run of the iterative unit found; ``longest`` wait in cycles, and the first wrong answer."""

    _fields_ = [*((name, ctypes.c_uint64) for name in ("checked", "wrong", "longest")),
                *((name, ctypes.c_uint32) for name in ("op", "a", "b", "got", "want"))]  # fmt: skip

    def __str__(self) -> str:
        """The first wrong result, for an assertion's message."""
        call = f"{IterativeOp(self.op).name}({self.a:#010x}, {self.b:#010x})"
        return f"{self.wrong} of {self.checked} wrong, first {call}: got {self.got:#010x}, not {self.want:#010x}"


class Division(ctypes.Structure):
    """What a run over all dividends found; ``first`` is the first count with a wrong quotient."""

    _fields_ = [("checked", ctypes.c_uint64), ("wrong", ctypes.c_uint64), ("first", ctypes.c_uint32)]

    def __str__(self) -> str:
        """For an assertion's message."""
        return f"{self.wrong} of {self.checked} quotients wrong, first by {self.first}"


def lane_parameters() -> str:
    """The lane's timing and encodings as a C header."""
    return "\n".join(["#pragma once", f"enum {{ JOIN = {Lane.join}, LATENCY = {Lane.latency},",
                      f"OPERATIONS = {len(LaneOp)},", *(f"OP_{op.name} = {op.value}," for op in LaneOp),
                      *(f"KIND_{kind.name} = {kind.value}," for kind in Kind), "};",
                      f"static const uint32_t CANONICAL_NAN = {CANONICAL_NAN:#x};", ""])  # fmt: skip


@cache
def lane_model() -> ctypes.CDLL:
    """The verilated lane with its harness."""
    files = {
        **read_sources(HERE, "binary32.h", "division.h", "lane_harness.cpp"),
        "lane_parameters.h": lane_parameters(),
    }
    text = verilog.convert(Lane(), name="lane", emit_src=coverage.is_wanted())
    return ctypes.CDLL(str(build_verilated("lane", text, files, top="lane")))


@cache
def reciprocal_model() -> ctypes.CDLL:
    """The verilated reciprocal unit with its harness."""
    text = verilog.convert(Reciprocal(), name="reciprocal", emit_src=coverage.is_wanted())
    files = read_sources(HERE, "binary32.h", "division.h", "reciprocal_harness.cpp")
    return ctypes.CDLL(str(build_verilated("reciprocal", text, files, top="reciprocal")))


@cache
def iterative_model() -> ctypes.CDLL:
    """The verilated iterative unit with its harness."""
    text = verilog.convert(IterativeUnit(), name="iterative", emit_src=coverage.is_wanted())
    names = ", ".join(f"OP_{op.name} = {op.value}" for op in IterativeOp)
    header = ["#pragma once", "#include <algorithm>", f"enum {{ {names}, OP_BITS = {Shape.cast(IterativeOp).width} }};",
              f"static const uint32_t CANONICAL_NAN = {CANONICAL_NAN:#x};", ""]  # fmt: skip
    files = {**read_sources(HERE, "binary32.h", "iterative_harness.cpp"), "iterative_parameters.h": "\n".join(header)}
    return ctypes.CDLL(str(build_verilated("iterative", text, files, top="iterative")))


def all_dividends_library() -> ctypes.CDLL:
    """Divisions by counts on the host."""
    return ctypes.CDLL(
        str(build_library("all_dividends", read_sources(HERE, "binary32.h", "division.h", "all_dividends.cpp")))
    )


def words(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint32]:
    """Integers as an array of 32-bit words."""
    return (ctypes.c_uint32 * len(values))(*values)


def run_grid(a: Sequence[int], b: Sequence[int], c: Sequence[int]) -> Report:
    """Every operation, with every sign flag, on every choice of one of ``a``, one of ``b`` and one of ``c``."""
    report = Report()
    sizes = [x for values in (a, b, c) for x in (words(values), len(values))]
    lane_model().check_grid(*sizes, ctypes.byref(report))
    return report


def run_random(seed: int, op: LaneOp, kind: Kind, count: int) -> Report:
    """``count`` times ``op`` on operands of one kind, with random sign flags, half of them with a result as addend."""
    report = Report()
    lane_model().check_random(ctypes.c_uint64(seed), op.value, kind.value, ctypes.c_uint64(count), ctypes.byref(report))
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


def run_iterative_pairs(op: IterativeOp, values: Sequence[int]) -> IterativeReport:
    """``op`` on every pair of ``values``, with some back-pressure."""
    report = IterativeReport()
    iterative_model().check_pairs(op.value, words(values), len(values), ctypes.byref(report))
    return report


def run_iterative_hard(op: IterativeOp, seed: int, count: int) -> IterativeReport:
    """``count`` times ``op`` on operands chosen to be hard."""
    report = IterativeReport()
    iterative_model().check_hard(op.value, ctypes.c_uint64(seed), ctypes.c_uint64(count), ctypes.byref(report))
    return report


def run_near_halfway_on_host(begin: int, end: int, step: int) -> Division:
    """Every ``step``-th number from ``begin`` (made odd) to ``end``, as ``run_near_halfway``, on the host."""
    found = Division()
    all_dividends_library().divide_near_halfway(begin, end, step, ctypes.byref(found))
    return found


def run_all_dividends(begin: int, end: int, *, subnormal: bool = False, skew: int = 0) -> Division:
    """Divide by each count from ``begin`` up to, not including, ``end``, on the host.

    Every dividend of a binade, or with ``subnormal`` every positive one with a quotient below twice the smallest normal
    number. ``skew`` spoils the reciprocal by so many units.
    """
    found, library = Division(), all_dividends_library()
    check = library.divide_subnormal if subnormal else library.divide_binade
    check(begin, end, skew, ctypes.byref(found))
    return found
