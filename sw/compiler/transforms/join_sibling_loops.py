"""Pass ``join-sibling-loops``: two loops in the body of a loop that share a result become one nest that is gone through
twice.

The machine has one loop in the body of a loop. Two siblings with the same bounds, of which the second needs what the
first computes (a sum over exponentials needs their maximum), are the turns of a loop around one loop of these bounds.
Work at one place is under one condition: that of the first turn is done in that loop, that of the second in a loop of
one iteration inside of it. What stands between the loops is done in front of them, or at the end of the first turn.
Index loads and checks that both have are done once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from daedal.compiler.analysis.scalars import is_access_loop, is_float, is_local
from daedal.compiler.dialects import check
from daedal.compiler.dialects.elements import LANE


def _is_access(op: Operation) -> bool:
    """Whether an operation is the access unit's: loads of memory, arithmetic on integers, and checks."""
    if isinstance(op, check.BoundsOp) or (isinstance(op, memref.LoadOp) and not is_local(op.memref)):
        return True
    if op.regions or not op.results or any(is_float(result) for result in op.results) or isinstance(op, arith.CmpfOp):
        return False
    return is_side_effect_free(op)


def _may_join(loops: Sequence[scf.ForOp], middles: Sequence[Sequence[Operation]]) -> bool:
    """Whether these are innermost loops of the access unit with the same bounds, which carry nothing, and only
    f32 of what stands between them is needed behind it.
    """
    bounds = {(loop.lb, loop.ub, loop.step) for loop in loops}
    has_loops = any(is_access_loop(op) for loop in loops for op in loop.body.block.ops)
    if len(bounds) > 1 or has_loops or any(loop.iter_args for loop in loops):
        return False
    return all(value.type == LANE for middle in middles for value in _used_behind(middle))


def _stays(middle: Sequence[Operation]) -> list[Operation]:
    """What is done at the end of a turn."""
    return [op for op in middle if not _is_movable(op)]


def _is_movable(op: Operation) -> bool:
    """Whether an operation between the loops may stand in front of them: a constant, a local row, an integer."""
    return isinstance(op, memref.AllocaOp | arith.ConstantOp) or (_is_access(op) and not isinstance(op, memref.LoadOp))


def _used_behind(middle: Sequence[Operation]) -> list[SSAValue]:
    """Results of what is done at the end of a turn that something behind needs."""
    inside = {id(each) for op in _stays(middle) for each in op.walk()}
    results = [result for op in _stays(middle) for result in op.results]
    return [each for each in results if any(id(use.operation) not in inside for use in each.uses)]


def _between(first: scf.ForOp, second: scf.ForOp) -> list[Operation]:
    found: list[Operation] = []
    op = first.next_op
    while op is not None and op is not second:
        found.append(op)
        op = op.next_op
    return found


def _buffers(op: Operation) -> set[SSAValue]:
    """Buffers that are read or written in an operation."""
    return {each.memref for each in op.walk() if isinstance(each, memref.LoadOp | memref.StoreOp)}


class _Join:
    """Joins loops, between which there is what ``middles`` say."""

    def __init__(self, loops: Sequence[scf.ForOp], middles: Sequence[list[Operation]]) -> None:
        self._loops, self._middles = loops, middles
        self._kept: list[list[Operation]] = []
        self._turns, self._body = Block(arg_types=[IndexType()]), Block(arg_types=[IndexType()])
        self._turns.args[0].name_hint = "turn"
        self._body.args[0].name_hint = loops[0].body.block.args[0].name_hint

    def run(self) -> None:
        """Put the joined loops in the place of the first."""
        first = self._loops[0]
        block = first.parent
        assert block is not None
        for op in [op for middle in self._middles for op in middle if _is_movable(op)]:
            op.detach()
            block.insert_op_before(op, first)
        self._hoist(block)
        zero, *numbers = (arith.ConstantOp(IntegerAttr(n, IndexType())) for n in range(len(self._loops) + 1))
        outer = scf.ForOp(zero.result, numbers[-1].result, numbers[0].result, [], self._turns)
        block.insert_ops_before([zero, *numbers, outer], first)
        for middle in self._middles:
            self._kept.append([self._keep(value, middle, zero.result, outer) for value in _used_behind(middle)])
        conditions = [arith.CmpiOp(self._turns.args[0], each.result, "eq") for each in (zero, *numbers[:-1])]
        self._turns.add_op(conditions[0])  # levels have little arithmetic: the other one is compared further in
        loop = scf.ForOp(first.lb, first.ub, first.step, [], self._body)
        loop.attributes.update(first.attributes)
        one = numbers[0].result
        for number, (each, condition) in enumerate(zip(self._loops, conditions, strict=True)):
            self._take(each, condition, one if number == 1 else None)
        self._body.add_op(scf.YieldOp())
        self._turns.add_op(loop)
        for middle, kept in zip(self._middles, self._kept, strict=True):
            self._end_turn([*_stays(middle), *kept], conditions[0].result)
        self._turns.add_op(scf.YieldOp())
        for old in reversed(self._loops):
            Rewriter.erase_op(old)

    def _hoist(self, block: Block) -> None:
        """Move what has nothing to do with the loops before it in front of all: a turn has one place for the rest."""
        touched: set[SSAValue] = set()
        made: set[SSAValue] = set()
        for number, middle in enumerate(self._middles):
            touched |= _buffers(self._loops[number])
            for op in [op for op in middle if op.parent is block and not _is_movable(op)]:
                needed = {operand for inner in op.walk() for operand in inner.operands}
                if _buffers(op) & touched or needed & made or op.results:
                    touched |= _buffers(op)
                    made |= set(op.results)
                else:
                    op.detach()
                    block.insert_op_before(op, self._loops[0])
                    middle.remove(op)

    def _keep(self, value: SSAValue, middle: Sequence[Operation], zero: SSAValue, outer: scf.ForOp) -> Operation:
        """Have what is behind load a number from a local row; the store that puts it there."""
        inside = {id(each) for op in _stays(middle) for each in op.walk()}
        cell = memref.AllocaOp.get(LANE, shape=[1])
        cell.memref.name_hint = f"{value.name_hint or 'kept'}_kept"
        block = outer.parent
        assert block is not None
        block.insert_op_before(cell, outer)
        bodies = {loop.body.block for loop in self._loops} | {block}
        for use in [use for use in value.uses if id(use.operation) not in inside]:
            place = use.operation
            while place.parent not in bodies:
                above = place.parent_op()
                assert above is not None
                place = above
            load = memref.LoadOp.get(cell.memref, [zero])
            assert place.parent is not None
            place.parent.insert_op_before(load, place)
            use.operation.operands[use.index] = load.res
        return memref.StoreOp.get(value, cell.memref, [zero])

    def _take(self, loop: scf.ForOp, condition: Operation, one: SSAValue | None) -> None:
        """Do a loop's work under a condition: in a loop of one iteration if there is ``one``."""
        old, body = loop.body.block, self._body
        self._share(old, {old.args[0]: body.args[0]})
        block = body if one is None else Block(arg_types=[IndexType()])
        old.args[0].replace_all_uses_with(block.args[0])
        work = Block()
        for op in [op for op in old.ops if not isinstance(op, scf.YieldOp)]:
            op.detach()
            (block if _is_access(op) else work).add_op(op)
        work.add_op(scf.YieldOp())
        if condition.parent is None:
            block.add_op(condition)
        block.add_op(scf.IfOp(condition.results[0], [], Region(work)))
        if one is not None:
            block.args[0].name_hint = "again"
            block.add_op(scf.YieldOp())
            behind = arith.AddiOp(body.args[0], one)
            body.add_ops([behind, scf.ForOp(body.args[0], behind.result, one, [], block)])

    def _share(self, old: Block, renamed: Mapping[SSAValue, SSAValue]) -> None:
        """Use what is loaded and checked already."""
        known = [op for op in self._body.ops if _is_access(op)]
        for op in [op for op in old.ops if _is_access(op)]:
            operands = [renamed.get(operand, operand) for operand in op.operands]
            for other in known:
                if type(other) is type(op) and list(other.operands) == operands and other.properties == op.properties:
                    for result, same in zip(op.results, other.results, strict=True):
                        result.replace_all_uses_with(same)
                    Rewriter.erase_op(op)
                    break

    def _end_turn(self, middle: Sequence[Operation], condition: SSAValue) -> None:
        if not middle:
            return
        work = Block()
        for op in middle:
            if op.parent is not None:
                op.detach()
            work.add_op(op)
        work.add_op(scf.YieldOp())
        self._turns.add_op(scf.IfOp(condition, [], Region(work)))


@dataclass(frozen=True)
class JoinSiblingLoops(ModulePass):
    """See the module."""

    name = "join-sibling-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Join in every function, inner loops first."""
        for function in op.body.block.ops:
            if not isinstance(function, func.FuncOp):
                continue
            for loop in reversed([inner for inner in function.walk() if is_access_loop(inner)]):
                assert isinstance(loop, scf.ForOp)
                inner = [each for each in loop.body.block.ops if isinstance(each, scf.ForOp) and is_access_loop(each)]
                middles = [_between(a, b) for a, b in pairwise(inner)]
                if len(inner) == 2 and _may_join(inner, middles):
                    _Join(inner, middles).run()
