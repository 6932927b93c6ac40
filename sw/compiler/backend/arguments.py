"""Launch arguments as the program's words name them: each expression of what a launch fixes takes one argument."""

import struct
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.dialects import dlc
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.words import VALUE_BITS
from daedal.runtime.launch_arguments import Compound, Expression, Leaf


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
