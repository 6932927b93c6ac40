"""Launch arguments: what a program needs to know about the buffers of a run, as expressions that the host evaluates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from daedal.hw.isa.elements import ROW_GRANULE


class Buffer(NamedTuple):
    """Where a buffer is in device memory: byte address, and size and pitch in bytes of every dimension."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def end(self) -> int:
        """The byte address after its last byte."""
        return self.address + (self.shape[0] * self.strides[0] if self.shape else ROW_GRANULE)


@dataclass(frozen=True)
class Leaf:
    """A number that a buffer or the caller gives; ``kind`` as in ``dlc.argument``."""

    kind: str
    buffer: str
    dimension: int | None = None

    def evaluate(self, buffers: Mapping[str, Buffer], values: Mapping[str, int]) -> int:
        """The number in a run."""
        if self.kind == "value":
            return values[self.buffer]
        buffer = buffers[self.buffer]
        if self.dimension is not None:
            return (buffer.shape if self.kind == "size" else buffer.strides)[self.dimension]
        return buffer.end if self.kind == "end" else buffer.address

    def __str__(self) -> str:
        if self.kind == "value":
            return self.buffer
        return f"{self.kind}({self.buffer}{'' if self.dimension is None else f', {self.dimension}'})"


OPERATIONS = ("addi", "muli", "minsi", "maxsi", "divsi")
"""Names of ``arith``'s operations that a number can be made with."""


@dataclass(frozen=True)
class Compound:
    """A sum, product, minimum, maximum or quotient (b > 0) of two numbers, by the name of its ``arith`` operation."""

    operation: str
    a: "Expression"
    b: "Expression"

    def evaluate(self, buffers: Mapping[str, Buffer], values: Mapping[str, int]) -> int:
        """The number in a run."""
        a, b = evaluate(self.a, buffers, values), evaluate(self.b, buffers, values)
        match self.operation:
            case "addi":
                return a + b
            case "muli":
                return a * b
            case "minsi":
                return min(a, b)
            case "maxsi":
                return max(a, b)
            case "divsi":
                return a // b if a >= 0 else -(-a // b)
        raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, not {self.operation!r}")

    def __str__(self) -> str:
        return f"{self.operation}({self.a}, {self.b})"


Expression = Leaf | Compound | int
"""What a launch argument is, as a function of buffers and numbers."""


def is_distance(expression: Expression) -> bool:
    """Whether it is made of distances only: then an index is multiplied by it."""
    if isinstance(expression, Compound):
        return is_distance(expression.a) and is_distance(expression.b)
    return isinstance(expression, Leaf) and expression.kind == "stride"


def leaves_of(expression: Expression) -> Iterator[Leaf]:
    """The numbers that it is made of. ValueError for an operation that there is not."""
    if isinstance(expression, Leaf):
        yield expression
    elif isinstance(expression, Compound):
        if expression.operation not in OPERATIONS:
            raise ValueError(f"operation must be one of {', '.join(OPERATIONS)}, not {expression.operation!r}")
        yield from leaves_of(expression.a)
        yield from leaves_of(expression.b)


def evaluate(expression: Expression, buffers: Mapping[str, Buffer], values: Mapping[str, int]) -> int:
    """The number that ``expression`` stands for in a run."""
    return expression if isinstance(expression, int) else expression.evaluate(buffers, values)
