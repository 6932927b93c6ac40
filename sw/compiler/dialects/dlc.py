"""Dialect ``dlc``: the access program and the execute program, joined only by queues.

The access program is loops of ``slc`` with loads at byte addresses and *events*, which fill queues. The
execute program is callbacks, started by tokens, which pop them. Values that a launch fixes are arguments.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasParent, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import LANE
from daedal.compiler.dialects.slc import CONDITION_STREAM, EVENTS, StreamType, verify_index
from daedal.compiler.dialects.slcv_scalars import verify_stored
from daedal.hw.isa.elements import ROW_GRANULE, STORE_STEP

ARGUMENTS = ("base", "end", "size", "stride", "value")
"""What an argument can be: a buffer's first byte address, that after its last byte, its size in a dimension,
the bytes from one index of a dimension to the next, or a number that the caller gives."""

QUEUES = ("vector0", "vector1", "store")
"""Where a fetched row goes."""


def number(value: int) -> IntegerAttr[I64]:
    """``value`` as a property."""
    return IntegerAttr(value, i64)


@irdl_op_definition
class ArgumentOp(IRDLOperation):
    """A number that is fixed when a launch starts; see ``ARGUMENTS``."""

    name = "dlc.argument"

    kind = prop_def(StringAttr)
    buffer = prop_def(StringAttr)
    dimension = opt_prop_def(IntegerAttr[I64])
    result = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "$kind $buffer (`,` $dimension^)? attr-dict `:` type($result)"

    def __init__(self, kind: str, buffer: str, dimension: int | None = None) -> None:
        super().__init__(
            properties={
                "kind": StringAttr(kind),
                "buffer": StringAttr(buffer),
                "dimension": None if dimension is None else number(dimension),
            },
            result_types=[IndexType()],
        )

    def verify_(self) -> None:
        if self.kind.data not in ARGUMENTS:
            raise VerifyException(f"kind must be one of {', '.join(ARGUMENTS)}, not {self.kind.data!r}")
        if (self.kind.data in ("size", "stride")) != (self.dimension is not None):
            raise VerifyException("a size and a stride must have a dimension, the other kinds none")


@irdl_op_definition
class AccessOp(IRDLOperation):
    """The access program: nests of ``slc.for``, one after the other."""

    name = "dlc.access"
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$body attr-dict"

    def __init__(self, operations: Sequence[Operation] = ()) -> None:
        super().__init__(regions=[Region(Block(operations))])


@irdl_op_definition
class ExecuteOp(IRDLOperation):
    """The execute program: accumulators and callbacks."""

    name = "dlc.execute"
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$body attr-dict"

    def __init__(self, operations: Sequence[Operation] = ()) -> None:
        super().__init__(regions=[Region(Block(operations))])


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Loads the element of ``bytes`` bytes at ``base + index * bytes`` in an array that ends before
    ``end``.
    """

    name = "dlc.load"

    base = operand_def()
    index = operand_def()
    end = operand_def(IndexType())
    bytes = prop_def(IntegerAttr[I64])
    signed = opt_prop_def(UnitAttr)
    result = result_def(StreamType)

    traits = traits_def(Pure())
    assembly_format = (
        "$base `[` $index `]` `until` $end `bytes` $bytes (`signed` $signed^)? attr-dict `:` type($base) `,` "
        "type($index) `,` type($end) `->` type($result)"
    )

    def __init__(
        self, base: SSAValue, index: SSAValue, end: SSAValue, size: int, result: Attribute, *, signed: bool
    ) -> None:
        super().__init__(
            operands=[base, index, end],
            properties={"bytes": number(size), "signed": UnitAttr() if signed else None},
            result_types=[result],
        )

    def verify_(self) -> None:
        verify_index("base", self.base)
        verify_index("index", self.index)
        if self.bytes.value.data not in (1, 2, 4, 8):
            raise VerifyException(f"bytes must be 1, 2, 4 or 8, not {self.bytes.value.data}")


@irdl_op_definition
class EventOp(IRDLOperation):
    """What the access unit puts into queues at an event of the loop around it, if ``condition`` holds."""

    name = "dlc.event"

    event = prop_def(StringAttr)
    condition = opt_operand_def(CONDITION_STREAM)
    body = region_def("single_block")

    traits = traits_def(NoTerminator())
    assembly_format = "$event (`when` $condition^)? $body attr-dict"

    def __init__(self, event: str, condition: SSAValue | None, operations: Sequence[Operation] = ()) -> None:
        super().__init__(
            operands=[condition],
            properties={"event": StringAttr(event)},
            regions=[Region(Block(operations))],
        )

    def verify_(self) -> None:
        if self.event.data not in EVENTS:
            raise VerifyException(f"event must be one of {', '.join(EVENTS)}, not {self.event.data!r}")


@irdl_op_definition
class PushScalarOp(IRDLOperation):
    """Puts a value into the scalar queue."""

    name = "dlc.push_scalar"
    value = operand_def()
    traits = traits_def(HasParent(EventOp))
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])


@irdl_op_definition
class PushTokenOp(IRDLOperation):
    """Starts callback ``token``, or the one that is ``offset`` further on."""

    name = "dlc.push_token"
    token = prop_def(IntegerAttr[I64])
    offset = opt_operand_def(StreamType)
    traits = traits_def(HasParent(EventOp))
    assembly_format = "$token (`plus` $offset^ `:` type($offset))? attr-dict"

    def __init__(self, token: int, offset: SSAValue | None = None) -> None:
        super().__init__(operands=[offset], properties={"token": number(token)})


def _verify_size(size: IntegerAttr, unit: int) -> None:
    if size.value.data < unit or size.value.data % unit:
        raise VerifyException(f"bytes must be a multiple of {unit}, at least {unit}, not {size.value.data}")


@irdl_op_definition
class PushStoreOp(IRDLOperation):
    """Tells the store unit that a row of ``bytes`` bytes goes to ``base + index * pitch``.

    Its data are the next row that the execute unit stores or, with ``stream``, the next row fetched to
    ``store``.
    """

    name = "dlc.push_store"

    base = operand_def()
    index = operand_def()
    pitch = operand_def()
    bytes = prop_def(IntegerAttr[I64])
    stream = opt_prop_def(UnitAttr)

    traits = traits_def(HasParent(EventOp))
    assembly_format = (
        "$base `[` $index `*` $pitch `]` `bytes` $bytes (`stream` $stream^)? attr-dict `:` type($base) `,` "
        "type($index) `,` type($pitch)"
    )

    def __init__(self, base: SSAValue, index: SSAValue, pitch: SSAValue, size: int, *, stream: bool) -> None:
        super().__init__(
            operands=[base, index, pitch],
            properties={"bytes": number(size), "stream": UnitAttr() if stream else None},
        )

    def verify_(self) -> None:
        _verify_size(self.bytes, STORE_STEP)


@irdl_op_definition
class FetchOp(IRDLOperation):
    """Fetches the row of ``bytes`` bytes at ``base + index * pitch`` to a queue."""

    name = "dlc.fetch"

    queue = prop_def(StringAttr)
    base = operand_def()
    index = operand_def()
    pitch = operand_def()
    bytes = prop_def(IntegerAttr[I64])

    traits = traits_def(HasParent(EventOp))
    assembly_format = (
        "$queue $base `[` $index `*` $pitch `]` `bytes` $bytes attr-dict `:` type($base) `,` "
        "type($index) `,` "
        "type($pitch)"
    )

    def __init__(self, queue: str, base: SSAValue, index: SSAValue, pitch: SSAValue, size: int) -> None:
        super().__init__(operands=[base, index, pitch], properties={"queue": StringAttr(queue), "bytes": number(size)})

    def verify_(self) -> None:
        if self.queue.data not in QUEUES:
            raise VerifyException(f"queue must be one of {', '.join(QUEUES)}, not {self.queue.data!r}")
        _verify_size(self.bytes, ROW_GRANULE)


@irdl_op_definition
class CallbackOp(IRDLOperation):
    """What the execute unit does for a token."""

    name = "dlc.callback"

    token = prop_def(IntegerAttr[I64])
    body = region_def("single_block")

    traits = traits_def(NoTerminator(), HasParent(ExecuteOp))
    assembly_format = "$token $body attr-dict"

    def __init__(self, token: int, operations: Sequence[Operation] = ()) -> None:
        super().__init__(properties={"token": number(token)}, regions=[Region(Block(operations))])


@irdl_op_definition
class PopOp(IRDLOperation):
    """The next row of a vector queue."""

    name = "dlc.pop"
    queue = prop_def(StringAttr)
    result = result_def(VectorType)
    traits = traits_def(HasParent(CallbackOp))
    assembly_format = "$queue attr-dict `:` type($result)"

    def __init__(self, queue: str, result: VectorType) -> None:
        super().__init__(properties={"queue": StringAttr(queue)}, result_types=[result])

    def verify_(self) -> None:
        if self.queue.data not in QUEUES[:2]:
            raise VerifyException(f"queue must be one of {', '.join(QUEUES[:2])}, not {self.queue.data!r}")


@irdl_op_definition
class PopScalarOp(IRDLOperation):
    """The next value of the scalar queue: an f32, a count, or the low 32 bits of an integer."""

    name = "dlc.pop_scalar"
    result = result_def()
    traits = traits_def(HasParent(CallbackOp))
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result: Attribute) -> None:
        super().__init__(result_types=[result])

    def verify_(self) -> None:
        if not isinstance(self.result.type, IndexType) and self.result.type not in (LANE, i32):
            raise VerifyException(f"a scalar must be an {LANE}, an index or an i32, not {self.result.type}")


@irdl_op_definition
class ScalarOp(IRDLOperation):
    """A scalar register that is set once, before all else, and is the same in all callbacks."""

    name = "dlc.scalar"
    result = result_def(LANE)
    traits = traits_def(HasParent(ExecuteOp))
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self) -> None:
        super().__init__(result_types=[LANE])


@irdl_op_definition
class KeepOp(IRDLOperation):
    """Sets a scalar register of ``dlc.scalar``."""

    name = "dlc.keep"
    scalar = operand_def(LANE)
    value = operand_def(LANE)
    traits = traits_def(HasParent(CallbackOp))
    assembly_format = "$scalar `,` $value attr-dict"

    def __init__(self, scalar: SSAValue, value: SSAValue) -> None:
        super().__init__(operands=[scalar, value])

    def verify_(self) -> None:
        if not isinstance(self.scalar.owner, ScalarOp):
            raise VerifyException("scalar must be the result of dlc.scalar")


@irdl_op_definition
class DivideCountOp(IRDLOperation):
    """A row divided by a count, correctly rounded; divided by 0 it stays as it is."""

    name = "dlc.divide_count"
    row = operand_def(VectorType)
    count = operand_def(IndexType())
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$row `,` $count attr-dict `:` type($row) `->` type($result)"

    def __init__(self, row: SSAValue, count: SSAValue) -> None:
        super().__init__(operands=[row, count], result_types=[row.type])


@irdl_op_definition
class PushOp(IRDLOperation):
    """Sends a row, or a single f32, to the store unit."""

    name = "dlc.push"
    row = operand_def()
    traits = traits_def(HasParent(CallbackOp))
    assembly_format = "$row attr-dict `:` type($row)"

    def __init__(self, row: SSAValue) -> None:
        super().__init__(operands=[row])

    def verify_(self) -> None:
        verify_stored(self.row)


DLC = Dialect(
    "dlc",
    [
        ArgumentOp,
        AccessOp,
        ExecuteOp,
        LoadOp,
        EventOp,
        PushScalarOp,
        PushTokenOp,
        PushStoreOp,
        FetchOp,
        CallbackOp,
        PopOp,
        PopScalarOp,
        ScalarOp,
        KeepOp,
        DivideCountOp,
        PushOp,
    ],
    [],
)
