"""Operations of dialect ``narrow`` on rows of unsigned integers with a head: scale and bias, f32, in front of them.

In memory such a row is so many words, of the type of f32: two of the head, then the integers, the lowest bits of a word
first. So a table of them is a memref of f32.
"""

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, MemRefType, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import LANE
from daedal.hw.isa.elements import HEAD_WORDS, QUANTISED

PACKED_BITS = tuple(element.bits for element in QUANTISED)
"""Bits that an integer of such a row can have."""


def packed_elements(words: int, bits: int) -> int:
    """Integers of a row of so many words."""
    return (words - HEAD_WORDS) * (LANE.bitwidth // bits)


def packed_words(elements: int, bits: int) -> int:
    """Words of a row of so many integers."""
    return HEAD_WORDS + -(-elements * bits // LANE.bitwidth)


def verify_packed(words: int, bits: int) -> None:
    """Raise VerifyException unless there is a row of so many words with integers of so many bits."""
    if bits not in PACKED_BITS:
        raise VerifyException(f"bits must be one of {', '.join(map(str, PACKED_BITS))}, not {bits}")
    if words <= HEAD_WORDS:
        raise VerifyException(f"a row with a head must have more than {HEAD_WORDS} words, not {words}")


def _verify_table(table: SSAValue) -> int:
    kind = table.type
    if not isinstance(kind, MemRefType) or kind.element_type != LANE or kind.get_num_dims() != 2:
        raise VerifyException(f"table must be rows of {LANE}, not {kind}")
    return kind.get_shape()[1]


@irdl_op_definition
class HeadOp(IRDLOperation):
    """Scale and bias of row ``index`` of a table."""

    name = "narrow.head"
    table = operand_def(MemRefType)
    index = operand_def(IndexType())
    scale = result_def(LANE)
    bias = result_def(LANE)

    traits = traits_def(Pure())
    assembly_format = "$table `[` $index `]` attr-dict `:` type($table)"

    def __init__(self, table: SSAValue, index: SSAValue) -> None:
        super().__init__(operands=[table, index], result_types=[LANE, LANE])

    def verify_(self) -> None:
        verify_packed(_verify_table(self.table), PACKED_BITS[0])


@irdl_op_definition
class ElementOp(IRDLOperation):
    """The integer of ``bits`` bits in ``column`` of row ``index`` of a table, as an f32."""

    name = "narrow.element"
    table = operand_def(MemRefType)
    index = operand_def(IndexType())
    column = operand_def(IndexType())
    bits = prop_def(IntegerAttr[I64])
    result = result_def(LANE)

    traits = traits_def(Pure())
    assembly_format = "$table `[` $index `,` $column `]` `bits` $bits attr-dict `:` type($table)"

    def __init__(self, table: SSAValue, index: SSAValue, column: SSAValue, bits: int) -> None:
        properties = {"bits": IntegerAttr(bits, i64)}
        super().__init__(operands=[table, index, column], properties=properties, result_types=[LANE])

    def verify_(self) -> None:
        verify_packed(_verify_table(self.table), self.bits.value.data)


@irdl_op_definition
class UnpackOp(IRDLOperation):
    """Scale, bias and integers of ``bits`` bits, as f32, of a row of words."""

    name = "narrow.unpack"
    words = operand_def(VectorType)
    bits = prop_def(IntegerAttr[I64])
    scale = result_def(LANE)
    bias = result_def(LANE)
    row = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = "$words `bits` $bits attr-dict `:` type($words) `->` type($row)"

    def __init__(self, words: SSAValue | Operation, bits: int) -> None:
        words = SSAValue.get(words)
        super().__init__(
            operands=[words], properties={"bits": IntegerAttr(bits, i64)}, result_types=[LANE, LANE, _row(words, bits)]
        )

    def verify_(self) -> None:
        bits = self.bits.value.data
        assert isinstance(self.words.type, VectorType)
        verify_packed(self.words.type.get_shape()[0], bits)
        if self.words.type.element_type != LANE or self.row.type != _row(self.words, bits):
            raise VerifyException(f"{self.words.type} must be of {LANE}, and the row {_row(self.words, bits)}")


def _row(words: SSAValue, bits: int) -> Attribute:
    assert isinstance(words.type, VectorType)
    return VectorType(LANE, [packed_elements(words.type.get_shape()[0], bits)])


@irdl_op_definition
class AffineOp(IRDLOperation):
    """``fma(q, scale, addend + bias)`` of a row of words, its scale and bias times a weight before, if there is one.

    It is one instruction of machines with pre-adders.
    """

    name = "narrow.affine"
    words = operand_def(VectorType)
    addend = operand_def(VectorType)
    weight = opt_operand_def(LANE)
    bits = prop_def(IntegerAttr[I64])
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$words `bits` $bits `plus` $addend (`weight` $weight^)? attr-dict"
        " `:` type($words) `,` type($addend) `->` type($result)"
    )

    def __init__(self, words: SSAValue, addend: SSAValue, weight: SSAValue | None, bits: int) -> None:
        super().__init__(
            operands=[words, addend, [] if weight is None else [weight]],
            properties={"bits": IntegerAttr(bits, i64)},
            result_types=[_row(words, bits)],
        )

    def verify_(self) -> None:
        bits = self.bits.value.data
        assert isinstance(self.words.type, VectorType)
        verify_packed(self.words.type.get_shape()[0], bits)
        if self.words.type.element_type != LANE or not self.addend.type == self.result.type == _row(self.words, bits):
            raise VerifyException(f"{self.words.type} must be of {LANE}, and rows {_row(self.words, bits)}")


PACKED_OPERATIONS = (HeadOp, ElementOp, UnpackOp, AffineOp)
