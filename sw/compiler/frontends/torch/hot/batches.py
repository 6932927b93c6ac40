"""Batches of samples that read hot rows only, and batches of the others."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import Sampler


class HotBatches(Sampler[list[int]]):
    """Numbers of samples, a list for each batch: what ``DataLoader(batch_sampler=…)`` takes.

    Hot batches come first, each kind in the data's order; with ``shuffle`` samples are drawn within their kind and
    batches of both kinds in any order, anew in each pass.

    Attributes
    ----------
    is_hot
        Of each sample, bool.
    """

    def __init__(
        self, is_hot: Tensor, batch_size: int, *, shuffle: bool = False, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.is_hot = is_hot
        self._size, self._shuffle, self._generator = batch_size, shuffle, generator

    @property
    def hot_batches(self) -> int:
        """Batches that read hot rows only."""
        return _batches(int(self.is_hot.sum()), self._size)

    @property
    def hot_share(self) -> float:
        """Share of the batches that read hot rows only; 0 of none."""
        return self.hot_batches / len(self) if len(self) else 0.0

    def __len__(self) -> int:
        return self.hot_batches + _batches(int((~self.is_hot).sum()), self._size)

    def __iter__(self) -> Iterator[list[int]]:
        found: list[list[int]] = []
        for kind in (self.is_hot, ~self.is_hot):
            numbers = kind.nonzero().reshape(-1)
            if self._shuffle:
                numbers = numbers[torch.randperm(len(numbers), generator=self._generator)]
            found += [part.tolist() for part in numbers.split(self._size) if len(part)]
        if self._shuffle:
            return iter([found[place] for place in torch.randperm(len(found), generator=self._generator).tolist()])
        return iter(found)


def _batches(samples: int, size: int) -> int:
    return -(-samples // size)
