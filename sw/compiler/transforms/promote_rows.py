"""Pass ``promote-rows``: a row of an output that is read and written again is kept in a local row meanwhile.

``out[b, d] = out[b, d] + x`` in a loop inside of that over b becomes an accumulation into a local row, which
is stored once, after the loop. If the first access reads, the row is loaded before. Every element is then
read before its only store. Rows of 16-bit elements are kept as f32, rounded where they would be stored.
"""

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, MemRefType, ModuleOp, f32
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from daedal.compiler.analysis.row_loops import constant_of, is_row_loop, is_within, loop_name
from daedal.compiler.dialects import check, narrow
from daedal.compiler.dialects.elements import LANE, row_element
from daedal.compiler.interpreters.elements import shortened
from daedal.errors import UnsupportedOperation

_INSTEAD = "reads run ahead of writes, so write another array, which a kernel after this one reads"


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
                raise UnsupportedOperation(
                    f"buffer %{buffer.name_hint} is read and written, but not along rows: {_INSTEAD}"
                )
            found.append(_Access(op, loop))
    return found


def _scope(buffer: SSAValue, accesses: list[_Access]) -> Block:
    """The body of the loop that decides which row is meant; it must be the same row everywhere."""
    leading = list(accesses[0].op.indices)[:-1]
    for access in accesses:
        column = access.loop.body.block.args[0]
        if list(access.op.indices)[:-1] != leading or access.op.indices[-1] is not column:
            raise UnsupportedOperation(
                f"buffer %{buffer.name_hint} is read and written, but not at the same row in all places: {_INSTEAD}"
            )
        if access.bounds != accesses[0].bounds:
            raise UnsupportedOperation(f"{loop_name(access.loop)}: all loops over a row must have the same bounds")
    blocks = [value.owner if isinstance(value.owner, Block) else value.owner.parent for value in leading]
    inside = [block for block in blocks if block is not None and isinstance(block.parent_op(), scf.ForOp)]
    if len(inside) != len(leading) or not inside:
        raise UnsupportedOperation(f"the rows of buffer %{buffer.name_hint} must be chosen by loops")
    scope = max(inside, key=_depth)
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
        assert isinstance(buffer.type, MemRefType)
        self._element = buffer.type.element_type
        self._local = memref.AllocaOp.get(LANE, shape=[upper])
        self._local.memref.name_hint = f"{buffer.name_hint}_row"

    def run(self) -> None:
        first = self._accesses[0]
        entry = self._buffer.owner
        assert isinstance(entry, Block)
        assert entry.first_op is not None
        starts_with_store = isinstance(first.op, memref.StoreOp) and first.loop.parent is self._scope
        if not starts_with_store:
            self._copy(self._beginning(), self._buffer, self._local.memref)
        last = self._scope.last_op
        point = InsertPoint.before(last) if isinstance(last, scf.YieldOp) else InsertPoint.at_end(self._scope)
        self._copy(point, self._local.memref, self._buffer)
        entry.insert_op_before(self._local, entry.first_op)
        for access in self._accesses:
            self._replace(access.op)

    def _beginning(self) -> InsertPoint:
        """Where it is known, and checked, which row is meant."""
        chosen = {value for value in self._accesses[0].op.indices[:-1] if value.owner is not self._scope}
        last = None
        for op in self._scope.ops:
            if chosen.intersection(op.results) or (isinstance(op, check.BoundsOp) and op.value in chosen):
                last = op
        assert self._scope.first_op is not None
        return InsertPoint.before(self._scope.first_op) if last is None else InsertPoint.after(last)

    def _replace(self, op: memref.LoadOp | memref.StoreOp) -> None:
        column = op.indices[-1]
        if isinstance(op, memref.StoreOp):
            value = _widened(op.value, InsertPoint.before(op))
            Rewriter.replace_op(op, memref.StoreOp.get(value, self._local.memref, [column]))
            return
        load = memref.LoadOp.get(self._local.memref, [column])
        for use in list(op.res.uses):
            if isinstance(use.operation, narrow.WidenOp):
                use.operation.result.replace_all_uses_with(load.res)
                Rewriter.erase_op(use.operation)
        element = self._element
        Rewriter.replace_op(op, [load] if element == LANE else [load, narrow.RoundOp(load.res, element)])

    def _copy(self, point: InsertPoint, source: SSAValue, target: SSAValue) -> None:
        """Copy the row from one buffer to the other."""
        loop = self._accesses[0].loop
        leading = list(self._accesses[0].op.indices)[:-1]
        body = Block(arg_types=[IndexType()])
        column = body.args[0]
        column.name_hint = "d"

        def at(buffer: SSAValue) -> list[SSAValue]:
            return [column] if buffer is self._local.memref else [*leading, column]

        load = memref.LoadOp.get(source, at(source))
        body.add_op(load)
        end, value = Builder(InsertPoint.at_end(body)), load.res
        if self._element != LANE and source is self._local.memref:
            value = end.insert(narrow.RoundOp(value, self._element)).result
        elif self._element != LANE:
            value = end.insert(narrow.WidenOp(value)).result
        body.add_ops([memref.StoreOp.get(value, target, at(target)), scf.YieldOp()])
        Builder(point).insert(scf.ForOp(loop.lb, loop.ub, loop.step, [], body))


def _widened(value: SSAValue, point: InsertPoint) -> SSAValue:
    """What is stored, as f32; of a constant that is another one."""
    if value.type == LANE:
        return value
    rounded = value.owner
    if isinstance(rounded, narrow.RoundOp) and isinstance(rounded.wide.owner, arith.ConstantOp):
        number = rounded.wide.owner.value
        assert isinstance(number, FloatAttr)
        wide = shortened(number.value.data, value.type)
        return Builder(point).insert(arith.ConstantOp(FloatAttr(float(wide), f32))).result
    return Builder(point).insert(narrow.WidenOp(value)).result


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
    if not isinstance(kind, MemRefType) or row_element(kind.element_type) is None:
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
