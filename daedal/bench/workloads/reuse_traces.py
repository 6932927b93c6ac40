"""Streams with the locality of recommendation models in production, from histograms of how often rows are used."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daedal.base.files import read_text
from daedal.errors import DaedalError

FOLDER = "bags"
"""Where the histograms are in a data folder."""

_NUMBERS = re.compile(r"Avg # of (indices|unique cols): ([0-9]{1,15})\b")
_NAME = re.compile(r"_t([0-9]{1,9})_bs([0-9]{1,9})")
_BIN = re.compile(r"\(([0-9]{1,15})(?:, ([0-9]{1,15})\]|\+): ([0-9]{0,15}\.?[0-9]{1,30})")
_RATIO = "Ratio of index distribution"


class DataError(DaedalError):
    """A file of the data folder is not what it should be."""


@dataclass(frozen=True)
class Histogram:
    """A batch of lookups: how long its bags are and how often rows are used.

    Attributes
    ----------
    bag_length
        Lookups of a bag in the mean.
    uses
        For each bin, how often its rows are used in the mean.
    accesses
        For each bin, its share of all lookups.
    """

    bag_length: float
    uses: tuple[float, ...]
    accesses: tuple[float, ...]

    def chances(self, rows: int) -> NDArray[np.float64]:
        """The chance of each of ``rows`` rows, seldom used ones first, in a table whose bins are as full as here."""
        accesses, uses = np.array(self.accesses), np.array(self.uses)
        share = accesses / uses
        counts = np.maximum(1, np.round(share / share.sum() * rows)).astype(int)
        counts[np.argmax(counts)] += rows - counts.sum()
        return np.repeat(accesses / counts, counts)


def read_histogram(path: Path) -> Histogram:
    """The first batch of a file of such histograms; DataError if the file is no such file."""
    block = read_text(path).split("\n\n")[0]
    totals = {name: int(value) for name, value in _NUMBERS.findall(block)}
    name, (_, _, ratios) = _NAME.search(block), block.partition(_RATIO)
    bins = [(int(low), int(high or 2 * int(low)), float(share)) for low, high, share in _BIN.findall(ratios)]
    if name is None or not int(name[1]) * int(name[2]) * totals.get("indices", 0) or not any(each[2] for each in bins):
        raise DataError(f"{path} must begin with a histogram of uses: take it out of the data folder or replace it")
    bins = [entry for entry in bins if entry[2]]
    return Histogram(
        bag_length=totals["indices"] / (int(name[1]) * int(name[2])),
        uses=tuple((low + 1 + high) / 2 for low, high, _ in bins),
        accesses=tuple(share for *_, share in bins),
    )
