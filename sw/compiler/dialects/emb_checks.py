"""What verifiers of the dialect ``emb`` ask of operands."""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import LANE

LIST_NUMBERS = 3
"""Numbers in an entry of a list of tables: rows, address, address of the result."""


def verify_integers(name: str, value: SSAValue, ranks: Sequence[int]) -> TensorType:
    """The type of a tensor of integers of one of these ranks."""
    kind = value.type
    if (
        not isinstance(kind, TensorType)
        or not isinstance(kind.element_type, IntegerType)
        or kind.element_type.width.data not in (32, 64)
        or kind.get_num_dims() not in ranks
    ):
        shown = " or ".join(map(str, ranks))
        raise VerifyException(f"{name} must be a tensor of i32 or i64 with rank {shown}, not {kind}")
    return kind


def verify_factors(name: str, value: SSAValue) -> None:
    """Refuse all but a flat tensor of f32."""
    kind = value.type
    if not isinstance(kind, TensorType) or kind.element_type != LANE or kind.get_num_dims() != 1:
        raise VerifyException(f"{name} must be a tensor of f32 with rank 1, not {kind}")


def verify_entries(source: SSAValue, first: int, count: int) -> None:
    """Refuse a list that has not these entries."""
    shape = verify_integers("list", source, [2]).get_shape()
    if shape[0] != LIST_NUMBERS or not 0 <= first < first + count <= shape[1]:
        raise VerifyException(
            f"entries {first} … {first + count - 1} must be in the list, {LIST_NUMBERS} numbers for each, not {shape}"
        )


def verify_pitches(width: int, pitch: int, out_pitch: int) -> None:
    """Refuse rows that are longer than from one to the next."""
    if not 1 <= width <= min(pitch, out_pitch):
        raise VerifyException(f"width must be from 1 to the pitches, {pitch} and {out_pitch}, not {width}")
