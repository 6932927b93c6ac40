"""Splits a callback of ``slc`` into what the access unit enqueues and what the execute unit does with it."""

from collections.abc import Callable
from typing import Protocol

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import FloatAttr, IndexType, VectorType, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from daedal.compiler.analysis.event_steps import EventSteps
from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.analysis.scalars import counted, without_casts
from daedal.compiler.dialects import dlc, narrow, slc, slcv, slcv_scalars
from daedal.compiler.dialects.narrow_packed import UnpackOp
from daedal.compiler.transforms.tile_columns import is_copy
from daedal.errors import UnsupportedOperation

ARITHMETIC = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    math.FmaOp,
    math.AbsFOp,
    slcv.KeepGreaterOp,
    slcv.KeepLessOp,
    slcv_scalars.CompareOp,
    slcv_scalars.SelectOp,
    narrow.WidenOp,
    narrow.RoundOp,
)
"""Operations on rows, and on single f32 as well."""

POPS_TWO = (arith.AddfOp, arith.SubfOp, arith.MulfOp, math.FmaOp)
"""Operations of which one instruction can pop both operands."""

SINGLE = (*ARITHMETIC, arith.DivfOp, math.SqrtOp, slcv_scalars.ToIntegerOp, slcv_scalars.ScaleOp)
"""Operations on single f32 that are the same in ``dlc``."""


class Translator(Protocol):
    """What a splitter asks of the pass around it."""

    lockstep: int
    """Bytes of the rows that one callback may pop two at a time."""

    streams: bool
    """Whether rows that are only copied go straight from memory to memory."""

    def stream(self, value: SSAValue) -> SSAValue:
        """What a stream, or an f32 constant, became."""
        ...

    def accumulator(self, value: SSAValue) -> SSAValue:
        """What an accumulator became."""
        ...

    def constant(self, number: float) -> SSAValue:
        """A constant f32 in a scalar register."""
        ...

    def count(self, number: int) -> SSAValue:
        """A constant index."""
        ...

    def row(self, memref: SSAValue, indices: list[SSAValue]) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Base, index and pitch of a row's address."""
        ...


def _second_operands(callback: slc.CallbackOp, lockstep: int) -> set[SSAValue]:
    """Rows that are only the second operand of products, sums and differences whose first is a fetched row as well.

    They come through a queue of their own, so that one instruction pops both.
    """
    found: set[SSAValue] = set()
    for op in callback.body.block.ops:
        if isinstance(op, slcv_scalars.ReduceOp) and len(op.rows) == 2:
            rows = list(op.rows)
        elif isinstance(op, POPS_TWO) and isinstance(op.results[0].type, VectorType):
            rows = list(op.operands)[:2]
        else:
            continue
        if all(isinstance(row.owner, slcv.FetchOp) and len(list(row.uses)) == 1 for row in rows):
            lockstep -= sum(map(slcv.fetched_bytes, rows))
            if lockstep >= 0:
                found.add(rows[1])
    return found


class CallbackSplitter:
    """Walks through one callback; pops are placed where their values are first used."""

    def __init__(self, callback: slc.CallbackOp, translator: Translator) -> None:
        self._callback, self._translator = callback, translator
        self._steps = EventSteps()
        self._block = Block()
        self._known: dict[SSAValue, SSAValue] = {}
        self._second = _second_operands(callback, translator.lockstep)

    def run(self, token: int) -> tuple[dlc.EventOp | None, dlc.CallbackOp | None]:
        """The event, and the callback for ``token`` if the execute unit has anything to do."""
        handlers: dict[type[Operation], Callable[..., None]] = {
            slcv.GetOp: self._get,
            slcv.SetOp: self._set,
            slcv.StoreOp: self._store,
            arith.DivfOp: self._divide,
            arith.NegfOp: self._negate,
        }
        for op in self._callback.body.block.ops:
            if type(op) in handlers:
                handlers[type(op)](op)
            elif isinstance(op, ARITHMETIC) and isinstance(op.results[0].type, VectorType):
                self._copy(op)
        executed = None
        if self._block.first_op is not None:
            executed = dlc.CallbackOp(token, [])
            executed.body.detach_block(0)
            executed.body.add_block(self._block)
        operations = self._steps.finish(None if executed is None else dlc.PushTokenOp(token))
        if not operations:
            return None, None
        old = self._callback.condition
        condition = None if old is None else self._translator.stream(old)
        return dlc.EventOp(self._callback.event.data, condition, operations), executed

    def _insert(self, op: Operation, old: SSAValue | None = None) -> SSAValue:
        self._block.add_op(op)
        if old is not None:
            op.results[0].name_hint = old.name_hint
            self._known[old] = op.results[0]
        return op.results[0] if op.results else SSAValue.get(op.operands[0])

    def _row(self, old: SSAValue) -> SSAValue:
        if old not in self._known:
            op = old.owner
            if isinstance(op, slcv.FetchOp):
                self._fetch(op)
            elif isinstance(op, vector.BroadcastOp):
                self._spread(op)
            elif isinstance(op, UnpackOp):
                self._unpack(op)
        if old not in self._known:
            raise UnsupportedOperation(f"row %{old.name_hint or '?'} cannot be offloaded")
        return self._known[old]

    def _fetch(self, op: slcv.FetchOp) -> None:
        place = self._translator.row(op.memref, list(op.indices))
        queue = "vector1" if op.result in self._second else "vector0"
        self._steps.fetch(dlc.FetchOp(queue, *place, slcv.fetched_bytes(op.result)))
        assert isinstance(op.result.type, VectorType)
        self._insert(dlc.PopOp(queue, op.result.type), op.result)

    def _unpack(self, op: UnpackOp) -> None:
        new = UnpackOp(self._row(op.words), op.bits.value.data)
        self._block.add_op(new)
        for old, result in zip(op.results, new.results, strict=True):
            result.name_hint = old.name_hint
            self._known[old] = result
        # What is made of the scale is there when the row comes, if the bias is added meanwhile.
        for user in [use.operation for use in op.scale.uses]:
            if isinstance(user, SINGLE):
                self._single(user.results[0])

    def _input(self, old: SSAValue) -> SSAValue:
        """The stream behind an argument of the callback; a constant itself."""
        return self._translator.stream(self._callback.source(old))

    def _spread(self, op: vector.BroadcastOp) -> None:
        source = op.source
        if not isinstance(source.owner, Block | arith.ConstantOp):
            self._insert(vector.BroadcastOp(self._single(source), op.vector.type), op.vector)
            return
        self._steps.scalar(dlc.PushScalarOp(self._input(source)))
        scalar = self._insert(dlc.PopScalarOp(source.type))
        scalar.name_hint = source.name_hint
        self._insert(vector.BroadcastOp(scalar, op.vector.type), op.vector)

    def _copy(self, op: Operation) -> None:
        rows = [self._row(value) for value in op.operands]
        new = type(op).create(operands=rows, result_types=[op.results[0].type], properties=op.properties)
        self._insert(new, op.results[0])

    def _negate(self, op: arith.NegfOp) -> None:
        if not isinstance(op.result.type, VectorType):
            return
        row = self._row(op.operand)
        minus_one = arith.ConstantOp(FloatAttr(-1.0, f32))
        self._steps.scalar(dlc.PushScalarOp(self._translator.stream(minus_one.result)))
        scalar = self._insert(dlc.PopScalarOp(f32))
        spread = self._insert(vector.BroadcastOp(scalar, op.result.type))
        self._insert(arith.MulfOp(row, spread), op.result)

    def _divide(self, op: arith.DivfOp) -> None:
        if not isinstance(op.result.type, VectorType):
            return
        count = counted(op.rhs.owner.source) if isinstance(op.rhs.owner, vector.BroadcastOp) else None
        if count is None:
            raise UnsupportedOperation(
                "arith.divf must be by a count of at least one, sitofp(maxsi(count, 1)), or by a "
                "constant count: "
                "the machine has no other division of rows; multiply by a reciprocal that is computed before"
            )
        row = self._row(op.lhs)
        pushed = self._translator.count(count) if isinstance(count, int) else self._input(count)
        self._steps.scalar(dlc.PushScalarOp(pushed))
        popped = self._insert(dlc.PopScalarOp(IndexType()))
        popped.name_hint = pushed.name_hint
        self._insert(dlc.DivideCountOp(row, popped), op.result)

    def _get(self, op: slcv.GetOp) -> None:
        accumulator = self._translator.accumulator(op.accumulator)
        new = slcv.GetOp(accumulator, slcv.width_of(op.result), clear=op.clear is not None)
        self._insert(new, op.result)

    def _set(self, op: slcv.SetOp) -> None:
        self._insert(slcv.SetOp(self._translator.accumulator(op.accumulator), self._row(op.row)))

    def _store(self, op: slcv.StoreOp) -> None:
        place, size = self._translator.row(op.memref, list(op.indices)), slcv.row_bytes(op.row)
        if not isinstance(op.row.type, VectorType):
            self._insert(dlc.PushOp(self._single(op.row)))
            self._steps.store(dlc.PushStoreOp(*place, size, stream=False))
            return
        fetch = op.row.owner
        if self._translator.streams and isinstance(fetch, slcv.FetchOp) and is_copy(fetch):
            source = self._translator.row(fetch.memref, list(fetch.indices))
            fetched = dlc.FetchOp("store", *source, slcv.fetched_bytes(fetch.result))
            self._steps.stream(dlc.PushStoreOp(*place, size, stream=True), fetched)
        else:
            self._insert(dlc.PushOp(self._row(op.row)))
            self._steps.store(dlc.PushStoreOp(*place, size, stream=False))

    # ------------------------------------------------------------------ single values

    def _single(self, old: SSAValue) -> SSAValue:
        """What a single f32 (or i32 on its way to one) became; it is computed where it is first needed."""
        if old not in self._known:
            op = old.owner
            if isinstance(op, Block):
                self._known[old] = self._pop(old, f32)
            elif isinstance(op, UnpackOp):
                self._unpack(op)
            elif isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr):
                self._known[old] = self._translator.constant(op.value.value.data)
            elif isinstance(op, slcv_scalars.ReduceOp):
                rows = [self._row(row) for row in op.rows]
                self._insert(slcv_scalars.ReduceOp(op.kind.data, rows, octets=op.octets is not None), old)
            elif isinstance(op, slcv_scalars.ElementOp):
                self._insert(slcv_scalars.ElementOp(self._row(op.row)), old)
            elif isinstance(op, arith.SIToFPOp):
                self._known[old] = self._as_float(op.input)
            elif isinstance(op, arith.NegfOp):
                self._insert(arith.MulfOp(self._single(op.operand), self._translator.constant(-1.0)), old)
            elif isinstance(op, SINGLE):
                operands = [self._single(value) for value in op.operands]
                new = type(op).create(operands=operands, result_types=[old.type], properties=op.properties)
                self._insert(new, old)
            else:
                raise UnsupportedOperation(f"{op.name} of single numbers cannot be offloaded")
        return self._known[old]

    def _pop(self, old: SSAValue, kind: Attribute) -> SSAValue:
        """What the access unit sends for an argument of the callback, or for a number that a launch fixes."""
        self._steps.scalar(dlc.PushScalarOp(self._input(old)))
        popped = self._insert(dlc.PopScalarOp(kind))
        popped.name_hint = old.name_hint
        return popped

    def _as_float(self, integer: SSAValue) -> SSAValue:
        integer = without_casts(integer)
        op = integer.owner
        if isinstance(op, slcv_scalars.ToIntegerOp):
            return self._insert(arith.SIToFPOp(self._single(integer), f32))
        if isinstance(op, arith.MaxSIOp):
            a, b = (self._as_float(value) for value in (op.lhs, op.rhs))
            return self._insert(slcv.KeepGreaterOp(a, b))
        number = constant_of(integer)
        if number is not None:
            return self._translator.constant(float(number))
        return self._insert(arith.SIToFPOp(self._pop(integer, i32), f32))
