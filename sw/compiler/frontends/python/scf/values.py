"""What names and expressions of a kernel stand for while loops are written."""

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import SSAValue

from daedal.runtime.loops.bounds import Fact
from daedal.runtime.loops.integers import Binary, Element, Given, Induction, Integer, Number

INTEGERS = (Number, Given, Induction, Element, Binary)


@dataclass(frozen=True)
class Constant:
    """A number of Python's; it is an f32 where one is needed."""

    value: float


@dataclass(frozen=True)
class Float:
    """An f32 that was computed."""

    value: SSAValue


@dataclass(frozen=True)
class Cell:
    """A local f32 that loops or conditions change: a local row of one element."""

    buffer: SSAValue


@dataclass(frozen=True)
class Row:
    """A local row of ``width`` f32."""

    buffer: SSAValue
    width: int


Value: TypeAlias = Integer | Constant | Float
"""What an expression gives."""

Binding: TypeAlias = Value | Cell | Row
"""What a name stands for."""


@dataclass(frozen=True)
class Comparison:
    """``a`` compared with ``b``: ``kind`` is one of ``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``."""

    kind: str
    a: Value
    b: Value

    @property
    def is_float(self) -> bool:
        """Whether f32 are compared."""
        return not (isinstance(self.a, INTEGERS) and isinstance(self.b, INTEGERS))


OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
"""Comparison of integers -> its opposite."""


@dataclass(frozen=True)
class Condition:
    """All of ``comparisons`` hold; if ``negated``, not all of them do."""

    comparisons: tuple[Comparison, ...]
    negated: bool = False

    @property
    def is_float(self) -> bool:
        """Whether f32 are compared."""
        return any(each.is_float for each in self.comparisons)

    def facts(self, *, holds: bool) -> tuple[Fact, ...]:
        """The comparisons of integers that hold where the condition does, or does not."""
        kept = [(each.kind, each.a, each.b) for each in self.comparisons
                if isinstance(each.a, INTEGERS) and isinstance(each.b, INTEGERS)]  # fmt: skip
        if holds is not self.negated:
            return tuple(kept)
        return tuple((OPPOSITES[kind], a, b) for kind, a, b in kept) if len(kept) == 1 else ()
