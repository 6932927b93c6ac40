"""The specification of sums and products against exact rational arithmetic, and against the C library."""

import ctypes
import ctypes.util

import numpy as np
import pytest

from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.binary32 import as_bits, fused
from daedal.hw.isa.spec.execute import compute
from daedal.hw.isa.spec.rational import is_nan, multiply_add

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
LIBM.fmaf.argtypes, LIBM.fmaf.restype = [ctypes.c_float] * 3, ctypes.c_float
ONE, SIGN = 0x3F800000, 1 << 31


def product(a: int, b: int) -> int:
    """``a * b``, rounded: what is added to it changes nothing."""
    return multiply_add(a, b, (a ^ b) & SIGN)


EXACT = {
    VectorOp.ADD: lambda a, b, c: multiply_add(a, ONE, c),
    VectorOp.SUBTRACT: lambda a, b, c: multiply_add(a, ONE, c ^ SIGN),
    VectorOp.MULTIPLY: lambda a, b, c: product(a, b),
    VectorOp.FMA: multiply_add,
    VectorOp.MUL_ADD: lambda a, b, c: multiply_add(product(a, b), ONE, c),
}


def _operands(rng: np.random.Generator) -> np.ndarray:
    """Triples: some of any bits, some whose sum cancels, some small, some beside ties."""
    triples = rng.integers(0, 1 << 32, (300, 3), dtype=np.uint32)
    triples[100:200] = triples[100:200] & 0x83FFFFFF | 0x3C000000
    triples[200:300, 0] &= 0x80FFFFFF
    specials = np.array([0, 1, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000], np.uint32)
    triples[:20] = rng.choice(specials, (20, 3))
    return np.concatenate([triples, _beside_ties(rng).view(np.uint32)])


def _beside_ties(rng: np.random.Generator) -> np.ndarray:
    """100 triples whose product is halfway between two numbers, and what is added is far too small for binary64."""
    a = rng.integers(4096, 5793, 100) | 1
    b = ((1 << 24) // a + 2) | 1  # the product is odd and has 25 bits
    return np.stack([a, b, rng.choice([1e-30, -1e-30], 100)], axis=1).astype(np.float32)


@pytest.mark.parametrize("op", EXACT)
def test_rounds_as_exact_arithmetic_says(op, rng):
    triples = _operands(rng)
    found = as_bits(compute(op, *triples.T.copy().view(np.float32)))
    for (a, b, c), got in zip(triples, found, strict=True):
        want = EXACT[op](int(a), int(b), int(c))
        assert got == want, f"{op} {a:#x} {b:#x} {c:#x}: {got:#x}, not {want:#x}"


def test_fused_is_that_of_the_c_library(rng):
    """On random bits, on sums that cancel, and on the triples of exact arithmetic."""
    a, b, c = rng.integers(0, 1 << 32, (3, 4000), dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        c[2000:] = -(a[2000:] * b[2000:])
    a[:400], b[:400], c[:400] = _operands(rng).T.copy().view(np.float32)
    found = as_bits(compute(VectorOp.FMA, a, b, c))
    wanted = np.array([LIBM.fmaf(*map(float, one)) for one in zip(a, b, c, strict=True)], np.float32).view(np.uint32)
    for got, want in zip(found, wanted, strict=True):
        assert got == want or (is_nan(int(got)) and is_nan(int(want)))


@pytest.mark.parametrize(("b", "total"), [(1.0, 1.0), (1 + 2**-23, 1 + 2**-22), (-1 - 2**-23, -1.0)])
def test_exact_ties_of_a_fused_sum_go_to_even(b: float, total: float) -> None:
    one, factor, half = (np.array([value], np.float32) for value in (1.0, b, 2**-24))
    assert fused(one, factor, half).tolist() == [total]
