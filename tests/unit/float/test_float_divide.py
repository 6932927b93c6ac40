"""Division by a count in three passes: on the lane, in the model, and the reasoning behind it."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from daedal.cosim.builder.library import build_library, read_sources
from daedal.hw.execute_unit.fpu.float_divide import divide_passes
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.binary32 import as_bits, from_bits
from daedal.hw.isa.spec.execute import compute
from daedal.hw.isa.spec.rational import is_nan
from tests.unit.float.models import run_all_dividends, run_divisions, run_near_halfway

LARGEST = (1 << 24) - 1


@pytest.mark.rtl
def test_small_counts(seed):
    """Every count that a short bag has, with many quotients halfway between subnormals."""
    report = run_divisions(seed, range(1, 4097), each=64)
    assert report.checked == 4096 * 64
    assert report.noted > report.checked // 50, "too few ties to tell"
    assert not report.wrong, report


@pytest.mark.rtl
def test_large_counts(seed, rng):
    """Counts up to the largest, those around powers of two among them."""
    powers = [min(2**n + off, LARGEST) for n in range(12, 25) for off in (-1, 0, 1)]
    counts = [*powers, *(int(x) for x in 2 ** rng.uniform(12, 24, 4000))]
    report = run_divisions(seed, counts, each=256)
    assert report.noted > report.checked // 100, "too few ties to tell"
    assert not report.wrong, report


@pytest.mark.rtl
def test_quotients_next_to_halfway(rng):
    """Large odd counts, where three passes have the least room."""
    report = run_near_halfway([int(x) | 1 for x in rng.integers(1 << 21, LARGEST, 20000)])
    assert report.checked > 50_000
    assert not report.wrong, report


@pytest.mark.parametrize("step", [127, pytest.param(1, marks=pytest.mark.full)])
def test_three_passes_are_enough(step):
    """Every ``step``-th odd count from 2**21, all significands whose quotient is next to a halfway point."""
    library = build_library("three_passes", read_sources(Path(__file__).parent, "three_passes.cpp"))
    wrong, checked = ctypes.c_uint64(), ctypes.c_uint64()
    run = ctypes.CDLL(str(library)).three_passes
    run(1 << 21, 1 << 24, 2 * step, ctypes.byref(checked), ctypes.byref(wrong))
    assert checked.value > 100_000_000 // step
    assert wrong.value == 0


@pytest.mark.parametrize("count", [3, 4095, pytest.param(7340033, marks=pytest.mark.full)])
def test_all_dividends(count):
    """A sample of what `make test-full` does for every count up to 4096."""
    normal = run_all_dividends(count, count + 1)
    assert (normal.checked, normal.wrong) == (1 << 23, 0)
    subnormal = run_all_dividends(count, count + 1, subnormal=True)
    assert subnormal.checked > 1 << 23
    assert not subnormal.wrong, subnormal


def test_all_dividends_notice_a_wrong_reciprocal():
    assert run_all_dividends(1000, 1001, skew=100_000).wrong
    assert run_all_dividends(6, 7, subnormal=True, skew=100_000).wrong


def lane(op: LaneOp, a: int, b: int, c: int, *, negate_product: bool = False) -> int:
    """A lane's result by the specification, on patterns."""
    named = VectorOp.MULTIPLY if op is LaneOp.MUL else VectorOp[op.name]
    operands = (from_bits([each]) for each in (a ^ negate_product << 31, b, c))
    return int(as_bits(compute(named, *operands))[0])


def _bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 10, 1000, 4096, 7340034, LARGEST])
def test_the_sequence_of_passes(count, rng):
    """``divide_passes`` on the model of a lane gives NumPy's quotient."""
    ties = [k * (count // 2) for k in (1, 3, 5) if count % 2 == 0 and k * count < 1 << 24]
    specials = [0, 0x7F800000, 0x7FC00000, 1, 2, 0x7FFFFF, 0x800000, 0x7F7FFFFF]
    values = [*ties, *specials, *(int(x) for x in rng.integers(0, 1 << 31, 200))]
    reciprocal, value = _bits(np.float32(1) / np.float32(count)), _bits(count)
    for bits in [*values, *(x | 1 << 31 for x in values)]:
        got = divide_passes(lane, bits, count, reciprocal=reciprocal, value=value)
        with np.errstate(all="ignore"):
            want = _bits(np.uint32(bits).view(np.float32) / np.float32(count))
        assert got == want or (is_nan(got) and is_nan(want)), f"{bits:#x} / {count}"


@pytest.mark.parametrize("count", [0, -1, 1 << 24])
def test_refuses_a_count_out_of_range(count):
    with pytest.raises(ValueError, match=rf"at least 1 and below 2\*\*24, not {count}"):
        divide_passes(lane, 0, count, reciprocal=0, value=0)
