"""The blocks that are open while loops are written; integers stand as far out as what they depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, f32, i64
from xdsl.ir import Block, Operation, SSAValue

from daedal.runtime.loops.bounds import Fact
from daedal.runtime.loops.integers import Binary, Element, Given, Induction, Integer, Number, parts
from daedal.runtime.loops.signature import ir_name

OPERATIONS: dict[str, type[Operation]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
    "div": arith.DivSIOp,
    "and": arith.AndIOp,
    "shift_left": arith.ShLIOp,
    "shift_right": arith.ShRUIOp,
}
"""Kind of ``Binary`` -> operation."""


@dataclass
class Scope:
    """An open block.

    Attributes
    ----------
    anchor
        The operation around it, in the block of the scope around it.
    variable
        Its loop's variable, if it is a loop's body.
    condition
        The ``id`` of the source's condition that it is under, if it is a branch, and whether that holds in it.
    facts
        Comparisons of integers that hold in it.
    is_row
        Whether it is the body of a loop along a row.
    integers, loads, results
        What was written in it already: integers, loaded f32, and results of arithmetic.
    """

    block: Block
    anchor: Operation | None = None
    variable: Induction | None = None
    condition: tuple[int, bool] | None = None
    facts: tuple[Fact, ...] = ()
    is_row: bool = False
    integers: dict[Integer, SSAValue] = field(default_factory=dict)
    loads: dict[tuple[SSAValue, tuple[Integer, ...]], SSAValue] = field(default_factory=dict)
    results: dict[tuple[object, ...], SSAValue] = field(default_factory=dict)


class Scopes:
    """Writes into nested blocks.

    Parameters
    ----------
    block
        The function's.
    arrays
        Name of an argument -> memref or index.
    dimensions
        Name of a size -> the array and dimension that have it.
    hints
        Constant -> what to call it.
    """

    def __init__(
        self,
        block: Block,
        arrays: Mapping[str, SSAValue],
        dimensions: Mapping[str, tuple[str, int]],
        hints: Mapping[int, str],
    ) -> None:
        self.open = [Scope(block)]
        self._arrays, self._dimensions, self._hints = arrays, dimensions, hints
        self.elements: dict[Element, SSAValue] = {}
        """Every loaded integer."""
        self.placed: dict[Element, Induction] = {}
        """Loops of one iteration in which integers are loaded that could be loaded further out."""
        self._first: Operation | None = None
        """The first operation of the function that has an effect; sizes and constants stand before it."""
        self._floats: dict[str, SSAValue] = {}

    @property
    def inner(self) -> Scope:
        """The innermost scope."""
        return self.open[-1]

    def insert(self, op: Operation, name: str | None = None, *, depth: int | None = None) -> SSAValue | None:
        """Append an operation to the innermost scope; with ``depth``, one without effects to that scope. Its result."""
        is_first = depth == 0 and self._first is not None
        depth = len(self.open) - 1 if depth is None else depth
        block = self.open[depth].block
        if is_first:
            assert self._first is not None
            block.insert_op_before(op, self._first)
        elif depth + 1 == len(self.open):
            block.add_op(op)
            if depth == 0 and self._first is None and (op.regions or not op.results):
                self._first = op
        else:
            anchor = self.open[depth + 1].anchor
            assert anchor is not None
            block.insert_op_before(op, anchor)
        if not op.results:
            return None
        op.results[0].name_hint = None if name is None else ir_name(name)
        return op.results[0]

    def value(self, op: Operation, name: str | None = None, *, depth: int | None = None) -> SSAValue:
        """The same for an operation that has a result."""
        result = self.insert(op, name, depth=depth)
        assert result is not None
        return result

    def pure(self, op: Operation) -> SSAValue:
        """The result of an operation that has no effect; the one of before if it was written in this scope already."""
        key = (type(op), tuple(op.operands), tuple(op.properties.items()))
        results = self.inner.results
        if key not in results:
            results[key] = self.value(op)
        return results[key]

    def depth(self, expression: Integer) -> int:
        """The number of the outermost scope in which an integer is known."""
        variables = {part for part in parts(expression) if isinstance(part, Induction)}
        variables |= {self.placed[part] for part in parts(expression) if part in self.placed}
        return max((n for n, scope in enumerate(self.open) if scope.variable in variables), default=0)

    def row_depth(self) -> int:
        """The number of the innermost scope that is no loop along a row."""
        return max(n for n, scope in enumerate(self.open) if not scope.is_row)

    def integer(self, expression: Integer) -> SSAValue:
        """The value of an integer, of type index."""
        depth = self.depth(expression)
        known = self.open[depth].integers
        if expression not in known:
            known[expression] = self._integer(expression, depth)
        return known[expression]

    def _integer(self, expression: Integer, depth: int) -> SSAValue:
        match expression:
            case Number(value):
                hint = self._hints.get(value, f"c{value}".replace("-", "m"))
                return self.value(arith.ConstantOp(IntegerAttr(value, IndexType())), hint, depth=0)
            case Given(name):
                if name not in self._dimensions:
                    return self._arrays[name]
                array, dimension = self._dimensions[name]
                size = memref.DimOp(self._arrays[array], self.integer(Number(dimension)))
                return self.value(size, name, depth=0)
            case Element(array, indices):
                where = [self.integer(index) for index in indices]
                loaded = self.value(memref.LoadOp.get(self._arrays[array], where), f"{array}_loaded", depth=depth)
                cast = self.value(arith.IndexCastOp(loaded, IndexType()), f"{array}_value", depth=depth)
                self.elements[expression] = cast
                return cast
            case Binary(kind, a, b):
                operands = [self.integer(a), self.integer(b)]
                op = OPERATIONS[kind].create(operands=operands, result_types=[IndexType()])
                return self.value(op, depth=depth)
        raise AssertionError(f"{expression} must be the variable of an open loop")

    def float_constant(self, value: float) -> SSAValue:
        """A constant f32."""
        key = FloatAttr(value, f32)
        found = self._floats.get(str(key))
        if found is None:
            found = self.value(arith.ConstantOp(key), "zero" if str(value) == "0.0" else "number", depth=0)
            self._floats[str(key)] = found
        return found

    def as_float(self, expression: Integer) -> SSAValue:
        """An integer as an f32."""
        depth = self.depth(expression)
        wide = self.value(arith.IndexCastOp(self.integer(expression), i64), "wide", depth=depth)
        return self.value(arith.SIToFPOp(wide, f32), "count", depth=depth)

    def open_loop(
        self, lower: SSAValue, upper: SSAValue, step: SSAValue, variable: Induction, *, is_row: bool = False,
        carried: SSAValue | None = None,
    ) -> scf.ForOp:  # fmt: skip
        """Append a loop and open its body."""
        initial = [] if carried is None else [carried]
        block = Block(arg_types=[IndexType(), *(value.type for value in initial)])
        block.args[0].name_hint = ir_name(variable.name)
        op = scf.ForOp(lower, upper, step, initial, block)
        self.insert(op)
        self.open.append(Scope(block, op, variable, is_row=is_row, integers={variable: block.args[0]}))
        return op

    def open_branch(self, op: scf.IfOp, block: Block, condition: tuple[int, bool]) -> None:
        """Open a branch of a condition that was appended."""
        self.open.append(Scope(block, op, condition=condition))

    def close(self, *values: SSAValue) -> None:
        """End the innermost scope."""
        self.inner.block.add_op(scf.YieldOp(*values))
        self.open.pop()
