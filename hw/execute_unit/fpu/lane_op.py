"""What one binary32 lane can do."""

from amaranth.lib import enum


class LaneOp(enum.Enum, shape=4):
    """Operation of a :class:`~daedal.hw.execute_unit.fpu.lane.Lane` on operands ``a``, ``b`` and addend ``c``.

    ``p`` is ``a * b``, negated under ``negate_product``; ``c`` is negated under ``negate_addend``. Only the
    operations that name ``p`` or ``c`` heed those flags: the moves and comparisons ignore both.
    """

    MOVE = 0
    """``a``, every bit of it, also of a NaN."""
    ABS = 1
    """``a`` with its sign cleared, also of a NaN."""
    MAX = 2
    """``a if a > c else c``: ``c`` stays when either is a NaN, and between zeros of either sign."""
    MIN = 3
    """``a if a < c else c``, with the same rules."""
    ADD = 4
    """``a + c`` (``a`` is negated under ``negate_product``); ``b`` is ignored."""
    MUL = 5
    """``p`` rounded once; ``c`` is to be +0.0, and is ignored."""
    FMA = 6
    """``p + c`` with one rounding."""
    MUL_ADD = 7
    """``p`` rounded, then ``+ c`` rounded."""
    SELECT = 8
    """``a`` if ``b`` is not a zero, else ``c``; every bit, also of a NaN. A NaN in ``b`` is no zero."""
    GREATER = 9
    """1.0 if ``a > c``, else +0.0; a NaN is not greater."""
    LESS = 10
    """1.0 if ``a < c``, else +0.0; a NaN is not less."""
    EQUAL = 11
    """1.0 if ``a == c``, else +0.0; a NaN equals nothing, zeros of either sign are equal."""
