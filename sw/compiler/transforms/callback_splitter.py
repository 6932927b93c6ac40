"""Splits a callback of ``slc`` into what the access unit enqueues and what the execute unit does with it."""

from collections.abc import Callable
from typing import Protocol

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import Float32Type, FloatAttr, IndexType, VectorType, f32
from xdsl.ir import Block, Operation, SSAValue

from daedal.compiler.dialects import dlc, slc, slcv
from daedal.compiler.transforms.event_steps import EventSteps
from daedal.compiler.transforms.rows import constant_of
from daedal.compiler.transforms.tile_columns import is_copy
from daedal.errors import UnsupportedOperation

CASTS = (arith.IndexCastOp, arith.ExtSIOp)

LARGEST_COUNT = 1 << 24
"""Counts are below this (see VectorOp.DIVIDE_COUNT)."""

ARITHMETIC = (
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    math.FmaOp,
    math.AbsFOp,
    slcv.KeepGreaterOp,
    slcv.KeepLessOp,
)


class Translator(Protocol):
    """What a splitter asks of the pass around it."""

    def stream(self, value: SSAValue) -> SSAValue:
        """What a stream, or an f32 constant, became."""
        ...

    def accumulator(self, value: SSAValue) -> SSAValue:
        """What an accumulator became."""
        ...

    def count(self, number: int) -> SSAValue:
        """A constant index."""
        ...

    def row(self, memref: SSAValue, indices: list[SSAValue]) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Base, index and pitch of a row's address."""
        ...


class CallbackSplitter:
    """Walks through one callback; pops are placed where their values are first used."""

    def __init__(self, callback: slc.CallbackOp, translator: Translator) -> None:
        self._callback, self._translator = callback, translator
        self._steps = EventSteps()
        self._block = Block()
        self._known: dict[SSAValue, SSAValue] = {}

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
        if old not in self._known:
            raise UnsupportedOperation(f"row %{old.name_hint or '?'} cannot be offloaded")
        return self._known[old]

    def _bytes(self, row: SSAValue) -> int:
        return 4 * slcv.width_of(row)

    def _fetch(self, op: slcv.FetchOp) -> None:
        place = self._translator.row(op.memref, list(op.indices))
        self._steps.fetch(dlc.FetchOp("vector0", *place, self._bytes(op.result)))
        assert isinstance(op.result.type, VectorType)
        self._insert(dlc.PopOp("vector0", op.result.type), op.result)

    def _input(self, old: SSAValue) -> SSAValue:
        """The stream behind an argument of the callback; a constant itself."""
        if old.owner is self._callback.body.block:
            old = self._callback.inputs[list(self._callback.body.block.args).index(old)]  # type: ignore[arg-type]
        return self._translator.stream(old)

    def _spread(self, op: vector.BroadcastOp) -> None:
        source = op.source
        is_fixed = isinstance(source.owner, Block | arith.ConstantOp)
        if not isinstance(source.type, Float32Type) or not is_fixed:
            raise UnsupportedOperation(
                f"value %{source.name_hint or '?'} cannot be used along a row: it must be a load, an "
                "argument, a constant, or the "
                "divisor in a division by a count"
            )
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
        count = _counted(op.rhs)
        if count is None:
            raise UnsupportedOperation(
                "arith.divf must be by a count of at least one, sitofp(maxsi(count, 1)), or by a "
                "constant count: "
                "the machine has no other division"
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
        place = self._translator.row(op.memref, list(op.indices))
        size = self._bytes(op.row)
        fetch = op.row.owner
        if isinstance(fetch, slcv.FetchOp) and is_copy(fetch):
            source = self._translator.row(fetch.memref, list(fetch.indices))
            self._steps.stream(dlc.PushStoreOp(*place, size, stream=True), dlc.FetchOp("store", *source, size))
        else:
            self._insert(dlc.PushOp(self._row(op.row)))
            self._steps.store(dlc.PushStoreOp(*place, size, stream=False))


def _counted(row: SSAValue) -> SSAValue | int | None:
    """The count n, if ``row`` is max(n, 1), or a number from 1 that a count can be, as f32 in all
    elements.
    """
    spread = row.owner
    if not isinstance(spread, vector.BroadcastOp):
        return None
    convert = spread.source.owner
    if isinstance(convert, arith.ConstantOp) and isinstance(convert.value, FloatAttr):
        number = convert.value.value.data
        return int(number) if 1 <= number < LARGEST_COUNT and number == int(number) else None
    if not isinstance(convert, arith.SIToFPOp | arith.UIToFPOp):
        return None
    value = convert.input
    while isinstance(value.owner, CASTS):
        value = value.owner.operands[0]
    maximum = value.owner
    if not isinstance(maximum, arith.MaxSIOp):
        return None
    for count, one in ((maximum.lhs, maximum.rhs), (maximum.rhs, maximum.lhs)):
        if constant_of(one) == 1:
            return count
    return None
