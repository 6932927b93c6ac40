"""The reciprocal unit: right for every count, quick for those in the table."""

import pytest

from daedal.hw.execute_unit.fpu.float_divide import TABLE_BITS
from daedal.hw.execute_unit.fpu.float_reciprocal import Reciprocal
from tests.unit.float.models import run_reciprocals

pytestmark = pytest.mark.rtl

LARGEST = (1 << 24) - 1


@pytest.mark.parametrize("pause", [0, 3])
def test_small_counts_and_powers_of_two(pause):
    counts = [*range(1, 5000), *(min((1 << n) + off, LARGEST) for n in range(12, 25) for off in (-1, 0, 1))]
    report = run_reciprocals(counts, pause=pause)
    assert report.checked == len(counts)
    assert not report.wrong, f"{report.wrong} wrong, first for {report.first}"
    assert report.longest == Reciprocal.latency


def test_large_counts(rng):
    counts = [int(x) for x in rng.integers(1, LARGEST, 100_000, endpoint=True)]
    report = run_reciprocals(counts)
    assert not report.wrong, f"{report.wrong} wrong, first for {report.first}"


def test_counts_in_the_table_take_a_cycle():
    report = run_reciprocals(range(1, 1 << TABLE_BITS))
    assert (report.wrong, report.shortest, report.longest) == (0, 1, 1)
