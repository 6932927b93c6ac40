"""Pass ``loop-distribution``: a loop with several loops in its body becomes several loops, one after the other.

What has nothing to do with each other is put apart: statements (loops along rows, stores, inner loops) that share a
local row, or of which one needs what the other computes, stay together. What the access unit computes is done in each.
Where all loops of a body belong together, they stay, and the next pass refuses them.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from daedal.compiler.analysis.scalars import is_access_loop, is_local
from daedal.compiler.transforms.builders.callback_builder import free_values


def _is_statement(op: Operation) -> bool:
    return isinstance(op, scf.ForOp | scf.IfOp | memref.StoreOp)


class _Split:
    """The statements of one loop's body, in groups."""

    def __init__(self, loop: scf.ForOp) -> None:
        self._loop = loop
        self._statements = [op for op in loop.body.block.ops if _is_statement(op)]
        self._group = {id(op): number for number, op in enumerate(self._statements)}

    def run(self) -> list[list[Operation]]:
        """The groups, in the order of their first loops; what belongs to no loop goes with the first."""
        for number, op in enumerate(self._statements):
            needed = self._needed(op)
            for other in self._statements[:number]:
                if needed & self._needed(other, results=True) or self._share_local_row(op, other):
                    self._join(op, other)
        loops: dict[int, list[Operation]] = {}
        for op in filter(is_access_loop, self._statements):
            loops.setdefault(self._group[id(op)], [])
        for op in self._statements:
            loops.get(self._group[id(op)], next(iter(loops.values()))).append(op)
        return list(loops.values())

    def _join(self, a: Operation, b: Operation) -> None:
        old, new = self._group[id(a)], self._group[id(b)]
        self._group = {op: new if number == old else number for op, number in self._group.items()}

    def _needed(self, op: Operation, *, results: bool = False) -> set[int]:
        """The other statements whose results ``op`` needs; with ``results``, ``op`` itself."""
        if results:
            return {id(op)}
        found: set[int] = set()
        waiting = free_values(op)
        while waiting:
            owner = waiting.pop().owner
            if isinstance(owner, Operation) and owner.parent is self._loop.body.block:
                if _is_statement(owner):
                    found.add(id(owner))
                else:
                    waiting += owner.operands
        return found

    def _share_local_row(self, a: Operation, b: Operation) -> bool:
        return bool(self._local_rows(a) & self._local_rows(b))

    def _local_rows(self, op: Operation) -> set[SSAValue]:
        found = {inner.memref for inner in op.walk() if isinstance(inner, memref.LoadOp | memref.StoreOp)}
        waiting, seen = free_values(op), set()
        while waiting:
            value = waiting.pop()
            owner = value.owner
            if value in seen or not isinstance(owner, Operation) or owner.parent is not self._loop.body.block:
                continue
            seen.add(value)
            if isinstance(owner, memref.LoadOp):
                found.add(owner.memref)
            if not _is_statement(owner):
                waiting += owner.operands
        return {buffer for buffer in found if is_local(buffer)}


def _may_split(loop: scf.ForOp, groups: list[list[Operation]]) -> bool:
    """Whether the groups can be done one after the other: they store to different buffers, or to different places of
    one in each turn of the loop.
    """
    if len(groups) < 2 or loop.iter_args:
        return False
    written: dict[SSAValue, set[int]] = {}
    for number, group in enumerate(groups):
        for store in [inner for op in group for inner in op.walk() if isinstance(inner, memref.StoreOp)]:
            written.setdefault(store.memref, set()).add(number)
    for buffer, numbers in written.items():
        stores = [use.operation for use in buffer.uses if isinstance(use.operation, memref.StoreOp)]
        is_own = all(loop.body.block.args[0] in store.indices for store in stores)
        if len(numbers) > 1 and not is_own:
            return False
    return True


def _split(loop: scf.ForOp) -> None:
    """Put copies of ``loop``, each with one group of the statements, in its place."""
    groups = _Split(loop).run()
    if not _may_split(loop, groups):
        return
    order = list(loop.body.block.ops)
    block = loop.parent
    assert block is not None
    for group in groups:
        copy = loop.clone()
        kept = {id(op) for op in group}
        for old, new in reversed(list(zip(order, copy.body.block.ops, strict=True))):
            is_other = _is_statement(old) and id(old) not in kept
            is_unused = bool(new.results) and all(result.first_use is None for result in new.results)
            is_free = is_side_effect_free(new) or isinstance(new, memref.LoadOp)
            if is_other or (is_unused and is_free):
                Rewriter.erase_op(new)
        block.insert_op_before(copy, loop)
    Rewriter.erase_op(loop)


@dataclass(frozen=True)
class LoopDistribution(ModulePass):
    """See the module."""

    name = "loop-distribution"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split in every function, inner loops first."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                for loop in reversed([inner for inner in function.walk() if is_access_loop(inner)]):
                    assert isinstance(loop, scf.ForOp)
                    if sum(is_access_loop(inner) for inner in loop.body.block.ops) > 1:
                        _split(loop)
