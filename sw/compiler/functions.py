"""Functions that the machine has no operation for, as sequences of those it has.

Each is written once, on ``Arithmetic``: the compiler gives one that makes operations, ``Reference`` one that
computes the same bits with NumPy.
"""

from typing import Any, Protocol, TypeVar

import numpy as np

from daedal.base.float_mode import default_float_mode
from daedal.hw.isa.spec import binary32
from daedal.hw.isa.spec.binary32 import Floats

Value = TypeVar("Value")

LEAST, MOST = -104.0, 89.0
"""exp of less rounds to +0.0, exp of more to an infinity."""

LOG2_E = 1.44269504
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
"""ln(2) in two parts, the first with few bits: its product with a whole number is exact."""

SERIES = (0.0013814539, 0.008368745, 0.04166839, 0.16666521, 0.49999994)
"""Factors of r**6 to r**2: the polynomial of least relative error for exp(r), -ln(2)/2 <= r <= ln(2)/2, whose other
factors are 1.
"""


class Arithmetic(Protocol[Value]):
    """Operations of the scalar unit."""

    def constant(self, number: float) -> Value:
        """An f32."""
        ...

    def multiply(self, a: Value, b: Value) -> Value:
        """``a * b``."""
        ...

    def add(self, a: Value, b: Value) -> Value:
        """``a + b``."""
        ...

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """``a * b + c``, rounded once."""
        ...

    def divide(self, a: Value, b: Value) -> Value:
        """``a / b``."""
        ...

    def absolute(self, a: Value) -> Value:
        """``a`` without its sign."""
        ...

    def keep_greater(self, a: Value, b: Value) -> Value:
        """``a > b ? a : b``."""
        ...

    def keep_less(self, a: Value, b: Value) -> Value:
        """``a < b ? a : b``."""
        ...

    def equal(self, a: Value, b: Value) -> Value:
        """1.0 if ``a == b``, else +0.0."""
        ...

    def select(self, mask: Value, a: Value, b: Value) -> Value:
        """``mask != 0 ? a : b``."""
        ...

    def to_integer(self, a: Value) -> Value:
        """The nearest integer of 32 bits, ties to even."""
        ...

    def to_float(self, a: Value) -> Value:
        """An integer of 32 bits as f32."""
        ...

    def scale(self, a: Value, power: Value) -> Value:
        """``a * 2**power``, rounded once."""
        ...


def exponential(op: Arithmetic[Value], x: Value) -> Value:
    """exp(x) within ``EXPONENTIAL_ULP``: 2**k * exp(r) with a whole k and |r| <= ln(2)/2 or little more."""
    return _power(op, op.keep_less(op.constant(MOST), x))


def sigmoid(op: Arithmetic[Value], x: Value) -> Value:
    """1 / (1 + exp(-x)) within ``SIGMOID_ULP``: (x < 0 ? e : 1) / (1 + e) with e = exp(-|x|), which is 1 at most."""
    size, one = op.absolute(x), op.constant(1.0)
    positive = op.equal(x, size)
    e = _power(op, op.multiply(size, op.constant(-1.0)))
    return op.divide(op.select(positive, one, e), op.add(e, one))


def _power(op: Arithmetic[Value], x: Value) -> Value:
    """Exp of what is no more than ``MOST``."""
    x = op.keep_greater(op.constant(LEAST), x)
    whole = op.to_integer(op.multiply(x, op.constant(LOG2_E)))
    number = op.to_float(whole)
    rest = op.fma(number, op.constant(-LN2_HIGH), x)
    rest = op.fma(number, op.constant(-LN2_LOW), rest)
    total = op.constant(SERIES[0])
    for factor in (*SERIES[1:], 1.0, 1.0):
        total = op.fma(total, rest, op.constant(factor))
    return op.scale(total, whole)


EXPONENTIAL_ULP = 1.0
SIGMOID_ULP = 2.5
"""Bounds of the errors, in units in the last place of the exact result."""


class Reference:
    """``Arithmetic`` on arrays, bit for bit as the machine does it."""

    multiply = staticmethod(binary32.multiply)
    add = staticmethod(binary32.add)
    fma = staticmethod(binary32.fused)
    divide = staticmethod(binary32.divide)
    absolute = staticmethod(binary32.absolute)
    keep_greater = staticmethod(binary32.greater)
    keep_less = staticmethod(binary32.less)
    select = staticmethod(binary32.select)
    to_integer = staticmethod(binary32.to_integer)
    to_float = staticmethod(binary32.to_float)
    scale = staticmethod(binary32.scale)

    def constant(self, number: float) -> Any:
        """An f32."""
        return np.float32(number)

    def equal(self, a: Any, b: Any) -> Any:
        """1.0 if ``a == b``, else +0.0."""
        return binary32.truth(a == b)


@default_float_mode()
def numpy_exponential(x: Floats | np.float32) -> Floats:
    """What a program's exponential gives for an array of f32."""
    with np.errstate(all="ignore"):
        return np.asarray(exponential(Reference(), x), np.float32)


@default_float_mode()
def numpy_sigmoid(x: Floats | np.float32) -> Floats:
    """What a program's sigmoid gives for an array of f32."""
    with np.errstate(all="ignore"):
        return np.asarray(sigmoid(Reference(), x), np.float32)
