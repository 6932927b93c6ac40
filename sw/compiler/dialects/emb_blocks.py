"""The operation of ``emb`` that adds up sums of blocks of rows."""

from xdsl.dialects.builtin import I64, IndexType, IntegerAttr, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
)
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import LANE
from daedal.compiler.dialects.emb_checks import (
    verify_entries,
    verify_factors,
    verify_integers,
    verify_pitches,
)


@irdl_op_definition
class BlockListOp(IRDLOperation):
    """Adds up rows of ``count`` tables, those from entry ``first`` of a list on, in blocks, and then their sums.

    ``list``, ``width``, ``pitch`` and ``out_pitch`` are as in ``emb.bag_list``. Blocks are numbered through,
    and those of entry t are ``t * (blocks + 1)`` … ``+ blocks - 1``. Block k adds up the entries p of
    ``ends[k] … ends[k + 1] - 1`` of ``indices`` and ``weights``, one after the other, and then its sum to the total.
    Before that, if ``places[k]`` is not 0, the total of the blocks before is stored in row ``places[k]`` of the result,
    and another one begins. Weights scale rows as in ``emb.bag``. All is f32.
    """

    name = "emb.block_list"

    list = operand_def(TensorType)
    indices = operand_def(TensorType)
    ends = operand_def(TensorType)
    places = operand_def(TensorType)
    blocks = operand_def(IndexType())
    weights = opt_operand_def(TensorType)
    first = prop_def(IntegerAttr[I64])
    count = prop_def(IntegerAttr[I64])
    width = prop_def(IntegerAttr[I64])
    pitch = prop_def(IntegerAttr[I64])
    out_pitch = prop_def(IntegerAttr[I64])
    fused = opt_prop_def(UnitAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$list `[` $first `for` $count `]` `width` $width `pitch` $pitch `to` $out_pitch $indices `ends` $ends "
        "`places` $places `blocks` $blocks (`weights` $weights^)? (`fused` $fused^)? attr-dict `:` "
        "type($list) `,` type($indices) `ends` type($ends) `places` type($places) (`weights` type($weights)^)?"
    )

    def __init__(
        self,
        entries: tuple[SSAValue, int, int],
        indices: SSAValue,
        ends: SSAValue,
        places: SSAValue,
        blocks: SSAValue,
        weights: SSAValue | None,
        *,
        width: int,
        pitch: int,
        out_pitch: int,
        fused: bool = False,
    ) -> None:
        source, first, count = entries
        numbers = {"first": first, "count": count, "width": width, "pitch": pitch, "out_pitch": out_pitch}
        super().__init__(
            operands=[source, indices, ends, places, blocks, weights],
            properties={
                **{name: IntegerAttr(number, i64) for name, number in numbers.items()},
                "fused": UnitAttr() if fused else None,
            },
        )

    @property
    def row_element(self) -> Attribute:
        """What rows of tables and results are made of."""
        return LANE

    def verify_(self) -> None:
        verify_integers("indices", self.indices, [1])
        verify_integers("ends", self.ends, [1])
        verify_integers("places", self.places, [1])
        if self.weights is not None:
            verify_factors("weights", self.weights)
        if self.fused is not None and self.weights is None:
            raise VerifyException("fused must go with weights")
        verify_entries(self.list, self.first.value.data, self.count.value.data)
        verify_pitches(self.width.value.data, self.pitch.value.data, self.out_pitch.value.data)
