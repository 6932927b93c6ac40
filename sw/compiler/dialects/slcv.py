"""Dialect ``slcv``: rows as vectors, in the callbacks of ``slc``.

Arithmetic on rows is ``arith`` and ``math`` on vectors; on single f32 it is the same on f32. Single f32 are spread by
``vector.broadcast``; those that a callback computes come from ``slcv.reduce``, ``slcv.element`` and arithmetic.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import ELEMENT_NAMES, LANE, bytes_of, row_element, stored_element
from daedal.compiler.dialects.slcv_scalars import (
    SCALAR_OPERATIONS,
    is_row,
    verify_alike,
)
from daedal.hw.isa.elements import ROW_GRANULE


@irdl_attr_definition
class AccumulatorType(ParametrizedAttribute, TypeAttribute):
    """A row of ``width`` f32 that stays in the execute unit from one callback to the next."""

    name = "slcv.accumulator"

    width: IntegerAttr[I64]

    def verify(self) -> None:
        if self.width.value.data < 1:
            raise VerifyException(f"width must be at least 1, not {self.width.value.data}")


def accumulator_type(width: int) -> AccumulatorType:
    """The type of an accumulator of ``width`` elements."""
    return AccumulatorType(IntegerAttr(width, i64))


def row_type(width: int, element: Attribute = LANE) -> VectorType:
    """The type of a row of ``width`` elements, in registers or as it is in memory."""
    return VectorType(element, [width])


def width_of(value: SSAValue) -> int:
    """The elements of a row or accumulator."""
    if isinstance(value.type, AccumulatorType):
        return value.type.width.value.data
    assert isinstance(value.type, VectorType)
    (width,) = value.type.get_shape()
    return width


def element_type(value: SSAValue) -> Attribute:
    """What a row is made of; the type of a single element."""
    return value.type.element_type if isinstance(value.type, VectorType) else value.type


def row_bytes(value: SSAValue) -> int:
    """Bytes that a row, or a single element, takes in memory."""
    elements = width_of(value) if isinstance(value.type, VectorType) else 1
    return elements * bytes_of(element_type(value))


def fetched_bytes(value: SSAValue) -> int:
    """Bytes that are fetched of a row: whole granules."""
    return -(-row_bytes(value) // ROW_GRANULE) * ROW_GRANULE


def _verify_access(memref: SSAValue, indices: Sequence[SSAValue], row: SSAValue) -> None:
    kind = memref.type
    assert isinstance(kind, MemRefType)
    if row_element(kind.element_type) is None:
        raise VerifyException(f"rows must be of {ELEMENT_NAMES}, not of {kind.element_type}")
    if len(indices) != kind.get_num_dims():
        raise VerifyException(f"there must be {kind.get_num_dims()} indices, not {len(indices)}")
    strides = kind.get_strides()
    if strides is None or strides[-1] != 1:
        raise VerifyException(f"the last dimension must have unit stride, not as in {kind}")
    if row.type != kind.element_type:
        _verify_row(row, kind.element_type)


def _verify_row(row: SSAValue, element: Attribute) -> None:
    if not is_row(row.type, element):
        raise VerifyException(f"a row must be a vector of {element} with one dimension, not {row.type}")


def _verify_fits(accumulator: SSAValue, row: SSAValue) -> None:
    _verify_row(row, LANE)
    if width_of(row) > width_of(accumulator):
        raise VerifyException(f"a row of {width_of(row)} elements must fit its accumulator of {width_of(accumulator)}")


@irdl_op_definition
class AccumulatorOp(IRDLOperation):
    """Declares an accumulator."""

    name = "slcv.accumulator"

    result = result_def(AccumulatorType)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, width: int) -> None:
        super().__init__(result_types=[accumulator_type(width)])


@irdl_op_definition
class GetOp(IRDLOperation):
    """The first elements of an accumulator; ``clear`` leaves it +0.0 in all elements."""

    name = "slcv.get"

    accumulator = operand_def(AccumulatorType)
    clear = opt_prop_def(UnitAttr)
    result = result_def(VectorType)

    assembly_format = "$accumulator (`clear` $clear^)? attr-dict `:` type($accumulator) `->` type($result)"

    def __init__(self, accumulator: SSAValue, width: int, *, clear: bool = False) -> None:
        super().__init__(
            operands=[accumulator],
            properties={"clear": UnitAttr() if clear else None},
            result_types=[row_type(width)],
        )

    def verify_(self) -> None:
        _verify_fits(self.accumulator, self.result)


@irdl_op_definition
class SetOp(IRDLOperation):
    """Replaces the first elements of an accumulator."""

    name = "slcv.set"

    accumulator = operand_def(AccumulatorType)
    row = operand_def(VectorType)

    assembly_format = "$accumulator `,` $row attr-dict `:` type($accumulator) `,` type($row)"

    def __init__(self, accumulator: SSAValue, row: SSAValue) -> None:
        super().__init__(operands=[accumulator, row])

    def verify_(self) -> None:
        _verify_fits(self.accumulator, self.row)


@irdl_op_definition
class FetchOp(IRDLOperation):
    """The elements of a memref from ``indices`` on, along the last dimension."""

    name = "slcv.fetch"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = "$memref `[` $indices `]` attr-dict `:` type($memref) `,` type($result)"

    def __init__(self, memref: SSAValue, indices: Sequence[SSAValue], width: int) -> None:
        assert isinstance(memref.type, MemRefType)
        super().__init__(operands=[memref, indices], result_types=[row_type(width, memref.type.element_type)])

    def verify_(self) -> None:
        _verify_access(self.memref, self.indices, self.result)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes a row, or a single f32, to a memref from ``indices`` on, along the last dimension."""

    name = "slcv.store"

    row = operand_def()
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType())

    assembly_format = "$row `,` $memref `[` $indices `]` attr-dict `:` type($row) `,` type($memref)"

    def __init__(self, row: SSAValue, memref: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[row, memref, indices])

    def verify_(self) -> None:
        _verify_access(self.memref, self.indices, self.row)
        assert isinstance(self.memref.type, MemRefType)
        if stored_element(self.memref.type.element_type) is None:
            raise VerifyException(f"rows that are stored must be of {ELEMENT_NAMES}, not of {self.memref.type}")


@irdl_op_definition
class KeepGreaterOp(IRDLOperation):
    """Element by element, ``a`` where it is greater than ``b``, else ``b`` (also if either is a NaN).

    With ``first``, all of ``a`` where ``b`` is an accumulator that was not set since it was cleared.
    """

    name = "slcv.keep_greater"

    a = operand_def()
    b = operand_def()
    first = opt_prop_def(UnitAttr)
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$a `,` $b (`first` $first^)? attr-dict `:` type($a) `,` type($b) `->` type($result)"

    def __init__(self, a: SSAValue, b: SSAValue, *, first: bool = False) -> None:
        super().__init__(operands=[a, b], properties={"first": UnitAttr() if first else None}, result_types=[a.type])

    def verify_(self) -> None:
        verify_alike(self.a, self.b, self.result)


@irdl_op_definition
class KeepLessOp(IRDLOperation):
    """Element by element, ``a`` where it is less than ``b``, else ``b`` (also if either is a NaN).

    With ``first``, all of ``a`` where ``b`` is an accumulator that was not set since it was cleared.
    """

    name = "slcv.keep_less"

    a = operand_def()
    b = operand_def()
    first = opt_prop_def(UnitAttr)
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$a `,` $b (`first` $first^)? attr-dict `:` type($a) `,` type($b) `->` type($result)"

    def __init__(self, a: SSAValue, b: SSAValue, *, first: bool = False) -> None:
        super().__init__(operands=[a, b], properties={"first": UnitAttr() if first else None}, result_types=[a.type])

    def verify_(self) -> None:
        verify_alike(self.a, self.b, self.result)


SLCV = Dialect(
    "slcv",
    [AccumulatorOp, GetOp, SetOp, FetchOp, StoreOp, KeepGreaterOp, KeepLessOp, *SCALAR_OPERATIONS],
    [AccumulatorType],
)
