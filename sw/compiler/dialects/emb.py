"""Dialect ``emb``: one operation for each embedding operation, on tensors."""

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I64,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import ELEMENT_NAMES, FLOAT8_TYPES, LANE, stored_element
from daedal.compiler.dialects.emb_blocks import BlockListOp
from daedal.compiler.dialects.emb_checks import (
    verify_entries,
    verify_integers,
    verify_pitches,
)
from daedal.compiler.dialects.emb_score import ScoreOp
from daedal.compiler.dialects.narrow_packed import packed_elements, packed_words, verify_packed
from daedal.hw.isa.elements import BFLOAT16

SUMS = ("sum", "mean")
MODES = (*SUMS, "max", "min", "prod")
"""How the rows of a bag are pooled; those of ``SUMS`` add them up."""

ROUNDS_SUMS = ("sums", "products and sums")
ROUNDS_PRODUCTS = ("products", "products and sums")
"""What ``rounds`` can say, by what is rounded then."""


def _verify_table(table: SSAValue, *, wide: bool = False) -> TensorType:
    kind = table.type
    if (
        not isinstance(kind, TensorType)
        or (stored_element(kind.element_type) is None and not (wide and kind.element_type in FLOAT8_TYPES))
        or kind.get_num_dims() != 2
        or kind.get_shape()[1] < 1
    ):
        raise VerifyException(f"table must be rows of {ELEMENT_NAMES} of a fixed width of at least 1, not {kind}")
    return kind


def _verify_away(away: UnitAttr | None, element: Attribute) -> None:
    if away is not None and stored_element(element) is not BFLOAT16:
        raise VerifyException(f"away must go with rows of bf16, not of {element}")


def _text(value: StringAttr | None) -> str:
    return "" if value is None else value.data


def _verify_rounds(op: "BagOp | BagListOp") -> None:
    what, kinds = op.rounds_what, [*ROUNDS_SUMS, "products"]
    if op.rounds is None:
        return
    if what not in kinds:
        raise VerifyException(f"rounds must be one of {', '.join(kinds)}, not {what!r}")
    if op.mode.data not in SUMS or op.row_element == LANE or op.fused is not None or op.away is not None:
        raise VerifyException("rounds must go with a sum or mean of f16 or bf16, without fused and away")
    if what in ROUNDS_PRODUCTS and op.weights is None:
        raise VerifyException(f"rounds {what} must go with weights")


def _rows_like(table: SSAValue, columns: IntegerAttr | None = None, element: Attribute | None = None) -> TensorType:
    kind = table.type
    assert isinstance(kind, TensorType)
    width = kind.get_shape()[1] if columns is None else columns.value.data
    return TensorType(kind.element_type if element is None else element, [DYNAMIC_INDEX, width])


@irdl_op_definition
class BagOp(IRDLOperation):
    """Pools the rows of each bag: row b of the result is the sum, mean, maximum, minimum or product of
    ``table[indices[p]]``.

    p runs over ``offsets[b] … offsets[b + 1] - 1`` (``offsets`` has one entry more than there are bags), or,
    with 2-D ``indices`` and no offsets, over row b of the indices. ``weights`` scale the rows of a sum or mean: with
    ``fused`` by a fused multiply-add, else by a product and a sum. Rows whose index is ``padding`` do not
    count. A maximum is the first element, replaced by each later one that is greater, a minimum by each that is less. A
    product starts from 1, with one factor after the other. A bag without rows gives +0.0, in a product 1. Results are
    of f32 and then rounded to the table's elements; with ``away``, for sums of bf16, ties away from zero. The quotient
    of a mean is rounded as well, ties to even. With ``rounds`` each product is rounded ("products"), the
    sum behind each addition ("sums"), or both ("products and sums"), ties to even. With ``wide`` the result of a sum is
    of f32, and nothing is rounded; the table may be of f8E4M3 or f8E5M2 then, of which all are finite.
    With ``block`` the rows of 2-D indices are added up in blocks of so many, and their sums then.
    With ``bits`` a row of the table is words with a head (dialect ``narrow``), of whose integers the first ``columns``
    count. Of each the bias is added first, and then, fused, the integer times the scale; both times the weight before.
    """

    name = "emb.bag"

    table = operand_def(TensorType)
    indices = operand_def(TensorType)
    offsets = opt_operand_def(TensorType)
    weights = opt_operand_def(TensorType)
    result = result_def(TensorType)
    mode = prop_def(StringAttr)
    padding = opt_prop_def(IntegerAttr[I64])
    fused = opt_prop_def(UnitAttr)
    away = opt_prop_def(UnitAttr)
    wide = opt_prop_def(UnitAttr)
    rounds = opt_prop_def(StringAttr)
    block = opt_prop_def(IntegerAttr[I64])
    bits = opt_prop_def(IntegerAttr[I64])
    columns = opt_prop_def(IntegerAttr[I64])

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$mode $table `[` $indices `]` (`offsets` $offsets^)? (`weights` $weights^)? (`padding` $padding^)? "
        "(`fused` $fused^)? (`away` $away^)? (`wide` $wide^)? (`rounds` $rounds^)? (`block` $block^)? "
        "(`bits` $bits^)? (`columns` $columns^)? attr-dict `:` type($table) `,` type($indices) "
        "(`offsets` type($offsets)^)? (`weights` type($weights)^)? `->` type($result)"
    )

    def __init__(
        self,
        mode: str,
        table: SSAValue,
        indices: SSAValue,
        offsets: SSAValue | None = None,
        weights: SSAValue | None = None,
        *,
        padding: int | None = None,
        fused: bool = False,
        away: bool = False,
        wide: bool = False,
        rounds: str = "",
        block: int | None = None,
        bits: int | None = None,
        columns: int | None = None,
    ) -> None:
        of = None if columns is None else IntegerAttr(columns, i64)
        super().__init__(
            operands=[table, indices, offsets, weights],
            properties={
                "mode": StringAttr(mode),
                "padding": None if padding is None else IntegerAttr(padding, i64),
                "fused": UnitAttr() if fused else None,
                "away": UnitAttr() if away else None,
                "wide": UnitAttr() if wide else None,
                "rounds": StringAttr(rounds) if rounds else None,
                "block": None if block is None else IntegerAttr(block, i64),
                "bits": None if bits is None else IntegerAttr(bits, i64),
                "columns": of,
            },
            result_types=[_rows_like(table, of, LANE if wide else None)],
        )

    @property
    def row_element(self) -> Attribute:
        """What rows of the table are made of, and of the result if it is not wide."""
        return _verify_table(self.table, wide=True).get_element_type()

    @property
    def rounds_what(self) -> str:
        """What is rounded besides results; empty if nothing is."""
        return _text(self.rounds)

    def verify_(self) -> None:
        if self.mode.data not in MODES:
            raise VerifyException(f"mode must be one of {', '.join(MODES)}, not {self.mode.data!r}")
        _verify_away(self.away, _verify_table(self.table, wide=self.wide is not None).element_type)
        _verify_rounds(self)
        verify_integers("indices", self.indices, [2] if self.offsets is None else [1])
        if self.offsets is not None:
            verify_integers("offsets", self.offsets, [1])
        if self.weights is not None and self.mode.data not in SUMS:
            raise VerifyException(f"weights must go with mode sum or mean, not {self.mode.data!r}")
        if self.fused is not None and self.weights is None:
            raise VerifyException("fused must go with weights")
        others = (self.offsets, self.padding, self.fused)
        if self.block is not None and (self.mode.data not in SUMS or any(other is not None for other in others)):
            raise VerifyException("block must go with a sum or mean of 2-D indices, without fused and padding")
        if self.block is not None and self.block.value.data < 1:
            raise VerifyException(f"block must be at least 1, not {self.block.value.data}")
        self._verify_packed()
        if self.wide is not None and (self.mode.data != "sum" or self.away is not None or self.rounds is not None):
            raise VerifyException("wide must go with mode sum, without away and rounds")
        expected = _rows_like(self.table, self.columns, None if self.wide is None else LANE)
        if self.result.type != expected:
            raise VerifyException(f"result must be {expected}, not {self.result.type}")

    def _verify_packed(self) -> None:
        if (self.bits is None) != (self.columns is None):
            raise VerifyException("bits must go with columns")
        if self.bits is None or self.columns is None:
            return
        kind, columns = self.table.type, self.columns.value.data
        assert isinstance(kind, TensorType)
        words, bits = kind.get_shape()[1], self.bits.value.data
        verify_packed(words, bits)
        if kind.element_type != LANE or not 1 <= columns <= packed_elements(words, bits):
            raise VerifyException(f"columns must be from 1 to {packed_elements(words, bits)} of f32, not {columns}")
        if self.mode.data != "sum" or self.block is not None or self.fused is not None:
            raise VerifyException("bits must go with mode sum, without block and fused")


@irdl_op_definition
class LookupOp(IRDLOperation):
    """Row p of the result is ``table[indices[p]]``."""

    name = "emb.lookup"

    table = operand_def(TensorType)
    indices = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$table `[` $indices `]` attr-dict `:` type($table) `,` type($indices) `->` type($result)"

    def __init__(self, table: SSAValue | Operation, indices: SSAValue | Operation) -> None:
        table = SSAValue.get(table)
        super().__init__(operands=[table, indices], result_types=[_rows_like(table)])

    def verify_(self) -> None:
        _verify_table(self.table)
        verify_integers("indices", self.indices, [1])
        if self.result.type != _rows_like(self.table):
            raise VerifyException(f"result must be {_rows_like(self.table)}, not {self.result.type}")


@irdl_op_definition
class BagListOp(IRDLOperation):
    """Pools bags over ``count`` tables, those from entry ``first`` of a list on, all in the same way.

    ``list`` has three numbers for entry t: the table's rows, its address, and the address of row 0 of its
    result; rows of results are numbered through, and those of entry t are ``t * (bags + 1)`` … ``+ bags - 1``.
    Row b pools the entries p of ``offsets[b] … offsets[b + 1] - 1`` of ``indices`` and ``weights``, which
    belong to all tables together. Rows of tables have ``width`` elements and are ``pitch`` elements apart, those
    of results ``out_pitch``. Both are of ``element``, which is f32 if left out. For the rest see ``emb.bag``; with
    ``bits`` rows of tables are words with a head, of ``width`` integers.
    """

    name = "emb.bag_list"

    list = operand_def(TensorType)
    indices = operand_def(TensorType)
    offsets = operand_def(TensorType)
    bags = operand_def(IndexType())
    weights = opt_operand_def(TensorType)
    mode = prop_def(StringAttr)
    first = prop_def(IntegerAttr[I64])
    count = prop_def(IntegerAttr[I64])
    width = prop_def(IntegerAttr[I64])
    element = opt_prop_def()
    pitch = prop_def(IntegerAttr[I64])
    out_pitch = prop_def(IntegerAttr[I64])
    padding = opt_prop_def(IntegerAttr[I64])
    fused = opt_prop_def(UnitAttr)
    away = opt_prop_def(UnitAttr)
    wide = opt_prop_def(UnitAttr)
    rounds = opt_prop_def(StringAttr)
    bits = opt_prop_def(IntegerAttr[I64])

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$mode $list `[` $first `for` $count `]` `width` $width (`of` $element^)? `pitch` $pitch `to` $out_pitch "
        "$indices `offsets` $offsets `bags` $bags (`weights` $weights^)? (`padding` $padding^)? (`fused` $fused^)? "
        "(`away` $away^)? (`wide` $wide^)? (`rounds` $rounds^)? (`bits` $bits^)? attr-dict `:` "
        "type($list) `,` type($indices) `offsets` type($offsets) (`weights` type($weights)^)?"
    )

    def __init__(
        self,
        mode: str,
        entries: tuple[SSAValue, int, int],
        indices: SSAValue,
        offsets: SSAValue,
        bags: SSAValue,
        weights: SSAValue | None,
        *,
        width: int,
        pitch: int,
        out_pitch: int,
        padding: int | None,
        fused: bool,
        away: bool = False,
        wide: bool = False,
        rounds: str = "",
        element: Attribute = LANE,
        bits: int | None = None,
    ) -> None:
        source, first, count = entries
        super().__init__(
            operands=[source, indices, offsets, bags, weights],
            properties={
                "mode": StringAttr(mode),
                "first": IntegerAttr(first, i64),
                "count": IntegerAttr(count, i64),
                "width": IntegerAttr(width, i64),
                "element": None if element == LANE else element,
                "pitch": IntegerAttr(pitch, i64),
                "out_pitch": IntegerAttr(out_pitch, i64),
                "padding": None if padding is None else IntegerAttr(padding, i64),
                "fused": UnitAttr() if fused else None,
                "away": UnitAttr() if away else None,
                "wide": UnitAttr() if wide else None,
                "rounds": StringAttr(rounds) if rounds else None,
                "bits": None if bits is None else IntegerAttr(bits, i64),
            },
        )

    @property
    def rounds_what(self) -> str:
        """What is rounded besides results; empty if nothing is."""
        return _text(self.rounds)

    @property
    def row_element(self) -> Attribute:
        """What rows of tables are made of, and results, if they are not wide."""
        return LANE if self.element is None else self.element

    @property
    def out_element(self) -> Attribute:
        """What results are made of."""
        return self.row_element if self.wide is None else LANE

    @property
    def row_width(self) -> int:
        """Elements of a row of a table: words, if these have a head."""
        width = self.width.value.data
        return width if self.bits is None else packed_words(width, self.bits.value.data)

    def verify_(self) -> None:
        if self.mode.data not in MODES:
            raise VerifyException(f"mode must be one of {', '.join(MODES)}, not {self.mode.data!r}")
        is_float8 = self.wide is not None and self.row_element in FLOAT8_TYPES
        if stored_element(self.row_element) is None and not is_float8:
            raise VerifyException(f"rows must be of {ELEMENT_NAMES}, not of {self.row_element}")
        if self.wide is not None and (self.mode.data != "sum" or self.away is not None or self.rounds is not None):
            raise VerifyException("wide must go with mode sum, without away and rounds")
        if self.bits is not None:
            verify_packed(self.row_width, self.bits.value.data)
            if (self.mode.data, self.row_element) != ("sum", LANE) or self.fused is not None:
                raise VerifyException("bits must go with mode sum, of f32, without fused")
        _verify_away(self.away, self.row_element)
        _verify_rounds(self)
        verify_integers("indices", self.indices, [1])
        verify_integers("offsets", self.offsets, [1])
        if self.weights is not None and self.mode.data not in SUMS:
            raise VerifyException(f"weights must go with mode sum or mean, not {self.mode.data!r}")
        if self.fused is not None and self.weights is None:
            raise VerifyException("fused must go with weights")
        verify_entries(self.list, self.first.value.data, self.count.value.data)
        pitch, out_pitch = self.pitch.value.data, self.out_pitch.value.data
        verify_pitches(self.width.value.data, pitch if self.bits is None else out_pitch, out_pitch)
        verify_pitches(self.row_width, pitch, max(pitch, out_pitch))


@irdl_op_definition
class LookupListOp(IRDLOperation):
    """Copies rows of ``count`` tables, those from entry ``first`` of a list on.

    ``list`` has three numbers for entry t, as that of ``emb.bag_list``. Its ``indices`` are those from ``ends[2 * t]``
    on that are before ``ends[2 * t + 1]``. Rows of results are numbered as the indices are, which belong to all tables
    together: row p of the result is ``table[indices[p]]``. Rows are of ``width`` elements, those of tables
    ``pitch`` elements apart, those of results ``out_pitch``. They are of ``element``, which is f32 if left out.
    """

    name = "emb.lookup_list"

    list = operand_def(TensorType)
    indices = operand_def(TensorType)
    ends = operand_def(TensorType)
    first = prop_def(IntegerAttr[I64])
    count = prop_def(IntegerAttr[I64])
    width = prop_def(IntegerAttr[I64])
    pitch = prop_def(IntegerAttr[I64])
    out_pitch = prop_def(IntegerAttr[I64])
    element = opt_prop_def()

    assembly_format = (
        "$list `[` $first `for` $count `]` `width` $width (`of` $element^)? `pitch` $pitch `to` $out_pitch $indices "
        "`ends` $ends attr-dict `:` type($list) `,` type($indices) `ends` type($ends)"
    )

    def __init__(
        self,
        entries: tuple[SSAValue, int, int],
        indices: SSAValue,
        ends: SSAValue,
        *,
        width: int,
        pitch: int,
        out_pitch: int,
        element: Attribute = LANE,
    ) -> None:
        source, first, count = entries
        numbers = {"first": first, "count": count, "width": width, "pitch": pitch, "out_pitch": out_pitch}
        super().__init__(
            operands=[source, indices, ends],
            properties={
                **{name: IntegerAttr(number, i64) for name, number in numbers.items()},
                "element": None if element == LANE else element,
            },
        )

    @property
    def row_element(self) -> Attribute:
        """What rows of tables and results are made of."""
        return LANE if self.element is None else self.element

    def verify_(self) -> None:
        if stored_element(self.row_element) is None:
            raise VerifyException(f"rows must be of {ELEMENT_NAMES}, not of {self.row_element}")
        verify_integers("indices", self.indices, [1])
        verify_integers("ends", self.ends, [1])
        verify_entries(self.list, self.first.value.data, self.count.value.data)
        verify_pitches(self.width.value.data, self.pitch.value.data, self.out_pitch.value.data)


EMB = Dialect("emb", [BagOp, BagListOp, BlockListOp, LookupListOp, LookupOp, ScoreOp], [])
