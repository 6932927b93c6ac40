"""What the iterative unit can do."""

from amaranth.lib import enum


class IterativeOp(enum.Enum, shape=3):
    """Operation of :class:`~daedal.hw.execute_unit.fpu.iterative_unit.IterativeUnit` on operands ``a`` and ``b``."""

    NONE = 0
    """Nothing: a row that is for the lanes."""
    DIVIDE = 1
    """``a / b``, correctly rounded."""
    RECIPROCAL = 2
    """``1 / a``, correctly rounded."""
    SQUARE_ROOT = 3
    """The square root of ``a``, correctly rounded."""
    TO_FLOAT = 4
    """``a``, a signed integer of 32 bits, as binary32."""
    TO_INTEGER = 5
    """``a`` rounded to the nearest integer, ties to even, as 32 signed bits."""
    SCALE = 6
    """``a * 2**b``, ``b`` a signed integer of 32 bits, rounded once."""
