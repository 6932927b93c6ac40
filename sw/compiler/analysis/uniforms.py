"""Numbers that a launch fixes: constants folded, sums and products of arguments otherwise."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from daedal.compiler.dialects import dlc

Uniform = int | SSAValue
"""A number: known now, or a value."""


class Uniforms:
    """Makes such numbers at the top of a function, each once."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._arguments: dict[tuple[str, str, int | None], SSAValue] = {}
        self._constants: dict[int, SSAValue] = {}
        self._results: dict[tuple[object, ...], SSAValue] = {}
        self._last: Operation | None = None

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Add an operation; its result."""
        if self._last is None:
            first = self._block.first_op
            if first is None:
                self._block.add_op(op)
            else:
                self._block.insert_op_before(op, first)
        else:
            self._block.insert_op_after(op, self._last)
        self._last = op
        op.results[0].name_hint = hint
        return op.results[0]

    def argument(self, kind: str, buffer: str, dimension: int | None = None) -> SSAValue:
        """A launch argument; see ``dlc.argument``."""
        key = (kind, buffer, dimension)
        if key not in self._arguments:
            hint = buffer if kind == "value" else f"{buffer}_{kind}" + ("" if dimension is None else str(dimension))
            self._arguments[key] = self.insert(dlc.ArgumentOp(kind, buffer, dimension), hint)
        return self._arguments[key]

    def value(self, number: Uniform) -> SSAValue:
        """The number as a value."""
        if not isinstance(number, int):
            return number
        if number not in self._constants:
            op = arith.ConstantOp(IntegerAttr(number, IndexType()))
            self._constants[number] = self.insert(op, f"c{number}".replace("-", "m"))
        return self._constants[number]

    def add(self, a: Uniform, b: Uniform) -> Uniform:
        """The sum."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.combine(arith.AddiOp, a, b)

    def mul(self, a: Uniform, b: Uniform) -> Uniform:
        """The product."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.combine(arith.MuliOp, a, b)

    def combine(self, kind: type[Operation], a: Uniform, b: Uniform) -> SSAValue:
        """The result of an ``arith`` operation on two numbers."""
        first, second = self.value(a), self.value(b)
        key = (kind, first, second)
        if key not in self._results:
            op = kind.create(operands=[first, second], result_types=[IndexType()])
            self._results[key] = self.insert(op)
        return self._results[key]
