"""Pass ``promote-rows``: a row of an output that is read and written again is kept in a local row meanwhile.

``out[b, d] = out[b, d] + x`` in a loop inside of that over b becomes an accumulation into a local row, which
is stored once, after the loop. If the first access reads, the row is loaded before. Every element is then
read before its only store.
"""

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from daedal.compiler.analysis.row_loops import constant_of, is_row_loop, is_within, loop_name
from daedal.compiler.dialects.elements import LANE
from daedal.errors import UnsupportedOperation


@dataclass
class _Access:
    op: memref.LoadOp | memref.StoreOp
    loop: scf.ForOp

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        return constant_of(self.loop.lb), constant_of(self.loop.ub)


def _accesses(buffer: SSAValue) -> list[_Access]:
    """The accesses to ``buffer`` in the order of the text; UnsupportedOperation if one is not along a row."""
    found = []
    users = {use.operation for use in buffer.uses if isinstance(use.operation, memref.LoadOp | memref.StoreOp)}
    block = buffer.owner
    assert isinstance(block, Block)
    for op in block.walk():
        if op in users:
            assert isinstance(op, memref.LoadOp | memref.StoreOp)
            loop = op.parent_op()
            if not isinstance(loop, scf.ForOp) or not is_row_loop(loop):
                raise UnsupportedOperation(f"buffer %{buffer.name_hint} is read and written, but not along rows")
            found.append(_Access(op, loop))
    return found


def _scope(buffer: SSAValue, accesses: list[_Access]) -> Block:
    """The body of the loop that decides which row is meant; it must be the same row everywhere."""
    leading = list(accesses[0].op.indices)[:-1]
    for access in accesses:
        column = access.loop.body.block.args[0]
        if list(access.op.indices)[:-1] != leading or access.op.indices[-1] is not column:
            raise UnsupportedOperation(
                f"buffer %{buffer.name_hint} is read and written, but not at the same row in all places"
            )
        if access.bounds != accesses[0].bounds:
            raise UnsupportedOperation(f"{loop_name(access.loop)}: all loops over a row must have the same bounds")
    blocks = [value.owner for value in leading if isinstance(value.owner, Block)]
    if len(blocks) != len(leading) or not blocks:
        raise UnsupportedOperation(f"the rows of buffer %{buffer.name_hint} must be chosen by loops")
    scope = max(blocks, key=_depth)
    if not all(is_within(access.op, scope) for access in accesses):
        raise UnsupportedOperation(f"the rows of buffer %{buffer.name_hint} must be chosen by the loops around them")
    return scope


def _depth(block: Block) -> int:
    depth, op = 0, block.parent_op()
    while op is not None:
        depth, op = depth + 1, op.parent_op()
    return depth


class _Promotion:
    """Replaces the accesses to one buffer."""

    def __init__(self, buffer: SSAValue, accesses: list[_Access]) -> None:
        self._buffer, self._accesses = buffer, accesses
        self._scope = _scope(buffer, accesses)
        upper = accesses[0].bounds[1]
        assert upper is not None
        self._local = memref.AllocaOp.get(LANE, shape=[upper])
        self._local.memref.name_hint = f"{buffer.name_hint}_row"

    def run(self) -> None:
        first = self._accesses[0]
        entry = self._buffer.owner
        assert isinstance(entry, Block)
        assert entry.first_op is not None
        starts_with_store = isinstance(first.op, memref.StoreOp) and first.loop.parent is self._scope
        if not starts_with_store:
            assert self._scope.first_op is not None
            self._copy(InsertPoint.before(self._scope.first_op), self._buffer, self._local.memref)
        last = self._scope.last_op
        point = InsertPoint.before(last) if isinstance(last, scf.YieldOp) else InsertPoint.at_end(self._scope)
        self._copy(point, self._local.memref, self._buffer)
        entry.insert_op_before(self._local, entry.first_op)
        for access in self._accesses:
            self._replace(access.op)

    def _replace(self, op: memref.LoadOp | memref.StoreOp) -> None:
        column = op.indices[-1]
        if isinstance(op, memref.LoadOp):
            Rewriter.replace_op(op, memref.LoadOp.get(self._local.memref, [column]))
        else:
            Rewriter.replace_op(op, memref.StoreOp.get(op.value, self._local.memref, [column]))

    def _copy(self, point: InsertPoint, source: SSAValue, target: SSAValue) -> None:
        """Copy the row from one buffer to the other."""
        loop = self._accesses[0].loop
        leading = list(self._accesses[0].op.indices)[:-1]
        body = Block(arg_types=[IndexType()])
        column = body.args[0]
        column.name_hint = "d"

        def at(buffer: SSAValue) -> list[SSAValue]:
            return [column] if buffer is self._local.memref else [*leading, column]

        value = memref.LoadOp.get(source, at(source))
        body.add_ops([value, memref.StoreOp.get(value, target, at(target)), scf.YieldOp()])
        Builder(point).insert(scf.ForOp(loop.lb, loop.ub, loop.step, [], body))


@dataclass(frozen=True)
class PromoteRows(ModulePass):
    """See the module."""

    name = "promote-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every buffer of every function."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                for buffer in function.body.block.args:
                    _promote(buffer)


def _promote(buffer: SSAValue) -> None:
    kind = buffer.type
    if not isinstance(kind, MemRefType) or kind.element_type != LANE:
        return
    users = [use.operation for use in buffer.uses]
    kinds = {type(op) for op in users} & {memref.LoadOp, memref.StoreOp}
    if len(kinds) == 2:
        accesses = _accesses(buffer)
        if not _is_kept(accesses):
            _Promotion(buffer, accesses).run()


def _is_kept(accesses: list[_Access]) -> bool:
    """Whether a single element is copied to somewhere and, in another loop, back: nothing is left to be kept."""
    return len({id(access.loop) for access in accesses}) == len(accesses) == 2 and all(
        access.bounds == (0, 1) and access.op.indices[-1] is not access.loop.body.block.args[0] for access in accesses
    )
