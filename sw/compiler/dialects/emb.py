"""Dialect ``emb``: one operation for each embedding operation, on tensors."""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    I64,
    Float32Type,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i64,
)
from xdsl.ir import Dialect, Operation, SSAValue
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

MODES = ("sum", "mean")
"""How the rows of a bag are pooled."""


def _verify_table(table: SSAValue) -> TensorType:
    kind = table.type
    if (
        not isinstance(kind, TensorType)
        or not isinstance(kind.element_type, Float32Type)
        or kind.get_num_dims() != 2
        or kind.get_shape()[1] < 1
    ):
        raise VerifyException(f"table must be rows of f32 of a fixed width of at least 1, not {kind}")
    return kind


def _verify_integers(name: str, value: SSAValue, ranks: Sequence[int]) -> TensorType:
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


def _rows_like(table: SSAValue) -> TensorType:
    kind = table.type
    assert isinstance(kind, TensorType)
    return TensorType(f32, [DYNAMIC_INDEX, kind.get_shape()[1]])


@irdl_op_definition
class BagOp(IRDLOperation):
    """Pools the rows of each bag: row b of the result is the sum or mean of ``table[indices[p]]``.

    p runs over ``offsets[b] … offsets[b + 1] - 1`` (``offsets`` has one entry more than there are bags), or,
    with 2-D ``indices`` and no offsets, over row b of the indices. ``weights`` scale the rows of a sum: with
    ``fused`` by a fused multiply-add, else by a product and a sum. Rows whose index is ``padding`` do not
    count.
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

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$mode $table `[` $indices `]` (`offsets` $offsets^)? (`weights` $weights^)? (`padding` $padding^)? "
        "(`fused` $fused^)? attr-dict `:` type($table) `,` type($indices) (`offsets` type($offsets)^)? "
        "(`weights` type($weights)^)? `->` type($result)"
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
    ) -> None:
        super().__init__(
            operands=[table, indices, offsets, weights],
            properties={
                "mode": StringAttr(mode),
                "padding": None if padding is None else IntegerAttr(padding, i64),
                "fused": UnitAttr() if fused else None,
            },
            result_types=[_rows_like(table)],
        )

    def verify_(self) -> None:
        if self.mode.data not in MODES:
            raise VerifyException(f"mode must be one of {', '.join(MODES)}, not {self.mode.data!r}")
        _verify_table(self.table)
        _verify_integers("indices", self.indices, [2] if self.offsets is None else [1])
        if self.offsets is not None:
            _verify_integers("offsets", self.offsets, [1])
        if self.weights is not None and self.mode.data != "sum":
            raise VerifyException(f"weights must go with mode sum, not {self.mode.data!r}")
        if self.fused is not None and self.weights is None:
            raise VerifyException("fused must go with weights")
        if self.result.type != _rows_like(self.table):
            raise VerifyException(f"result must be {_rows_like(self.table)}, not {self.result.type}")


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
        _verify_integers("indices", self.indices, [1])
        if self.result.type != _rows_like(self.table):
            raise VerifyException(f"result must be {_rows_like(self.table)}, not {self.result.type}")


EMB = Dialect("emb", [BagOp, LookupOp], [])
