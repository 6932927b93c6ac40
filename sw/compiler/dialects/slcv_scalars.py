"""Operations of ``slcv`` on single f32, and those that are the same on rows and on single f32."""

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, UnitAttr, VectorType, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import ELEMENT_NAMES, ELEMENT_TYPES, LANE

REDUCTIONS = {"add": 1, "mul_add": 2, "fma": 2, "max": 1, "min": 1}
"""What ``slcv.reduce`` can do, and of how many rows."""

COMPARISONS = ("greater", "less", "equal")
"""What ``slcv.compare`` can ask."""


def is_row(kind: Attribute, element: Attribute = LANE) -> bool:
    """Whether ``kind`` is that of a row: a vector of ``element`` with one dimension; in registers, of ``LANE``."""
    return isinstance(kind, VectorType) and kind.get_num_dims() == 1 and kind.element_type == element


def verify_stored(value: SSAValue) -> None:
    """Raise VerifyException unless memory can hold it as it is: an element, or a row of some."""
    if not any(value.type == element or is_row(value.type, element) for element in ELEMENT_TYPES):
        shown = f"an {ELEMENT_NAMES} or a vector of {ELEMENT_NAMES}"
        raise VerifyException(f"a value must be {shown} with one dimension, not {value.type}")


def verify_alike(*values: SSAValue) -> None:
    """Raise VerifyException unless all are single f32, or all rows of the same length."""
    kind = values[0].type
    if not (is_row(kind) or kind == LANE):
        raise VerifyException(f"a value must be an {LANE} or a vector of {LANE} with one dimension, not {kind}")
    for value in values:
        if value.type != kind:
            raise VerifyException(f"all values must be {kind}, not {value.type}")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """The elements of a row, or the products of those of two, combined: element i into partial result i mod 16, in
    order, then these as a tree (``Mode.REDUCE``); with ``octets`` into i mod 8, then neighbours first.
    """

    name = "slcv.reduce"

    kind = prop_def(StringAttr)
    octets = opt_prop_def(UnitAttr)
    rows = var_operand_def(VectorType)
    result = result_def(LANE)

    traits = traits_def(Pure())
    assembly_format = "$kind (`octets` $octets^)? $rows attr-dict `:` type($rows)"

    def __init__(self, kind: str, rows: Sequence[SSAValue], *, octets: bool = False) -> None:
        properties = {"kind": StringAttr(kind), "octets": UnitAttr() if octets else None}
        super().__init__(operands=[rows], properties=properties, result_types=[LANE])

    def verify_(self) -> None:
        kind = self.kind.data
        if kind not in REDUCTIONS:
            raise VerifyException(f"kind must be one of {', '.join(REDUCTIONS)}, not {kind!r}")
        if len(self.rows) != REDUCTIONS[kind]:
            raise VerifyException(f"{kind} must be of {REDUCTIONS[kind]} rows, not {len(self.rows)}")
        verify_alike(*self.rows)


@irdl_op_definition
class ElementOp(IRDLOperation):
    """The first element of a row."""

    name = "slcv.element"

    row = operand_def(VectorType)
    result = result_def(LANE)

    traits = traits_def(Pure())
    assembly_format = "$row attr-dict `:` type($row)"

    def __init__(self, row: SSAValue) -> None:
        super().__init__(operands=[row], result_types=[LANE])


@irdl_op_definition
class CompareOp(IRDLOperation):
    """Element by element, 1.0 if ``a`` is greater than, less than or equal to ``b``, else +0.0; a NaN is none of
    these.
    """

    name = "slcv.compare"

    kind = prop_def(StringAttr)
    a = operand_def()
    b = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$kind $a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)"

    def __init__(self, kind: str, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[a, b], properties={"kind": StringAttr(kind)}, result_types=[a.type])

    def verify_(self) -> None:
        if self.kind.data not in COMPARISONS:
            raise VerifyException(f"kind must be one of {', '.join(COMPARISONS)}, not {self.kind.data!r}")
        verify_alike(self.a, self.b, self.result)


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Element by element, ``a`` where ``mask`` is not zero, else ``b``, every bit of it."""

    name = "slcv.select"

    mask = operand_def()
    a = operand_def()
    b = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$mask `,` $a `,` $b attr-dict `:` type($mask) `,` type($a) `,` type($b) `->` type($result)"

    def __init__(self, mask: SSAValue, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[mask, a, b], result_types=[a.type])

    def verify_(self) -> None:
        verify_alike(self.mask, self.a, self.b, self.result)


@irdl_op_definition
class SigmoidOp(IRDLOperation):
    """``1 / (1 + exp(-x))``, as ``daedal.compiler.functions.sigmoid`` computes it."""

    name = "slcv.sigmoid"

    operand = operand_def(LANE)
    result = result_def(LANE)

    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict"

    def __init__(self, operand: SSAValue | Operation) -> None:
        super().__init__(operands=[operand], result_types=[LANE])


@irdl_op_definition
class ToIntegerOp(IRDLOperation):
    """The nearest integer, ties to even; what does not fit 32 signed bits becomes the nearest that does, a NaN 0."""

    name = "slcv.to_integer"

    operand = operand_def(LANE)
    result = result_def(i32)

    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict"

    def __init__(self, operand: SSAValue) -> None:
        super().__init__(operands=[operand], result_types=[i32])


@irdl_op_definition
class ScaleOp(IRDLOperation):
    """``value * 2**power``, rounded once."""

    name = "slcv.scale"

    value = operand_def(LANE)
    power = operand_def(i32)
    result = result_def(LANE)

    traits = traits_def(Pure())
    assembly_format = "$value `,` $power attr-dict"

    def __init__(self, value: SSAValue, power: SSAValue) -> None:
        super().__init__(operands=[value, power], result_types=[LANE])


SCALAR_OPERATIONS: tuple[type[Operation], ...] = (
    ReduceOp,
    ElementOp,
    CompareOp,
    SelectOp,
    SigmoidOp,
    ToIntegerOp,
    ScaleOp,
)
"""What ``slcv`` has for single f32."""
