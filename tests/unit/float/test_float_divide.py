"""Division by a count: on the lane, in the model, and the reasoning behind it."""

from fractions import Fraction

import numpy as np
import pytest

from daedal.hw.execute_unit.fpu.float_divide import KEPT_BITS, TABLE_BITS, cut_product, factor
from daedal.hw.execute_unit.fpu.float_reciprocal import table
from tests.unit.float.models import (
    run_all_dividends,
    run_divisions,
    run_near_halfway,
    run_near_halfway_on_host,
)

LARGEST = (1 << 24) - 1
IN_TABLE = 1 << TABLE_BITS
COUNTS = [1, 2, 3, 6, 7, 10, 511, 512, 513, 768, 1000, 4096, 4095, 7340034, 1 << 23, LARGEST - 1, LARGEST]


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
    powers = [min(2**n + off, LARGEST) for n in range(9, 25) for off in (-1, 0, 1)]
    counts = [*powers, *(int(x) for x in 2 ** rng.uniform(12, 24, 4000))]
    report = run_divisions(seed, counts, each=256)
    assert report.noted > report.checked // 100, "too few ties to tell"
    assert not report.wrong, report


@pytest.mark.rtl
@pytest.mark.parametrize(("least", "most"), [(3, IN_TABLE), (IN_TABLE, 1 << 14), (1 << 21, LARGEST)])
def test_quotients_next_to_halfway(rng, least, most):
    """Odd counts, and the dividends for which a product has the least room."""
    # A small count has more of them than a large one.
    counts = rng.integers(least, most, 20 if most == IN_TABLE else 200 if most < LARGEST else 20_000)
    report = run_near_halfway([int(x) | 1 for x in counts])
    assert report.checked > 50_000
    assert not report.wrong, report


@pytest.mark.parametrize("step", [509, pytest.param(1, marks=pytest.mark.full)])
def test_large_odd_counts_have_enough_bits(step):
    """Every ``step``-th odd count from 2**21, all significands whose quotient is next to a halfway point."""
    found = run_near_halfway_on_host(1 << 21, 1 << 24, 2 * step)
    assert found.checked > 100_000_000 // step
    assert not found.wrong, found


@pytest.mark.parametrize("count", [3, 511, 4095, pytest.param(7340033, marks=pytest.mark.full)])
def test_all_dividends(count):
    """A sample of what `make test-full` does for every count up to 4096."""
    normal = run_all_dividends(count, count + 1)
    assert (normal.checked, normal.wrong) == (1 << 23, 0)
    subnormal = run_all_dividends(count, count + 1, subnormal=True)
    assert subnormal.checked > 1 << 23
    assert not subnormal.wrong, subnormal


def test_all_dividends_notice_a_wrong_reciprocal():
    """For a normal quotient one that is too small or far too large, for a tie one that is too small by the least."""
    assert run_all_dividends(511, 512, skew=1 << 14).wrong
    assert run_all_dividends(500, 501, skew=-(1 << 14)).wrong
    assert run_all_dividends(6, 7, subnormal=True, skew=-1).wrong
    assert run_all_dividends(514, 515, subnormal=True, skew=-(1 << 20)).wrong


def _dividends(count: int, rng: np.random.Generator) -> list[int]:
    """Positive, finite patterns: any, small, with quotients halfway between subnormal numbers and beside."""
    odd = [k * count // 2 for k in range(1, 64, 2) if count % 2 == 0 and k * count < 1 << 25]
    small = [n for tie in odd for n in (tie - 1, tie, tie + 1)] + [1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x7F7FFFFF]
    return [*small, *(int(x) for most in (0x7F800000, 1 << 25) for x in rng.integers(1, most, 200))]


@pytest.mark.parametrize("count", COUNTS)
def test_what_is_kept_of_a_product(count, rng):
    """What the lane rounds lies on the same side of every halfway point as the quotient, or on it if that does."""
    y = factor(count)
    for bits in _dividends(count, rng):
        field = bits >> 23
        significand = (bits & 0x7FFFFF) | (bool(field) << 23)
        kept = cut_product(significand, count)
        assert kept < 1 << KEPT_BITS
        unit = Fraction(2) ** (max(field, 1) - 150)
        got, exact = kept * unit * Fraction(2) ** (y.exponent - 127 - 23), significand * unit / count
        with np.errstate(all="ignore"):
            want = np.uint32(bits).view(np.float32) / np.float32(count)
        # Half of the last place of the quotient, below which nothing is looked at.
        half = Fraction(2) ** (max(int(want.view(np.uint32)) >> 23, 1) - 151)
        assert (got // half, got % half == 0) == (exact // half, exact % half == 0), f"{bits:#x} / {count}"


@pytest.mark.parametrize("count", COUNTS)
def test_a_reciprocal_is_never_too_small(count):
    y = factor(count)
    bits = 54 if y.long else 36
    exact = Fraction(2) ** (bits - 1 + 127 - y.exponent) / count
    assert exact <= (y.high << 36 | y.low) < exact + 2
    assert (y.high << 36 | y.low) >> bits - 1 == 1


def test_the_table_has_every_reciprocal():
    words = table()
    assert len(words) == IN_TABLE
    for count, word in enumerate(words[1:], 1):
        assert word % (1 << 35) == factor(count).low % (1 << 35)
        assert bool(word >> 35) == (count & (count - 1) == 0)


@pytest.mark.parametrize("count", [0, -1, 1 << 24])
def test_refuses_a_count_out_of_range(count):
    with pytest.raises(ValueError, match=rf"at least 1 and below 2\*\*24, not {count}"):
        factor(count)
