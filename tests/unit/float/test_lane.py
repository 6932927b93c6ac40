"""A lane against the C library: every operation on corners and on operands chosen to be hard."""

import pytest

from daedal.hw.execute_unit.fpu.lane import Lane
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from tests.unit.float.models import Kind, run_grid, run_random
from tests.unit.float.operands import CORNERS, alignments

pytestmark = pytest.mark.rtl

CASES = 50_000
"""Random cases of each operation and kind; `make test-full` runs the same with far more."""


def test_corners():
    """All triples of 50 corners, with every operation and every sign flag."""
    report = run_grid(CORNERS, CORNERS, CORNERS)
    assert report.checked == 4 * len(LaneOp) * len(CORNERS) ** 3
    assert not report.wrong, report


def test_alignment_distances():
    """Factors of about 1, addends at every distance."""
    a, b, c = alignments(fractions=4)
    report = run_grid(a, b, c)
    assert report.checked == 4 * len(LaneOp) * len(a) * len(b) * len(c)
    assert not report.wrong, report


@pytest.mark.parametrize("kind", list(Kind))
def test_hard_operands(seed, kind):
    """A sample of what `make test-full` runs."""
    for op in LaneOp:
        report = run_random(seed + 1000 * op.value, op, kind, CASES)
        assert report.checked == CASES
        assert not report.wrong, report


def test_accumulator_joins_late():
    assert (Lane.join, Lane.latency) == (5, 10)
