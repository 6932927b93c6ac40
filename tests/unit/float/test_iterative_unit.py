"""The iterative unit against the C library: every operation on corners and on operands chosen to be hard."""

import pytest

from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.execute_unit.fpu.iterative_unit import IterativeUnit
from tests.unit.float.models import run_iterative_hard, run_iterative_pairs
from tests.unit.float.test_lane import CORNERS

pytestmark = pytest.mark.rtl

OPERATIONS = [op for op in IterativeOp if op is not IterativeOp.NONE]
INTEGERS = [
    2, 3, 23, 24, 25, 126, 127, 149, 150, 254, 255, 276, 277, 278, 279, 511, 512, 513, 0x7FFFFFFF, 0x01000001,
    0x01000003, 0x7FFFFFBF, 0x7FFFFFC0, 0x4B000000, 0x4B000001, 0x3F000001, 0x3FC00000, 0x40200000, 0x4EFFFFFF,
    0x4F000000,
]  # fmt: skip
"""As integers, scales and others; as binary32, halves and numbers near 2**31."""

VALUES = [*CORNERS, *INTEGERS, *(-value & 0xFFFFFFFF for value in INTEGERS), *(1 << 31 | value for value in INTEGERS)]


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name.lower())
def test_corners(op):
    report = run_iterative_pairs(op, VALUES)
    assert report.checked == len(VALUES) ** 2
    assert not report.wrong, report
    assert report.longest <= IterativeUnit.latency


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name.lower())
def test_hard_operands(op, seed):
    """Near halfway points, in and out of the subnormal numbers, and any bits."""
    report = run_iterative_hard(op, seed, 300_000)
    assert report.checked == 300_000
    assert not report.wrong, report
    assert report.longest <= IterativeUnit.latency
