"""How the indices of a workload are drawn."""

import numpy as np
from numpy.typing import NDArray

from daedal.hw.config.core import Config

Indices = NDArray[np.int64]

ZIPF = 1.05
"""Row of rank r is drawn with a probability that falls with ``(r + 1) ** -ZIPF``."""

DISTRIBUTIONS = {
    "uniform": "every row is as likely as any other",
    "zipf": f"rank r falls with (r + 1)^-{ZIPF}; hot rows anywhere in the table",
    "fixed": "one row always",
    "stride": "one row of every bank period: a row for each bank is skipped between two",
    "sorted": "as zipf, but the hot rows are next to each other",
}
"""Name -> what it is."""


def draw(distribution: str, count: int, rows: int, rng: np.random.Generator, config: Config) -> Indices:
    """``count`` indices into a table of ``rows`` rows; ValueError names the distributions there are."""
    if distribution == "uniform":
        return rng.integers(0, rows, count, dtype=np.int64)
    if distribution == "fixed":
        return np.full(count, rng.integers(rows), np.int64)
    if distribution == "stride":
        return strided(count, rows, config.banks)
    if distribution not in ("zipf", "sorted"):
        raise ValueError(f"distribution must be one of {', '.join(DISTRIBUTIONS)}, not {distribution!r}")
    chances = np.arange(1, rows + 1, dtype=np.float64) ** -ZIPF
    return by_chance(chances, count, rng, shuffled=distribution == "zipf")


def strided(count: int, rows: int, step: int) -> Indices:
    """Every ``step``-th row, beginning again one row further at the table's end."""
    step = min(step, rows)
    whole = -(-rows // step)
    number = np.arange(count, dtype=np.int64) % (whole * step)
    return (number % whole * step + number // whole) % rows


def by_chance(chances: NDArray[np.float64], count: int, rng: np.random.Generator, *, shuffled: bool) -> Indices:
    """Ranks drawn with these chances (of any sum); ``shuffled``, each rank is some other row."""
    sums = np.cumsum(chances)
    places = np.searchsorted(sums, rng.random(count) * sums[-1], side="right")
    ranks: Indices = np.minimum(places, len(chances) - 1).astype(np.int64)
    rows: Indices = rng.permutation(len(chances))[ranks] if shuffled else ranks
    return rows
