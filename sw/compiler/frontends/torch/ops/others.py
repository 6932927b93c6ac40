"""Operations on single elements or rows that the device has nothing for: they are known so that messages name them."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.ops.operation import Line, Operation, PytorchsOwn

_aten = torch.ops.aten


@dataclass(frozen=True)
class OtherRows(PytorchsOwn):
    """Reads or writes of elements that are no gather of whole rows and no reduction onto fresh zeros."""

    targets = (
        _aten.index_copy.default,
        _aten.index_copy_.default,
        _aten.index_reduce.default,
        _aten.index_reduce_.default,
        _aten.scatter.src,
        _aten.scatter_.src,
        _aten.take.default,
        _aten.take_along_dim.default,
    )
    line = Line(
        "`index_copy`, `index_reduce`, `scatter`, `take`, `take_along_dim`",
        "nothing",
        "`explain()` says what to use instead",
    )

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        if not isinstance(example_of(node), Tensor):
            return None
        return (
            "it reads or writes elements one by one; gathers of rows are index_select or table[indices] along dim 0, "
            "and sums of rows index_add or scatter_add onto fresh zeros"
        )
