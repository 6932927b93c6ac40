"""The types of numbers, from the table of elements: what rows in memory are made of, and what lanes compute with."""

from collections.abc import Mapping

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float8E4M3Type,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

from daedal.hw.isa.elements import ELEMENTS, FLOATS8, QUANTISED, UNSIGNED8, Element
from daedal.hw.isa.elements import LANE as LANE_ELEMENT

_TYPES: Mapping[str, AnyFloat] = {
    kind.name: kind() for kind in (BFloat16Type, Float8E4M3Type, Float8E5M2Type, Float16Type, Float32Type)
}

ELEMENT_TYPES: dict[Attribute, Element] = {_TYPES[element.mlir]: element for element in ELEMENTS}
"""Type -> the element of rows that it is, of those that rows can be stored as."""

FLOAT8_TYPES: dict[Attribute, Element] = {_TYPES[element.mlir]: element for element in FLOATS8}
"""The same of numbers of 8 bits, all of them finite, which rows are only read as."""

INTEGER_TYPES: dict[Attribute, Element] = {IntegerType(UNSIGNED8.bits, Signedness.UNSIGNED): UNSIGNED8}
"""The same of integers. Of fewer bits than a byte they are words behind a head (``narrow_packed``)."""

ELEMENT_NAMES = " or ".join(element.mlir for element in ELEMENTS)
"""Those that can be stored, for messages."""

LANE = _TYPES[LANE_ELEMENT.mlir]
"""What lanes compute with: single numbers, and the elements of rows in registers."""


def type_of(element: Element) -> AnyFloat:
    """The type of a row's elements in memory."""
    return _TYPES[element.mlir]


def row_element(kind: Attribute) -> Element | None:
    """The element whose type this is; None for other integers and all else that no row is made of."""
    return ELEMENT_TYPES.get(kind) or INTEGER_TYPES.get(kind) or FLOAT8_TYPES.get(kind)


def stored_element(kind: Attribute) -> Element | None:
    """The element whose type this is, if rows can be stored as it."""
    return ELEMENT_TYPES.get(kind)


def bytes_of(kind: Attribute) -> int:
    """Bytes that a number of this type, of a row or an integer, takes in memory."""
    element = row_element(kind)
    if element is not None:
        return element.bytes
    assert isinstance(kind, IntegerType)
    bits: int = kind.width.data
    return bits // 8


def why_not_converted(element: Element) -> str:
    """Why a machine does not compute with rows of this type, and what to do."""
    if element in FLOATS8:
        return (
            f"rows of {element.name} need converters, which the machine does not have: set quantised = 1 and "
            "binary16 = 1 in its configuration"
        )
    is_integer = element in QUANTISED
    what, field = (f"{element.bits}-bit integers", "quantised") if is_integer else (element.name, element.name)
    return f"rows of {what} need a converter, which the machine does not have: set {field} = 1 in its configuration"
