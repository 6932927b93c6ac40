"""The binary32 format, and the registers between the stages of a lane."""

from typing import Any

from amaranth import Cat, Module, Signal, Value
from amaranth.hdl import ShapeLike, ValueLike
from amaranth.lib import data

FRACTION_BITS = 23
SIGNIFICAND_BITS = FRACTION_BITS + 1
EXPONENT_BIAS = 127
EXPONENT_SPECIAL = 0xFF
"""Exponent field of infinities and NaNs."""

ONE = 0x3F800000
HALF = 0x3F000000
SMALLEST_SUBNORMAL = 0x00000001
INFINITY = 0x7F800000
CANONICAL_NAN = 0x7FC00000
"""The only NaN that arithmetic produces: quiet, positive, no payload."""


class Float32(data.Struct):
    """IEEE-754 binary32, first field least significant."""

    fraction: 23
    exponent: 8
    sign: 1

    def hidden(self) -> Value:
        """The hidden bit: 0 for zeros and subnormals."""
        return self.exponent.any()

    def significand(self) -> Value:
        """24 bits: the hidden bit, then the fraction."""
        return Cat(self.fraction, self.hidden())

    def effective_exponent(self) -> Value:
        """The exponent field, but 1 for zeros and subnormals: what scales the significand."""
        return Cat(self.exponent[0] | ~self.hidden(), self.exponent[1:])

    def is_zero(self) -> Value:
        """Either zero."""
        return ~(self.exponent.any() | self.fraction.any())

    def is_infinite(self) -> Value:
        """Either infinity."""
        return self.exponent.all() & ~self.fraction.any()

    def is_nan(self) -> Value:
        """Any NaN."""
        return self.exponent.all() & self.fraction.any()


def register(m: Module, value: ValueLike, name: str, *, cycles: int = 1, shape: ShapeLike | None = None) -> Any:
    """``value`` delayed by ``cycles`` registers without reset, in its own shape unless another is given."""
    stage: Any = value
    for n in range(cycles):
        delayed = Signal(
            Value.cast(value).shape() if shape is None else shape,
            name=name if n == cycles - 1 else f"{name}_{n + 1}",
            reset_less=True,
        )
        m.d.sync += delayed.eq(stage)
        stage = delayed
    return stage
