"""Integers of a kernel as expressions: what they depend on, and between which numbers they lie."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

Interval = tuple[int, int]
"""Smallest and largest value."""

UNKNOWN: Interval = (-(1 << 39), (1 << 39) - 1)
"""What the integers of any machine may be: they have 40 bits or fewer."""

LONGEST = 200
"""Parts of an expression; far more than the arithmetic that a level of the machine has."""


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: int


@dataclass(frozen=True)
class Given:
    """A number that a call gives: a size, or a scalar argument."""

    name: str


@dataclass(frozen=True)
class Induction:
    """The variable of the loop number ``loop``."""

    loop: int
    name: str


@dataclass(frozen=True)
class Element:
    """An element of an array of integers."""

    array: str
    indices: tuple["Integer", ...]


@dataclass(frozen=True)
class Binary:
    """``add``, ``sub``, ``mul``, ``min``, ``max``, ``and``, ``shift_left`` or ``shift_right`` of two integers.

    In limits also ``div``, a quotient of what a call gives, neither negative.
    """

    kind: str
    a: "Integer"
    b: "Integer"


Integer: TypeAlias = Number | Given | Induction | Element | Binary

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": min,
    "max": max,
    "div": lambda a, b: a // b,
    "and": lambda a, b: a & b,
    "shift_left": lambda a, b: a << b,
    "shift_right": lambda a, b: a >> b,
}


def combine(kind: str, a: Integer, b: Integer) -> Integer:
    """The expression, folded where that is plain; with what a call gives, sums, which cost nothing in an index."""
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(_FOLDED[kind](a.value, b.value))
    if kind in ("add", "sub") and b == Number(0):
        return a
    if kind == "add" and a == Number(0):
        return b
    if kind == "sub" and is_given(b) and not is_given(a):
        return combine("add", a, combine("sub", Number(0), b))
    if kind == "mul" and Number(1) in (a, b):
        return b if a == Number(1) else a
    if kind == "mul" and not (is_given(a) and is_given(b)):
        return _product(a, b)
    if kind == "add":
        return _sum(a, b)
    return Binary(kind, a, b)


def _product(a: Integer, b: Integer) -> Integer:
    """A product with a negative number as what is less than 0: the machine's factors have no signs."""
    if isinstance(a, Number):
        a, b = b, a
    if isinstance(b, Number) and b.value < 0:
        return combine("sub", Number(0), combine("mul", a, Number(-b.value)))
    return Binary("mul", a, b)


def _sum(a: Integer, b: Integer) -> Integer:
    """A sum with a difference as one difference, so that what is multiplied by a pitch is not below 0."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Binary) and one.kind == "sub" and is_given(one.a) and not is_given(one):
            if is_given(other):
                return combine("sub", combine("add", one.a, other), one.b)
            if one.a == Number(0):
                return combine("sub", other, one.b)
    return Binary("add", a, b)


def is_longer(expression: Integer, limit: int) -> bool:
    """Whether an expression has more than ``limit`` parts."""
    return next(islice(parts(expression), limit, None), None) is not None


def parts(expression: Integer) -> Iterator[Integer]:
    """The expression and everything in it."""
    yield expression
    if isinstance(expression, Binary):
        yield from parts(expression.a)
        yield from parts(expression.b)
    elif isinstance(expression, Element):
        for index in expression.indices:
            yield from parts(index)


def is_given(expression: Integer) -> bool:
    """Whether a call decides the value before it starts."""
    return not any(isinstance(part, Induction | Element) for part in parts(expression))


def replace_in(expression: Integer, old: Integer, new: Integer) -> Integer:
    """The expression with ``new`` in the place of ``old``."""
    if expression == old:
        return new
    if isinstance(expression, Binary):
        return combine(expression.kind, replace_in(expression.a, old, new), replace_in(expression.b, old, new))
    if isinstance(expression, Element):
        return Element(expression.array, tuple(replace_in(index, old, new) for index in expression.indices))
    return expression


def split_sum(expression: Integer) -> tuple[Integer, Integer]:
    """``expression`` as what loops and loads decide, plus what a call gives."""
    if is_given(expression):
        return Number(0), expression
    if isinstance(expression, Binary) and expression.kind in ("add", "sub"):
        (a, first), (b, second) = split_sum(expression.a), split_sum(expression.b)
        return combine(expression.kind, a, b), combine(expression.kind, first, second)
    return expression, Number(0)


def term(expression: Integer) -> Integer:
    """What is multiplied by the pitch of an array: the index without what a call adds to it."""
    while isinstance(expression, Binary) and expression.kind == "add":
        if is_given(expression.b):
            expression = expression.a
        elif is_given(expression.a):
            expression = expression.b
        else:
            break
    return expression


def evaluate(expression: Integer, given: Mapping[str, int]) -> int:
    """The value of an expression that a call decides."""
    low, high = interval(expression, given, {})
    assert low == high
    return low


def interval(expression: Integer, given: Mapping[str, int], known: Mapping[Integer, Interval]) -> Interval:
    """Between which numbers the value lies; ``known`` says so of inductions and elements. KeyError for others."""
    if isinstance(expression, Number):
        return expression.value, expression.value
    if isinstance(expression, Given):
        return given[expression.name], given[expression.name]
    if isinstance(expression, Induction | Element):
        return known[expression]
    (low_a, high_a), (low_b, high_b) = (interval(side, given, known) for side in (expression.a, expression.b))
    if expression.kind == "sub":
        return low_a - high_b, high_a - low_b
    if expression.kind == "and":
        return (
            (0, min(high for low, high in ((low_a, high_a), (low_b, high_b)) if low >= 0))
            if max(low_a, low_b) >= 0
            else (min(low_a, low_b), -1)
        )
    if expression.kind in ("shift_left", "shift_right") and not 0 <= low_b <= high_b < 64:
        return UNKNOWN
    corners = [_FOLDED[expression.kind](a, b) for a in (low_a, high_a) for b in (low_b, high_b)]
    return min(corners), max(corners)


def depends_directly(element: Element, variable: Induction) -> bool:
    """Whether an index of the element has the variable other than by way of something loaded."""

    def has(index: Integer) -> bool:
        if isinstance(index, Element):
            return False
        return index == variable or (isinstance(index, Binary) and (has(index.a) or has(index.b)))

    return any(has(index) for index in element.indices)
