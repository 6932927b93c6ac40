"""Writes the loops that pool the rows of one bag of which each is integers with a scale and a bias."""

from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from daedal.compiler.dialects.narrow_packed import ElementOp, HeadOp
from daedal.compiler.transforms.builders.pooling import Pooling


@dataclass(frozen=True)
class PackedPooling(Pooling):
    """Sums as PyTorch's and FBGEMM's kernels have them: ``fma(q, scale, s + bias)``, both weighted before.

    Attributes
    ----------
    bits
        Of an integer.
    kept
        How many elements of the local row are stored: it is of all that the words of a row hold.
    """

    bits: int = 8
    kept: SSAValue | None = None

    @property
    def columns(self) -> SSAValue:
        """How many elements of the local row are stored."""
        assert self.kept is not None
        return self.kept

    def accumulate(self, p: SSAValue, table: SSAValue, index: SSAValue, counts: list[SSAValue]) -> None:
        """Add entry ``p``, row ``index`` of the table, to the local row."""
        emit = self.emit
        weight = None if self.weights is None else emit.load(self.weights, [p], "weight")
        head = HeadOp(table, index)
        emit.append(head)
        scale: SSAValue = head.scale
        bias: SSAValue = head.bias
        scale.name_hint, bias.name_hint = "scale", "bias"
        if weight is not None:
            scale = emit.insert(arith.MulfOp(scale, weight), "scale_weighted")
            bias = emit.insert(arith.MulfOp(bias, weight), "bias_weighted")

        def pool(d: SSAValue) -> None:
            q = emit.insert(ElementOp(table, index, d, self.bits), "q")
            s = emit.load(self.pooled, [d], "s")
            biased = emit.insert(arith.AddfOp(s, bias), "biased")
            emit.store(emit.insert(math.FmaOp(q, scale, biased), "added"), self.pooled, [d])

        self.along_row(pool)
