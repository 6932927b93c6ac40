# amaranth: UnusedElaboratable=no
"""The execute unit against a model of its instructions."""

from dataclasses import replace
from functools import cache

import pytest

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.execute_unit import ExecuteUnit
from tests.unit.harness import ODD, run_cocotb

BENCHES = ("bench_directed", "bench_execute_unit", "bench_faults", "bench_quotients", "bench_scalars")

ONE_LANE = replace(ODD, name="one-lane", lanes=1, register_beats=16, store_beats=33, vector_registers=4, scalars=4)
"""All partial results of a reduction lie in beats of their own."""

WIDE = Config.preset("wide")

OTHERS = [
    ("bench_execute_unit", ONE_LANE), ("bench_scalars", ONE_LANE),
    pytest.param("bench_execute_unit", WIDE, marks=pytest.mark.full),
    pytest.param("bench_scalars", WIDE, marks=pytest.mark.full),
    pytest.param("bench_execute_unit", Config.preset("minimum"), marks=pytest.mark.full),
]  # fmt: skip


NARROW = replace(ODD, name="narrow", binary16=1, bfloat16=1)
"""Rows may be of all types that there are."""

HALVES = replace(NARROW, name="halves", bus_bytes=16, lanes=4, binary16=0)

QUANTISED = replace(NARROW, name="quantised", quantised=1)
"""Every type of rows, and heads."""

UNSIGNED = [
    replace(HALVES, name="unsigned", bfloat16=0, quantised=1),
    replace(ONE_LANE, name="unsigned1", quantised=1),
    replace(ODD, name="unsigned8", bus_bytes=32, lanes=8, quantised=1),
    replace(ODD, name="unsigned16", bus_bytes=16, lanes=16, quantised=1),
]
"""Lanes of which a beat holds a number of a head, a head, or more than one; whose integers lie in two parts of it."""

AFFINE = [
    replace(QUANTISED, name="affine4", bus_bytes=16, lanes=4, preadder=1),
    replace(QUANTISED, name="affine16", bus_bytes=16, lanes=16, preadder=1),
]
"""The same with pre-adders: heads that are half of a beat or less."""

TWO_PASS = [
    replace(config, name=config.name.replace("affine", "two-pass"), preadder=0, two_pass=1) for config in AFFINE
]
"""Without them."""

WIDE_TYPES = [
    replace(WIDE, name="wide-types", binary16=1, bfloat16=1, quantised=1),
    replace(WIDE, name="wide-affine", binary16=1, bfloat16=1, quantised=1, preadder=1),
]
"""Lines of as many words as there are lanes, which hold most rows of narrow elements with their head."""

EDGE = Config.preset("edge")
"""Its random programs are left to `make test-full`."""

UNITS = [
    *((config, bench) for config in (Config.preset("ddr3"), ODD) for bench in BENCHES),
    (EDGE, "bench_directed"), (EDGE, "bench_faults"), (EDGE, "bench_quotients"),
    *((NARROW, bench) for bench in ("bench_narrow", "bench_execute_unit", "bench_scalars")),
    *(pytest.param(HALVES, bench, marks=pytest.mark.full) for bench in ("bench_narrow", "bench_execute_unit")),
    *((QUANTISED, bench) for bench in ("bench_unsigned", "bench_narrow", "bench_execute_unit")),
    *((config, "bench_unsigned") for config in UNSIGNED),
    *((config, "bench_affine") for config in AFFINE + TWO_PASS),
    *((config, bench) for config in (AFFINE[0], TWO_PASS[0]) for bench in ("bench_execute_unit", "bench_scalars")),
    *(pytest.param(WIDE_TYPES[0], bench, marks=pytest.mark.full) for bench in ("bench_unsigned", "bench_narrow")),
    *(pytest.param(WIDE_TYPES[1], bench, marks=pytest.mark.full) for bench in ("bench_unsigned", "bench_affine")),
    pytest.param(EDGE, "bench_execute_unit", marks=pytest.mark.full),
    pytest.param(EDGE, "bench_scalars", marks=pytest.mark.full),
]  # fmt: skip

execute_unit = cache(ExecuteUnit)
"""One unit for all benches: it becomes Verilog once."""


@pytest.mark.rtl
@pytest.mark.parametrize(("config", "bench"), UNITS, ids=lambda value: getattr(value, "name", value))
def test_execute_unit(config, bench):
    run_cocotb(execute_unit(config), "execute_unit", f"tests.unit.execute_unit.{bench}", parameters={"config": config})


@pytest.mark.rtl
@pytest.mark.parametrize(("bench", "config"), OTHERS, ids=lambda value: getattr(value, "name", value))
def test_other_lanes(config, bench):
    """One lane; as many as there are partial results; no scalars at all."""
    run_cocotb(execute_unit(config), "execute_unit", f"tests.unit.execute_unit.{bench}", parameters={"config": config})
