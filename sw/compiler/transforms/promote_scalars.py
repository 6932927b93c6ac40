"""Pass ``promote-scalars``: single f32 become rows of one element.

An f32 that a loop carries from one iteration to the next lives in a local row of one element; a store of a
single f32 becomes a loop over a row of one element, with the arithmetic that leads to it. Single f32 that are
only loaded stay as they are: the access unit sends them as scalars. So do those that the scalar unit computes
(``singles.is_computed``), and their stores; but one that is used in another callback than its own lives in a local row
of one element in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, f32
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from daedal.compiler.analysis.row_loops import (
    REDUCE,
    SINGLE_ONLY,
    constant_of,
    is_float_access,
    is_reduction,
    is_row_loop,
    loop_name,
)
from daedal.compiler.analysis.scalars import PLAIN, counted, is_access_loop, is_computed, is_float, is_local
from daedal.compiler.transforms.builders.callback_builder import free_values
from daedal.errors import UnsupportedOperation


def _carries_floats(loop: scf.ForOp) -> bool:
    return any(is_float(value) for value in loop.iter_args)


def _in_row_loop(op: Operation) -> bool:
    parent = op.parent_op()
    return isinstance(parent, scf.ForOp) and is_row_loop(parent)


class _Function:
    """Rewrites one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self._function, self._entry = function, function.body.block
        self._constants: dict[int, SSAValue] = {}

    def run(self) -> None:
        for loop in [op for op in self._function.walk() if isinstance(op, scf.ForOp)]:
            if is_reduction(loop):
                _check_reduction(loop)
            elif _carries_floats(loop):
                self._keep_locally(loop)
        for store in [op for op in self._function.walk() if isinstance(op, memref.StoreOp)]:
            if is_float_access(store) and is_local(store.memref) and not _in_row_loop(store):
                self._take_what_was_stored(store)
        for value in [value for op in self._function.walk() for value in op.results if is_float(value)]:
            self._keep_between_callbacks(value)
        for op in list(self._function.walk()):
            if isinstance(op, memref.StoreOp) and is_float_access(op) and not _in_row_loop(op):
                _check_single(op)
                if is_local(op.memref) or not is_computed(op.value):
                    self._widen(op)
                else:
                    self._check_loads(op.value, op)
        self._remove_unused()
        for loop in [op for op in self._function.walk() if isinstance(op, scf.ForOp) and is_row_loop(op)]:
            for needed in filter(is_float, free_values(loop)):
                self._check_loads(needed, loop)

    def _remove_unused(self) -> None:
        for op in reversed(list(self._function.walk())):
            is_free = isinstance(op, (*PLAIN, *_OTHERS)) or (isinstance(op, memref.LoadOp) and is_float_access(op))
            if is_free and op.results[0].first_use is None and not _in_row_loop(op):
                Rewriter.erase_op(op)

    # ------------------------------------------------------------------ computed values

    def _keep_between_callbacks(self, value: SSAValue) -> None:
        """Keep a computed value that another callback uses in a local row of one element."""
        op = value.owner
        assert isinstance(op, Operation)
        if not is_computed(value) or _in_row_loop(op):
            return
        crossing = [use for use in value.uses if _crosses(op, use.operation)]
        if not crossing:
            return
        zero = self._index(0)
        local = memref.AllocaOp.get(f32, shape=[1])
        local.memref.name_hint = value.name_hint
        self._at_entry(local)
        for use in crossing:
            _take_from(local.memref, zero, use)
        assert op.parent is not None
        op.parent.insert_op_after(memref.StoreOp.get(value, local.memref, [zero]), op)

    def _take_what_was_stored(self, store: memref.StoreOp) -> None:
        """Where a value is used that was made of a local row's element and is that element now, take it from there."""
        if not _is_made_of(store.value, store.memref):
            return
        following = store.next_op
        while following is not None:
            inside = list(following.walk())
            if any(isinstance(op, memref.StoreOp) and op.memref is store.memref for op in inside):
                return
            for use in [use for use in store.value.uses if use.operation in inside]:
                _take_from(store.memref, store.indices[0], use)
            following = following.next_op

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
            if is_float(initial):
                self._one(loop, position, end)
        _replace(loop, [result for result in loop.results if not is_float(result)], _without_floats(loop))

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
        value = self._copy(store.value, body, column, store, {})
        last: SSAValue = column
        if not is_local(store.memref) and constant_of(store.indices[-1]) != 0:
            moved = arith.AddiOp(store.indices[-1], column)
            body.add_op(moved)
            last = moved.result
        body.add_op(memref.StoreOp.get(value, store.memref, [*store.indices[:-1], last]))
        body.add_op(scf.YieldOp())
        block.insert_op_before(scf.ForOp(zero, one, one, [], body), store)
        Rewriter.erase_op(store)

    def _copy(
        self, value: SSAValue, body: Block, column: SSAValue, store: memref.StoreOp, copies: dict[SSAValue, SSAValue]
    ) -> SSAValue:
        """Copy the arithmetic that leads to ``value``, except what is in ``copies`` already."""
        if value in copies:
            return copies[value]
        op = value.owner
        if isinstance(op, memref.LoadOp) and is_local(op.memref):
            _check_single(op)
            self._check_unchanged(op, store)
            new: Operation = memref.LoadOp.get(op.memref, [column])
        elif isinstance(op, PLAIN) or (isinstance(op, arith.DivfOp) and counted(op.rhs) is not None):
            operands = [self._copy(operand, body, column, store, copies) for operand in op.operands]
            new = type(op).create(operands=operands, result_types=[value.type], properties=op.properties)
        else:
            return value
        new.results[0].name_hint = value.name_hint
        body.add_op(new)
        copies[value] = new.results[0]
        return new.results[0]

    def _check_loads(self, value: SSAValue, user: Operation) -> None:
        """Check local rows that lead to ``value``, which ``user`` needs."""
        seen: set[SSAValue] = set()
        waiting = [value]
        while waiting:
            value = waiting.pop()
            op = value.owner
            if value in seen or not isinstance(op, Operation) or isinstance(op, scf.ForOp | scf.IfOp):
                continue
            seen.add(value)
            if isinstance(op, memref.LoadOp):
                if is_local(op.memref):
                    self._check_unchanged(op, user)
            else:
                waiting += op.operands

    def _check_unchanged(self, load: memref.LoadOp, user: Operation) -> None:
        order = list(self._function.walk())
        for op in order[order.index(load) : order.index(user)]:
            if isinstance(op, memref.StoreOp) and op.memref is load.memref:
                raise UnsupportedOperation(
                    f"local row %{load.memref.name_hint or '?'} must not be written between where it is read and where "
                    "what was read is used: use that first"
                )


_OTHERS = (*SINGLE_ONLY, arith.DivfOp, arith.SelectOp, arith.CmpfOp, arith.SIToFPOp)


def _is_made_of(value: SSAValue, buffer: SSAValue) -> bool:
    """Whether arithmetic on an element of a buffer gives a value."""
    seen: set[SSAValue] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        op = value.owner
        if value in seen:
            continue
        seen.add(value)
        if isinstance(op, memref.LoadOp) and op.memref is buffer:
            return True
        if isinstance(op, (*PLAIN, *_OTHERS)):
            waiting += op.operands
    return False


def _take_from(local: SSAValue, zero: SSAValue, use: Use) -> None:
    """Let an operation use the only element of a local row."""
    before = use.operation
    while _in_row_loop(before):
        parent = before.parent_op()
        assert parent is not None
        before = parent
    load = memref.LoadOp.get(local, [zero])
    load.res.name_hint = use.operation.operands[use.index].name_hint
    assert before.parent is not None
    before.parent.insert_op_before(load, before)
    use.operation.operands[use.index] = load.res


def _check_single(access: memref.LoadOp | memref.StoreOp) -> None:
    """Check that what is accessed outside of loops along rows is no element of a longer local row."""
    buffer = access.memref
    if is_local(buffer) and isinstance(buffer.type, MemRefType) and buffer.type.get_shape() != (1,):
        raise UnsupportedOperation(
            f"local row %{buffer.name_hint or '?'} must be used in loops along it, not element by element: for what "
            "such loops do not have, as sqrt, exp and sigmoid of elements, store to an array that another kernel reads"
        )


def _check_reduction(loop: scf.ForOp) -> None:
    if not is_row_loop(loop):
        raise UnsupportedOperation(
            f"{loop_name(loop)} with {REDUCE} must run along a row, between constant bounds in steps of 1, carry f32 "
            "only, and compute nothing of the elements that only single f32 can be used for (sqrt, exp, sigmoid)"
        )


def _crosses(op: Operation, user: Operation) -> bool:
    """Whether ``user`` is in another callback than ``op``, which gives what it uses."""
    while user.parent is not op.parent:
        parent = user.parent_op()
        assert parent is not None
        user = parent
    between: Operation | None = op.next_op
    while between is not None:
        if is_access_loop(between):
            return True
        if between is user:
            return False
        between = between.next_op
    return False


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


def _drop_floats(end: Operation | None) -> list[SSAValue]:
    """Take the f32 out of what a region yields; what is left."""
    assert isinstance(end, scf.YieldOp)
    assert end.parent is not None
    kept = [value for value in end.operands if not is_float(value)]
    end.parent.insert_op_before(scf.YieldOp(*kept), end)
    Rewriter.erase_op(end)
    return kept


def _without_floats(loop: scf.ForOp) -> scf.ForOp:
    """The loop without the f32 that it carries; its body moves to the new one."""
    body = loop.body.block
    end = body.last_op
    assert end is not None
    conditions = {id(value.owner): value.owner for value in end.operands if is_float(value)}
    _drop_floats(end)
    for condition in conditions.values():
        if isinstance(condition, scf.IfOp):
            _if_without_floats(condition)
    for argument in [argument for argument in body.args[1:] if is_float(argument)]:
        body.erase_arg(argument)
    initial = [value for value in loop.iter_args if not is_float(value)]
    return scf.ForOp(loop.lb, loop.ub, loop.step, initial, loop.detach_region(loop.body))


def _if_without_floats(condition: scf.IfOp) -> None:
    for region in (condition.true_region, condition.false_region):
        _drop_floats(region.block.last_op)
    kept = [result for result in condition.results if not is_float(result)]
    then, otherwise = (condition.detach_region(region) for region in (condition.true_region, condition.false_region))
    new = scf.IfOp(condition.cond, [result.type for result in kept], then, otherwise)
    _replace(condition, kept, new)


def _replace(old: Operation, kept: Sequence[SSAValue], new: Operation) -> None:
    made = dict(zip(kept, new.results, strict=True))
    for before, after in made.items():
        after.name_hint = before.name_hint
    Rewriter.replace_op(old, new, [made.get(result) for result in old.results])


@dataclass(frozen=True)
class PromoteScalars(ModulePass):
    """See the module."""

    name = "promote-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every function."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                _Function(function).run()
