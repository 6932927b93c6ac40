"""Launch arguments: what a program needs to know about the buffers of a run, as expressions the host
evaluates.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.dialects import dlc
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.words import VALUE_BITS


@dataclass(frozen=True)
class Buffer:
    """Where a buffer is in device memory: byte address, and size and pitch in bytes of every dimension."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def end(self) -> int:
        """The byte address after its last byte."""
        return self.address + (self.shape[0] * self.strides[0] if self.shape else 4)


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
        raise ValueError(f"operation must be addi, muli, minsi, maxsi or divsi, not {self.operation!r}")

    def __str__(self) -> str:
        return f"{self.operation}({self.a}, {self.b})"


Expression = Leaf | Compound | int
"""What a launch argument is, as a function of buffers and numbers."""


def is_distance(expression: Expression) -> bool:
    """Whether it is made of distances only: then an index is multiplied by it."""
    if isinstance(expression, Compound):
        return is_distance(expression.a) and is_distance(expression.b)
    return isinstance(expression, Leaf) and expression.kind == "stride"


def evaluate(expression: Expression, buffers: Mapping[str, Buffer], values: Mapping[str, int]) -> int:
    """The number that ``expression`` stands for in a run."""
    return expression if isinstance(expression, int) else expression.evaluate(buffers, values)


@dataclass(frozen=True)
class Constant:
    """A program word's value: ``value`` plus, if there is one, launch argument ``argument``."""

    value: int
    argument: int | None = None


@dataclass
class ArgumentTable:
    """Gives numbers that a launch fixes to program words; each expression takes one argument."""

    config: Config
    expressions: list[Expression] = field(default_factory=list)

    def constant(self, value: SSAValue) -> Constant:
        """The program word's value for a fixed ``value``: an index, or the bits of an f32 constant."""
        op = value.owner
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr):
            return Constant(struct.unpack("<I", struct.pack("<f", op.value.value.data))[0])
        expression, offset = _split(value)
        if not -(1 << (VALUE_BITS - 1)) <= offset < 1 << VALUE_BITS:
            raise UnsupportedOperation(f"constant {offset} must fit {VALUE_BITS} bits")
        return Constant(offset, None if expression is None else self._argument(expression))

    def _argument(self, expression: Expression) -> int:
        if expression not in self.expressions:
            if len(self.expressions) == self.config.arguments:
                raise UnsupportedOperation(
                    f"the program needs more than the {self.config.arguments} launch arguments of "
                    "configuration "
                    f"{self.config.name}: use fewer buffers"
                )
            self.expressions.append(expression)
        return self.expressions.index(expression)


def _split(value: SSAValue) -> tuple[Expression | None, int]:
    """A fixed value as an expression and a number to be added."""
    number = constant_of(value)
    if number is not None:
        return None, number
    op = value.owner
    if isinstance(op, dlc.ArgumentOp):
        dimension = None if op.dimension is None else op.dimension.value.data
        return Leaf(op.kind.data, op.buffer.data, dimension), 0
    if isinstance(op, arith.AddiOp):
        (a, first), (b, second) = _split(op.lhs), _split(op.rhs)
        if a is None or b is None:
            return (b if a is None else a), first + second
        return Compound("addi", a, b), first + second
    if isinstance(op, arith.MuliOp | arith.MinSIOp | arith.MaxSIOp | arith.DivSIOp):
        return Compound(op.name.removeprefix("arith."), _whole(op.lhs), _whole(op.rhs)), 0
    raise UnsupportedOperation(f"value %{value.name_hint or '?'} must be fixed by the launch")


def _whole(value: SSAValue) -> Expression:
    expression, offset = _split(value)
    if expression is None:
        return offset
    return expression if offset == 0 else Compound("addi", expression, offset)
