"""Whether what a batch is given is of the kinds that another one was: then it needs no closer look."""

from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

from daedal.runtime.batch.members import Member

if TYPE_CHECKING:
    from torch import Tensor

_OF_INTEGERS = attrgetter("dtype", "is_cpu", "ndim")
_OF_OFFSETS = attrgetter("dtype", "is_cpu", "shape")


class KnownInputs:
    """What has to be as before: which tensors the tables are, and the kinds of the other inputs.

    One list of each kind of thing is compared, as that is quick. What is not looked at, such as the order of offsets,
    does not differ from one kind to another.
    """

    def __init__(self, members: Sequence[Sequence[Any]]) -> None:
        self._tables, indices, offsets, weights = zip(*members, strict=True)
        self._indices = [(each.dtype, True, 1) for each in indices]
        self._offsets = [each.dtype for each in offsets]
        self.weighted = [n for n, each in enumerate(weights) if each is not None]

    def have_shapes(self, sources: Sequence[Sequence[Any]], count: int) -> bool:
        """Whether sources of which it is known that they are of the same kinds are of the same tables, and have so many
        offsets and a weight for each index.
        """
        import torch

        tables, indices, offsets, weights = zip(*sources, strict=True)
        return (
            all(map(is_, tables, self._tables))
            and set(map(torch.Tensor.numel, offsets)) == {count}
            and all(weights[n].numel() == indices[n].numel() for n in self.weighted)
        )

    def are_same(self, sources: Sequence[Sequence[Any]], shape: Sequence[int]) -> bool:
        """Whether these sources, with offsets of this shape, are of the same kind."""
        from torch import Tensor

        tables, indices, offsets, weights = zip(*sources, strict=True)
        return (
            all(map(is_, tables, self._tables))
            and all(map(isinstance, indices, repeat(Tensor)))
            and all(map(isinstance, offsets, repeat(Tensor)))
            and list(map(_OF_INTEGERS, indices)) == self._indices
            and list(map(_OF_OFFSETS, offsets)) == [(dtype, True, shape) for dtype in self._offsets]
            and [n for n, each in enumerate(weights) if each is not None] == self.weighted
            and all(_are_weights(weights[n], indices[n]) for n in self.weighted)
        )


def _are_weights(weights: object, indices: "Tensor") -> bool:
    import torch

    return (
        isinstance(weights, torch.Tensor)
        and weights.dtype is torch.float32
        and weights.shape == indices.shape
        and weights.is_cpu
        and weights.is_contiguous()
        and weights.stride(0) == 1
        and not weights.is_neg()
    )


def can_be_fast(members: Sequence[Member]) -> bool:
    """Whether batches like this one can be made ready: 1-D indices and offsets, of one type and number each."""
    sources = [member.sources for member in members]
    return (
        all(member.call.is_pooling and member.request.form is None for member in members)
        and len({(indices.dtype, offsets is not None and offsets.dtype) for _, indices, offsets, _ in sources}) == 1
        and all(offsets is not None for _, _, offsets, _ in sources)
        and len({(member.request.rows, member.call.include_last_offset) for member in members}) == 1
        and all(weights is None or _are_weights(weights, indices) for _, indices, _, weights in sources)
    )
