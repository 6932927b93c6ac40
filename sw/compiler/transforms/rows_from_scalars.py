"""Pass ``rows-from-scalars``: single f32 become rows of one element.

An f32 that a loop carries from one iteration to the next lives in a local row of one element; a store of a
single f32 becomes a loop over a row of one element, with the arithmetic that leads to it. Single f32 that are
only loaded stay as they are: the access unit sends them as scalars.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import Float32Type, IndexType, IntegerAttr, ModuleOp, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from daedal.compiler.transforms.rows import constant_of, is_float_access, is_row_loop, loop_name
from daedal.errors import UnsupportedOperation


def _is_local(buffer: SSAValue) -> bool:
    return isinstance(buffer.owner, memref.AllocaOp)


def _carries_floats(loop: scf.ForOp) -> bool:
    return any(_is_float(value) for value in loop.iter_args)


class _Function:
    """Rewrites one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self._function, self._entry = function, function.body.block
        self._constants: dict[int, SSAValue] = {}

    def run(self) -> None:
        for loop in [op for op in self._function.walk() if isinstance(op, scf.ForOp)]:
            if _carries_floats(loop):
                self._keep_locally(loop)
        for op in list(self._function.walk()):
            if isinstance(op, memref.StoreOp) and is_float_access(op):
                parent = op.parent_op()
                if not (isinstance(parent, scf.ForOp) and is_row_loop(parent)):
                    self._widen(op)

    def _index(self, value: int) -> SSAValue:
        if value not in self._constants:
            op = arith.ConstantOp(IntegerAttr(value, IndexType()))
            op.result.name_hint = f"c{value}"
            self._at_entry(op)
            self._constants[value] = op.result
        return self._constants[value]

    def _at_entry(self, op: Operation) -> None:
        assert self._entry.first_op is not None
        self._entry.insert_op_before(op, self._entry.first_op)

    # ------------------------------------------------------------------ carried values

    def _keep_locally(self, loop: scf.ForOp) -> None:
        end = loop.body.block.last_op
        assert isinstance(end, scf.YieldOp)
        for position, initial in enumerate(loop.iter_args):
            if _is_float(initial):
                self._one(loop, position, end)
        _replace(loop, [result for result in loop.results if not _is_float(result)], _without_floats(loop))

    def _one(self, loop: scf.ForOp, position: int, end: scf.YieldOp) -> None:
        body, block, zero = loop.body.block, loop.parent, self._index(0)
        argument, result = body.args[position + 1], loop.results[position]
        local = memref.AllocaOp.get(f32, shape=[1])
        local.memref.name_hint = argument.name_hint
        self._at_entry(local)
        assert block is not None
        block.insert_op_before(memref.StoreOp.get(loop.iter_args[position], local.memref, [zero]), loop)
        assert body.first_op is not None
        value, condition = end.operands[position], None
        if isinstance(value.owner, scf.IfOp):
            condition = value.owner
            value = _changed_in(condition, value, argument, loop)
        inside = memref.LoadOp.get(local.memref, [zero])
        body.insert_op_before(inside, body.first_op)
        argument.replace_all_uses_with(inside.res)
        if value is not argument:
            store = memref.StoreOp.get(value, local.memref, [zero])
            before = end if condition is None else condition.true_region.block.last_op
            assert before is not None
            assert before.parent is not None
            before.parent.insert_op_before(store, before)
        outside = memref.LoadOp.get(local.memref, [zero])
        block.insert_op_after(outside, loop)
        result.replace_all_uses_with(outside.res)

    # ------------------------------------------------------------------ stores

    def _widen(self, store: memref.StoreOp) -> None:
        zero, one = self._index(0), self._index(1)
        block = store.parent
        assert block is not None
        body = Block(arg_types=[IndexType()])
        column = body.args[0]
        column.name_hint = "d"
        value = self._copy(store.value, body, column, store)
        last: SSAValue = column
        if not _is_local(store.memref) and constant_of(store.indices[-1]) != 0:
            moved = arith.AddiOp(store.indices[-1], column)
            body.add_op(moved)
            last = moved.result
        body.add_op(memref.StoreOp.get(value, store.memref, [*store.indices[:-1], last]))
        body.add_op(scf.YieldOp())
        block.insert_op_before(scf.ForOp(zero, one, one, [], body), store)
        store.detach()
        store.erase()

    def _copy(self, value: SSAValue, body: Block, column: SSAValue, store: memref.StoreOp) -> SSAValue:
        """Copy the arithmetic that leads to ``value``."""
        op = value.owner
        if isinstance(op, memref.LoadOp) and _is_local(op.memref):
            self._check_unchanged(op, store)
            new: Operation = memref.LoadOp.get(op.memref, [column])
        elif not isinstance(op, Operation) or isinstance(op, memref.LoadOp | arith.ConstantOp | scf.ForOp):
            return value
        elif all(_is_float(operand) for operand in op.operands):
            operands = [self._copy(operand, body, column, store) for operand in op.operands]
            new = type(op).create(operands=operands, result_types=[value.type], properties=op.properties)
        else:
            return value
        new.results[0].name_hint = value.name_hint
        body.add_op(new)
        return new.results[0]

    def _check_unchanged(self, load: memref.LoadOp, store: memref.StoreOp) -> None:
        order = list(self._function.walk())
        for op in order[order.index(load) : order.index(store)]:
            if isinstance(op, memref.StoreOp) and op.memref is load.memref:
                raise UnsupportedOperation(
                    f"local row %{load.memref.name_hint or '?'} must not be written between a load and "
                    "the use of "
                    "its value"
                )


def _changed_in(condition: scf.IfOp, value: SSAValue, argument: SSAValue, loop: scf.ForOp) -> SSAValue:
    """The new value of a carried f32 that changes under a condition."""
    position = next(i for i, result in enumerate(condition.results) if result is value)
    then, otherwise = condition.true_region.block.last_op, condition.false_region.block.last_op
    assert then is not None
    assert otherwise is not None
    if otherwise.operands[position] is not argument or len(list(value.uses)) != 1:
        raise UnsupportedOperation(
            f"{loop_name(loop)}: a carried f32 that changes under a condition must stay as it is otherwise"
        )
    return then.operands[position]


def _is_float(value: SSAValue) -> bool:
    return isinstance(value.type, Float32Type)


def _drop_floats(end: Operation | None) -> list[SSAValue]:
    """Take the f32 out of what a region yields; what is left."""
    assert isinstance(end, scf.YieldOp)
    assert end.parent is not None
    kept = [value for value in end.operands if not _is_float(value)]
    end.parent.insert_op_before(scf.YieldOp(*kept), end)
    end.detach()
    end.erase()
    return kept


def _without_floats(loop: scf.ForOp) -> scf.ForOp:
    """The loop without the f32 that it carries; its body moves to the new one."""
    body = loop.body.block
    end = body.last_op
    assert end is not None
    conditions = {id(value.owner): value.owner for value in end.operands if _is_float(value)}
    _drop_floats(end)
    for condition in conditions.values():
        if isinstance(condition, scf.IfOp):
            _if_without_floats(condition)
    for argument in [argument for argument in body.args[1:] if _is_float(argument)]:
        body.erase_arg(argument)
    initial = [value for value in loop.iter_args if not _is_float(value)]
    return scf.ForOp(loop.lb, loop.ub, loop.step, initial, loop.detach_region(loop.body))


def _if_without_floats(condition: scf.IfOp) -> None:
    for region in (condition.true_region, condition.false_region):
        _drop_floats(region.block.last_op)
    kept = [result for result in condition.results if not _is_float(result)]
    then, otherwise = (condition.detach_region(region) for region in (condition.true_region, condition.false_region))
    new = scf.IfOp(condition.cond, [result.type for result in kept], then, otherwise)
    _replace(condition, kept, new)


def _replace(old: Operation, kept: Sequence[SSAValue], new: Operation) -> None:
    assert old.parent is not None
    old.parent.insert_op_before(new, old)
    for before, after in zip(kept, new.results, strict=True):
        after.name_hint = before.name_hint
        before.replace_all_uses_with(after)
    old.detach()
    old.erase()


@dataclass(frozen=True)
class RowsFromScalars(ModulePass):
    """See the module."""

    name = "rows-from-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                _Function(function).run()
