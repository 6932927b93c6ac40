"""Dialect ``narrow``: elements of memory of 16 bits or less, and the f32 that lanes compute with, one by one or along a
row.

Integers and floats of 8 bits (``ui8``, ``f8E4M3``, ``f8E5M2``) are widened and nothing is rounded to them; those with a
head are in ``narrow_packed``.
"""

from xdsl.dialects.builtin import UnitAttr, VectorType
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import ELEMENT_NAMES, LANE, row_element, stored_element
from daedal.compiler.dialects.narrow_packed import PACKED_OPERATIONS
from daedal.hw.isa.elements import BFLOAT16


def _parts(kind: Attribute) -> tuple[Attribute, object]:
    """The type of an element, and what else there is of a value's type."""
    return (kind.element_type, kind.shape) if isinstance(kind, VectorType) else (kind, None)


def _with(kind: Attribute, element: Attribute) -> Attribute:
    return VectorType(element, kind.get_shape()) if isinstance(kind, VectorType) else element


def _verify(narrow: Attribute, wide: Attribute) -> None:
    element, shape = _parts(narrow)
    if row_element(element) is None or element == LANE or _parts(wide) != (LANE, shape):
        raise VerifyException(f"{narrow} and {wide} must be {ELEMENT_NAMES} of one shape, and only the latter {LANE}")


@irdl_op_definition
class WidenOp(IRDLOperation):
    """The f32 that elements of another type are."""

    name = "narrow.widen"
    narrow = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$narrow attr-dict `:` type($narrow) `to` type($result)"

    def __init__(self, narrow: SSAValue | Operation) -> None:
        narrow = SSAValue.get(narrow)
        super().__init__(operands=[narrow], result_types=[_with(narrow.type, LANE)])

    def verify_(self) -> None:
        _verify(self.narrow.type, self.result.type)


@irdl_op_definition
class RoundOp(IRDLOperation):
    """f32 rounded to nearest elements of another type; ties to even, with ``away`` away from zero (bf16 alone)."""

    name = "narrow.round"
    wide = operand_def()
    away = opt_prop_def(UnitAttr)
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$wide (`away` $away^)? attr-dict `:` type($wide) `to` type($result)"

    def __init__(self, wide: SSAValue | Operation, element: Attribute, *, away: bool = False) -> None:
        wide = SSAValue.get(wide)
        properties = {"away": UnitAttr()} if away else {}
        super().__init__(operands=[wide], properties=properties, result_types=[_with(wide.type, element)])

    def verify_(self) -> None:
        _verify(self.result.type, self.wide.type)
        if stored_element(_parts(self.result.type)[0]) is None:
            raise VerifyException(f"what f32 is rounded to must be {ELEMENT_NAMES}, not {self.result.type}")
        if self.away is not None and row_element(_parts(self.result.type)[0]) is not BFLOAT16:
            raise VerifyException(f"away must go with bf16, not with {self.result.type}")


NARROW = Dialect("narrow", [WidenOp, RoundOp, *PACKED_OPERATIONS], [])
