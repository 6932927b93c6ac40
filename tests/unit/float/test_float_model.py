"""The exact model of a lane against the C library."""

import ctypes
import ctypes.util

import numpy as np
import pytest

from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.isa.spec.binary32 import is_nan, lane_result

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
LIBM.fmaf.argtypes, LIBM.fmaf.restype = [ctypes.c_float] * 3, ctypes.c_float

REFERENCE = {
    LaneOp.MOVE: lambda a, b, c: a,
    LaneOp.ABS: lambda a, b, c: abs(a),
    LaneOp.MAX: lambda a, b, c: a if a > c else c,
    LaneOp.MIN: lambda a, b, c: a if a < c else c,
    LaneOp.ADD: lambda a, b, c: a + c,
    LaneOp.MUL: lambda a, b, c: a * b,
    LaneOp.FMA: lambda a, b, c: np.float32(LIBM.fmaf(a, b, c)),
    LaneOp.MUL_ADD: lambda a, b, c: a * b + c,
    LaneOp.SELECT: lambda a, b, c: a if b != 0 else c,
    LaneOp.GREATER: lambda a, b, c: a > c,
    LaneOp.LESS: lambda a, b, c: a < c,
    LaneOp.EQUAL: lambda a, b, c: a == c,
}


def _operands(rng: np.random.Generator) -> np.ndarray:
    """300 triples: some of any bits, some whose sum cancels, some small."""
    triples = rng.integers(0, 1 << 32, (300, 3), dtype=np.uint32)
    triples[100:200] = triples[100:200] & 0x83FFFFFF | 0x3C000000
    triples[200:300, 0] &= 0x80FFFFFF
    specials = np.array([0, 1, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32)
    triples[:20] = rng.choice(specials, (20, 3))
    return triples


@pytest.mark.parametrize("op", list(LaneOp))
def test_model(op, rng):
    for a, b, c in _operands(rng):
        with np.errstate(all="ignore"):
            want = np.float32(REFERENCE[op](*(x.view(np.float32) for x in (a, b, c)))).view(np.uint32)
        got = lane_result(op, int(a), int(b), int(c))
        assert got == want or (is_nan(got) and is_nan(int(want))), f"{op} {a:#x} {b:#x} {c:#x}"


def test_model_negates():
    one, two, three, six = 0x3F800000, 0x40000000, 0x40400000, 0x40C00000
    assert lane_result(LaneOp.FMA, two, two, two, negate_addend=True) == two
    assert lane_result(LaneOp.FMA, two, three, one, negate_product=True, negate_addend=True) == 0xC0E00000
    assert lane_result(LaneOp.MUL, two, three, one, negate_product=True) == six | 1 << 31
    assert lane_result(LaneOp.MOVE, two, three, one, negate_product=True) == two


def test_model_refuses_what_is_no_operation():
    with pytest.raises(ValueError, match="must be a LaneOp, not 'dance'"):
        lane_result("dance", 0, 0, 0)
