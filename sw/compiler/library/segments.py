"""Which samples belong to which row, in which order: what the kernels of this package are given beside rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daedal.errors import UnsupportedOperation


@dataclass(frozen=True)
class Segments:
    """Samples by the row that they are of.

    Attributes
    ----------
    rows
        The rows that have samples, ascending, none twice: int64[U].
    ends
        Where the samples of each begin and end: int64[U + 1].
    order
        The samples, those of the first row first: int64[P]. What belongs to samples, as the bag of each or its weight,
        is given to kernels in this order.
    """

    rows: NDArray[np.int64]
    ends: NDArray[np.int64]
    order: NDArray[np.int64]

    def begun(self, sources: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """What belongs to samples, in ``order``: that of the first sample of each row; where those of its others begin
        and end; and these.
        """
        firsts = self.ends[:-1]
        return sources[firsts], self.ends - np.arange(len(self.ends)), np.delete(sources, firsts)


def segments(indices: NDArray[np.integer], order: NDArray[np.integer] | None = None) -> Segments:
    """The samples of each row in ``indices`` (integers[P], the row of each sample).

    ``order`` sorts ``indices``: the samples of a row are added up as they stand there. Without it they stay in their
    own order. ``coalesce()`` and the dense gradient of EmbeddingBag add in the order of ``indices.sort()[1]``, which
    is another one, and which only PyTorch can tell. Raises UnsupportedOperation if ``order`` does not sort them.
    """
    flat = indices.reshape(-1)
    taken = np.argsort(flat, kind="stable") if order is None else order.reshape(-1)
    if taken.shape != flat.shape:
        raise UnsupportedOperation(f"order must have {flat.size} elements, one for each index, not {taken.size}")
    found = flat[taken]
    begins = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]])) if flat.size else np.zeros(0, np.int64)
    rows = found[begins].astype(np.int64)
    if (rows[1:] <= rows[:-1]).any():
        raise UnsupportedOperation("order must sort the indices, and does not: take what indices.sort() gives")
    ends = np.append(begins, flat.size).astype(np.int64)
    return Segments(rows, ends, taken.astype(np.int64))
