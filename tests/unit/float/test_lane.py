"""A lane against the C library: every operation on corners and on operands chosen to be hard."""

import pytest

from daedal.hw.execute_unit.lane import Lane
from daedal.hw.execute_unit.lane_op import LaneOp
from tests.unit.float.models import run_directed, run_random

pytestmark = pytest.mark.rtl

POSITIVE = [
    0x00000000, 0x00000001, 0x00000002, 0x00400000, 0x007FFFFF,  # zero, subnormals
    0x00800000, 0x00800001, 0x01000000, 0x0C800000, 0x20000000,  # smallest normals, products that underflow
    0x33800000, 0x34000000, 0x3F000000, 0x3F7FFFFF, 0x3F800000,  # 2**-24 and neighbours of 1
    0x3F800001, 0x40000000, 0x4B800000, 0x5F7FFFFF, 0x5F800000,  # 2**24, products that barely overflow
    0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC12345,  # largest, infinity, NaNs
]  # fmt: skip
CORNERS = [*POSITIVE, *(value | 1 << 31 for value in POSITIVE)]


def test_corners():
    """All triples of 50 corners, with every operation and every sign flag."""
    report = run_directed(CORNERS)
    assert report.checked == 4 * len(LaneOp) * len(CORNERS) ** 3
    assert not report.wrong, report


@pytest.mark.parametrize("part", range(4))
def test_hard_operands(seed, part):
    """Ten million operations in all: alignment, cancellation, near ties, overflow, underflow."""
    report = run_random(seed + 1000 * part, 2_500_000)
    assert report.checked == 2_500_000
    assert not report.wrong, report


def test_accumulator_joins_late():
    assert (Lane.join, Lane.latency) == (4, 9)
