"""Records of a training set, a row of each of several tables for each, or a bag of rows of one: real or drawn."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from daedal.bench.workloads.graphs import unpacked
from daedal.bench.workloads.reuse_traces import DataError
from daedal.bench.workloads.streams import ZIPF, by_chance
from daedal.hw.isa.elements import BINARY32

DIM = 16
"""Columns of each table."""

ROW_BYTES = DIM * BINARY32.bytes

CATEGORICAL = Path("categorical/adult_train.csv.gz")
BAGS = Path("bags/gowalla_user_items.txt.gz")
"""The files of a data folder."""

SIZES = (9, 16, 7, 15, 6, 6, 2, 42, 73, 16_610, 116, 92, 94, 16, 2)
"""Rows of the tables that are drawn, as many as the columns of the categorical records have values."""

NUMBERS = frozenset(range(8, 14))
"""Those of them that stand for numbers."""

MOST_ROWS = 1 << 24
"""Rows of the longest table that a file may ask for."""


@dataclass(frozen=True)
class Records:
    """Samples: ``bags[table][sample]`` has the rows that a sample looks up in a table, int64.

    ``source`` is ``data`` or ``drawn``; ``numbers`` are the tables whose rows stand for numbers.
    """

    name: str
    source: str
    rows: tuple[int, ...]
    bags: tuple[tuple[Tensor, ...], ...]
    numbers: frozenset[int] = frozenset()

    def without_numbers(self) -> "Records":
        """Only tables whose rows stand for words."""
        kept = [table for table in range(len(self.rows)) if table not in self.numbers]
        rows, bags = tuple(self.rows[table] for table in kept), tuple(self.bags[table] for table in kept)
        return Records(f"{self.name} of words", self.source, rows, bags)

    def __len__(self) -> int:
        return len(self.bags[0])

    def __getitem__(self, sample: int) -> tuple[Tensor, ...]:
        """What one sample looks up, by table."""
        return tuple(table[sample] for table in self.bags)

    def model(self, seed: int) -> nn.Module:
        """Sums of rows of each table."""
        return Tables(self.rows, seed)


class Tables(nn.Module):
    """A table for each field; called with indices and offsets of each, behind each other."""

    def __init__(self, rows: Sequence[int], seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(size, DIM, mode="sum", _weight=torch.randn(size, DIM, generator=generator)) for size in rows
        )

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        """A sum for each sample and table."""
        pairs = zip(inputs[::2], inputs[1::2], strict=True)
        return [table(*pair) for table, pair in zip(self.tables, pairs, strict=True)]


def inputs_of(samples: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The inputs of :class:`Tables` for these samples."""
    found: list[Tensor] = []
    for bags in zip(*samples, strict=True):
        lengths = torch.tensor([0, *map(len, bags)])
        found += [torch.cat(bags), lengths.cumsum(0)[:-1]]
    return tuple(found)


def all_records(folder: Path | None, seed: int, *, quick: bool) -> Iterator[Records]:
    """Records with a row of each table, the same without fields of numbers, and bags; what is not there is drawn.

    Raises DataError for a file that has no such records.
    """
    rng = np.random.default_rng(seed)
    most = 400 if quick else None
    categorical = None if folder is None else folder / CATEGORICAL
    fields = read_fields(categorical, most) if categorical and categorical.exists() else _drawn_fields(rng, most)
    yield fields
    yield fields.without_numbers()
    bags = None if folder is None else folder / BAGS
    yield read_bags(bags, most) if bags and bags.exists() else _drawn_bags(rng, most)


def read_fields(path: Path, most: int | None = None) -> Records:
    """Records of comma-separated fields under a line of names: a table for each field, a row for each of its values."""
    lines = list(csv.reader(io.StringIO(unpacked(path))))
    names, records = lines[0] if lines else [], lines[1:][:most]
    if not records or any(len(record) != len(names) for record in records):
        raise DataError(
            f"{path} must have records of {len(names)} fields: take it out of the data folder or replace it"
        )
    rows, bags = [], []
    numbers = frozenset(n for n, values in enumerate(zip(*records, strict=True)) if all(map(str.isdecimal, values)))
    for values in zip(*records, strict=True):
        number = {value: place for place, value in enumerate(sorted(set(values)))}
        rows.append(len(number))
        bags.append(_cut(torch.tensor([number[value] for value in values]), [1] * len(values)))
    return Records("fields", "data", tuple(rows), tuple(bags), numbers)


def read_bags(path: Path, most: int | None = None) -> Records:
    """Lines of a sample's number, and the rows of its bag behind it."""
    try:
        bags = [np.array(line.split()[1:], dtype=np.int64) for line in unpacked(path).splitlines()[:most]]
        ends = [int(bag.max()) for bag in bags if len(bag)]
        if not ends or max(ends) >= MOST_ROWS or min(int(bag.min()) for bag in bags if len(bag)) < 0:
            raise ValueError(f"rows must be from 0 to {MOST_ROWS - 1}")
    except ValueError as error:
        raise DataError(f"{path} must have bags: take it out of the data folder or replace it ({error})") from error
    return Records("bags", "data", (max(ends) + 1,), (tuple(map(torch.from_numpy, bags)),))


def _drawn_fields(rng: np.random.Generator, most: int | None) -> Records:
    count = most or 22_792
    bags = tuple(_cut(torch.from_numpy(_skewed(rows, count, rng)), [1] * count) for rows in SIZES)
    return Records("fields", "drawn", SIZES, bags, NUMBERS)


def _drawn_bags(rng: np.random.Generator, most: int | None) -> Records:
    rows, count = 40_981, most or 29_858
    lengths = rng.geometric(1 / 7.28, count)
    bags = _cut(torch.from_numpy(_skewed(rows, int(lengths.sum()), rng)), lengths.tolist())
    return Records("bags", "drawn", (rows,), (bags,))


def _cut(rows: Tensor, lengths: list[int]) -> tuple[Tensor, ...]:
    """What each sample looks up."""
    return torch.split_with_sizes(rows, lengths)


def _skewed(rows: int, count: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return by_chance(np.arange(1, rows + 1, dtype=np.float64) ** -ZIPF, count, rng, shuffled=True)
