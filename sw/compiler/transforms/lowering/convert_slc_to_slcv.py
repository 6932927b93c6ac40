"""Pass ``convert-slc-to-slcv``: loops along a row, in callbacks, become operations on whole rows.

Local rows (``memref.alloca``) become accumulators, which stay in the execute unit. A loop with ``daedal.reduce``
becomes a ``slcv.reduce`` for each f32 that it carries. A row that a callback reads twice is fetched
once, with the option ``reuse``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math, memref, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from daedal.compiler.analysis.aliases import check_aliases
from daedal.compiler.analysis.reductions import Reduction, reductions_of
from daedal.compiler.analysis.row_loops import OCTETS, column_offset, constant_of, is_row_loop, naming
from daedal.compiler.analysis.scalars import is_computed, is_local
from daedal.compiler.dialects import narrow, slc, slcv, slcv_scalars
from daedal.compiler.dialects.elements import ELEMENT_NAMES, LANE, row_element
from daedal.compiler.dialects.narrow_packed import ElementOp, HeadOp, UnpackOp
from daedal.compiler.transforms.builders.selections import kept, selected
from daedal.errors import UnsupportedOperation

VECTOR_OPERATIONS = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.DivfOp,
    arith.NegfOp,
    math.FmaOp,
    math.AbsFOp,
    narrow.WidenOp,
    narrow.RoundOp,
)
"""Operations that work on rows as they do on elements."""

Fetches = dict[tuple[SSAValue, ...], slcv.FetchOp]
"""The rows that a callback has fetched, by buffer and indices."""

Unpacked = dict[tuple[SSAValue, SSAValue], UnpackOp]
"""The rows with a head that a callback has fetched, by buffer and index."""


class _Accumulators:
    """The accumulators of a function, by the local rows that they replace."""

    def __init__(self) -> None:
        self._made: dict[SSAValue, SSAValue] = {}
        self._first: dict[SSAValue, int] = {}

    def of(self, buffer: SSAValue, indices: list[SSAValue], column: SSAValue, first: int) -> SSAValue:
        """The accumulator for an access to ``buffer`` in a loop whose columns start at ``first``."""
        if indices != [column]:
            raise UnsupportedOperation(
                f"local row %{buffer.name_hint or '?'} must be used at the column of the loop and nowhere else"
            )
        if self._first.setdefault(buffer, first) != first:
            raise UnsupportedOperation(
                f"all loops over local row %{buffer.name_hint or '?'} must start at the same column, "
                f"not {self._first[buffer]} and {first}"
            )
        return self._accumulator(buffer)

    def single(self, buffer: SSAValue, indices: list[SSAValue]) -> SSAValue:
        """The accumulator for an access outside of loops to a local row of one element."""
        if _local_width(buffer) != 1 or [constant_of(index) for index in indices] != [0]:
            raise UnsupportedOperation(
                f"local row %{buffer.name_hint or '?'} must be used in loops along it: single elements cannot be"
            )
        return self._accumulator(buffer)

    def _accumulator(self, buffer: SSAValue) -> SSAValue:
        if buffer not in self._made:
            op = slcv.AccumulatorOp(_local_width(buffer))
            op.result.name_hint = buffer.name_hint
            alloca = buffer.owner
            assert isinstance(alloca, Operation)
            assert alloca.parent is not None
            alloca.parent.insert_op_before(op, alloca)
            self._made[buffer] = op.result
        return self._made[buffer]


def _local_width(buffer: SSAValue) -> int:
    kind = buffer.type
    if not isinstance(kind, MemRefType) or kind.element_type != LANE:
        raise UnsupportedOperation(f"a local row must be of {LANE}, not {kind}")
    shape = kind.get_shape()
    if len(shape) != 1 or shape[0] < 1:
        raise UnsupportedOperation(f"a local row must have one dimension of a fixed size, not {kind}")
    return shape[0]


class _RowLoop:
    """Replaces one loop over a row."""

    def __init__(self, loop: scf.ForOp, accumulators: _Accumulators, fetches: Fetches, unpacked: Unpacked) -> None:
        lower, upper = constant_of(loop.lb), constant_of(loop.ub)
        assert lower is not None
        assert upper is not None
        self._loop, self._accumulators = loop, accumulators
        self._column: SSAValue = loop.body.block.args[0]
        self._first, self._width = lower, upper - lower
        self._rows: dict[SSAValue, SSAValue] = {}
        self._fetches, self._unpacked = fetches, unpacked
        self._reductions = reductions_of(loop)

    def run(self) -> None:
        handlers: dict[type[Operation], Callable[..., None]] = {
            memref.LoadOp: self._load,
            memref.StoreOp: self._store,
            arith.SelectOp: self._select,
            ElementOp: self._element,
        }
        combining = [op for reduction in self._reductions for op in reduction.combining]
        for op in self._loop.body.block.ops:
            if any(op is other for other in combining):
                continue
            if type(op) in handlers:
                handlers[type(op)](op)
            elif isinstance(op, VECTOR_OPERATIONS):
                self._arithmetic(op)
            elif not isinstance(op, arith.AddiOp | arith.CmpfOp | arith.OrIOp | arith.AndIOp | scf.YieldOp):
                raise UnsupportedOperation(f"{op.name} on a row cannot be offloaded")
        for reduction, result in zip(self._reductions, self._loop.results, strict=True):
            self._reduce(reduction, result)
        Rewriter.erase_op(self._loop)

    def _reduce(self, reduction: Reduction, result: SSAValue) -> None:
        rows, octets = [self._row(value) for value in reduction.values], OCTETS in self._loop.attributes
        total = self._add(slcv_scalars.ReduceOp(reduction.kind, rows, octets=octets))
        if not reduction.is_neutral:
            total.name_hint = result.name_hint
            total = self._add(reduction.combine(total))
        total.name_hint = result.name_hint
        result.replace_all_uses_with(total)

    def _add(self, op: Operation) -> SSAValue:
        self._insert(op)
        return op.results[0]

    def _insert(self, op: Operation, like: SSAValue | None = None) -> None:
        block = self._loop.parent
        assert block is not None
        block.insert_op_before(op, self._loop)
        if like is not None:
            op.results[0].name_hint = like.name_hint
            self._rows[like] = op.results[0]

    def _row(self, value: SSAValue) -> SSAValue:
        """The row for an element; what does not change along the row is spread."""
        if value not in self._rows:
            if isinstance(value.owner, VECTOR_OPERATIONS) and not is_computed(value):
                self._arithmetic(value.owner)
            else:
                self._insert(vector.BroadcastOp(value, slcv.row_type(self._width)), value)
        return self._rows[value]

    def _place(self, indices: list[SSAValue]) -> list[SSAValue]:
        """The indices of the first element of the row."""
        *leading, last = indices
        found, offset = column_offset(last, self._column)
        if not found:
            raise UnsupportedOperation("a row must be read and written at consecutive elements")
        if offset is None:
            offset = self._loop.lb
        elif self._first:
            added = arith.AddiOp(offset, self._loop.lb)
            self._insert(added)
            offset = added.result
        return [*leading, offset]

    def _load(self, op: memref.LoadOp) -> None:
        if isinstance(op.memref.owner, memref.AllocaOp):
            accumulator = self._accumulators.of(op.memref, list(op.indices), self._column, self._first)
            self._insert(slcv.GetOp(accumulator, self._width), op.res)
        elif row_element(op.res.type) is not None:
            fetch = slcv.FetchOp(op.memref, self._place(list(op.indices)), self._width)
            key = (fetch.memref, *fetch.indices)
            if key in self._fetches and slcv.width_of(self._fetches[key].result) == self._width:
                self._rows[op.res] = self._fetches[key].result
                fetch.erase()
            else:
                self._insert(fetch, op.res)
                self._fetches[key] = fetch
        else:
            raise UnsupportedOperation(f"a row must be of {ELEMENT_NAMES}, not {op.res.type}")

    def _element(self, op: ElementOp) -> None:
        found = self._unpacked.get((op.table, op.index))
        if found is None or found.bits != op.bits or slcv.width_of(found.row) != self._width or self._first:
            raise UnsupportedOperation("rows with a head must be used as a whole, behind their head")
        self._rows[op.result] = found.row

    def _store(self, op: memref.StoreOp) -> None:
        row = self._row(op.value)
        if isinstance(op.memref.owner, memref.AllocaOp):
            accumulator = self._accumulators.of(op.memref, list(op.indices), self._column, self._first)
            self._insert(slcv.SetOp(accumulator, row))
        else:
            self._insert(slcv.StoreOp(row, op.memref, self._place(list(op.indices))))

    def _arithmetic(self, op: Operation) -> None:
        rows = [self._row(value) for value in op.operands]
        kind = slcv.row_type(self._width, op.results[0].type)
        self._insert(type(op).create(operands=rows, result_types=[kind], properties=op.properties), op.results[0])

    def _select(self, op: arith.SelectOp) -> None:
        first, compare = self._unless_first(op.cond)
        if first:
            keep = None if not isinstance(compare, Operation) else kept(op, compare)
            if keep is None:
                raise UnsupportedOperation(
                    "arith.select on a row with `first`, which compares a counter with 0, must be of the form "
                    "`first | a > b ? a : b` or `first | a < b ? a : b`, with cmpf ogt or olt"
                )
            self._insert(keep(self._row(op.lhs), self._row(op.rhs), first=True), op.result)
        else:
            new = selected(op, self._row, self._add)
            new.name_hint = op.result.name_hint
            self._rows[op.result] = new

    def _unless_first(self, condition: SSAValue) -> tuple[bool, Operation | Block]:
        """Whether ``condition`` also holds in the first iteration, and what else it is."""
        both = condition.owner
        if isinstance(both, arith.OrIOp):
            for first, other in ((both.lhs, both.rhs), (both.rhs, both.lhs)):
                if self._is_first(first):
                    return True, other.owner
        return False, both

    def _is_first(self, value: SSAValue) -> bool:
        callback = self._loop.parent_op()
        assert isinstance(callback, slc.CallbackOp)
        source = callback.source(value).owner
        return (
            isinstance(source, slc.FirstOp)
            and source.parent is callback.parent
            and source.condition is callback.condition
        )


@dataclass(frozen=True)
class ConvertSlcToSlcv(ModulePass):
    """See the module."""

    name = "convert-slc-to-slcv"

    reuse: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Vectorise the callbacks of every function."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                _vectorise(function, reuse=self.reuse)
                check_aliases(function)


def _vectorise(function: func.FuncOp, *, reuse: bool) -> None:
    accumulators = _Accumulators()
    for callback in [op for op in function.walk() if isinstance(op, slc.CallbackOp)]:
        with naming(callback):
            _vectorise_callback(callback, accumulators, reuse=reuse)
        _remove_unused(callback)
    for alloca in [op for op in function.body.block.ops if isinstance(op, memref.AllocaOp)]:
        Rewriter.erase_op(alloca)


def _vectorise_callback(callback: slc.CallbackOp, accumulators: _Accumulators, *, reuse: bool) -> None:
    fetches: Fetches = {}
    unpacked = _unpack_rows(callback)
    for op in list(callback.body.block.ops):
        if isinstance(op, scf.ForOp):
            if not is_row_loop(op):
                raise UnsupportedOperation("a loop in a callback must run along a row")
            _RowLoop(op, accumulators, fetches if reuse else {}, unpacked).run()
        else:
            _single(op, accumulators)


def _unpack_rows(callback: slc.CallbackOp) -> Unpacked:
    """Fetch each row with a head whose head is used, once, where that is first used."""
    bits = {(op.table, op.index): op.bits.value.data for op in callback.walk() if isinstance(op, ElementOp)}
    found: Unpacked = {}
    for op in [op for op in callback.body.block.ops if isinstance(op, HeadOp)]:
        key, block = (op.table, op.index), op.parent
        assert block is not None
        if key not in bits:
            raise UnsupportedOperation("the head of a row must be used with the row")
        if key not in found:
            zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
            assert isinstance(op.table.type, MemRefType)
            fetch = slcv.FetchOp(op.table, [op.index, zero.result], op.table.type.get_shape()[1])
            found[key] = UnpackOp(fetch.result, bits[key])
            for new in (zero, fetch, found[key]):
                block.insert_op_before(new, op)
        _name(found[key].scale, op.scale)
        _name(found[key].bias, op.bias)
        Rewriter.erase_op(op)
    return found


def _name(new: SSAValue, old: SSAValue) -> None:
    new.name_hint = old.name_hint or new.name_hint
    old.replace_all_uses_with(new)


def _single(op: Operation, accumulators: _Accumulators) -> None:
    """Replace an operation on single f32 that is another one in ``slcv``."""
    block = op.parent
    assert block is not None

    def add(new: Operation) -> SSAValue:
        block.insert_op_before(new, op)
        return new.results[0] if new.results else SSAValue.get(new.operands[0])

    if isinstance(op, memref.StoreOp) and is_local(op.memref):
        row = add(vector.BroadcastOp(op.value, slcv.row_type(1)))
        add(slcv.SetOp(accumulators.single(op.memref, list(op.indices)), row))
        Rewriter.erase_op(op)
    elif isinstance(op, memref.StoreOp):
        add(slcv.StoreOp(op.value, op.memref, list(op.indices)))
        Rewriter.erase_op(op)
    elif isinstance(op, memref.LoadOp):
        row = add(slcv.GetOp(accumulators.single(op.memref, list(op.indices)), 1))
        _replace(op, add(slcv_scalars.ElementOp(row)))
    elif isinstance(op, arith.SelectOp):
        _replace(op, selected(op, lambda value: value, add))


def _replace(op: Operation, new: SSAValue) -> None:
    new.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(new)
    Rewriter.erase_op(op)


def _remove_unused(callback: slc.CallbackOp) -> None:
    for op in reversed(list(callback.body.block.ops)):
        is_free = is_side_effect_free(op) or isinstance(op, slcv.GetOp)
        if op.results and is_free and all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)
