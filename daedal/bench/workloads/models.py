"""The workloads of ``daedal bench``: what is computed, on which tables, with which indices."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from daedal.bench.workloads import reuse_traces
from daedal.bench.workloads.made import Bags, Made
from daedal.bench.workloads.streams import Indices, by_chance, draw
from daedal.bench.workloads.text import numbered, paragraphs
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32

OWN = "own"
"""The distribution of a workload whose indices come from data."""

QUICK_ROWS, QUICK_BATCH = 256, 4
"""Sizes of a run that only shows that everything works."""


@dataclass(frozen=True)
class Workload:
    """A layer over one table or several, all in one launch, with int64 indices.

    Attributes
    ----------
    name
        What tables and JSON call it.
    what
        What it is, for people to read.
    mode
        ``sum``, ``mean`` or ``weighted`` for bags, ``gather`` for rows as they are.
    tables
        Rows of each table.
    dim
        Columns of the tables, binary32.
    batch
        Bags over each table, or lookups of a gather.
    pooling
        Least and most rows of a bag; lengths are uniform in between.
    source
        Where indices come from if they are the workload's own: ``text``, or the name of a file of histograms.
    """

    name: str
    what: str
    mode: str
    tables: tuple[int, ...]
    dim: int
    batch: int
    pooling: tuple[int, int] = (1, 1)
    source: str = ""

    @property
    def row_bytes(self) -> int:
        """Useful bytes of a row."""
        return self.dim * BINARY32.bytes

    @property
    def distributions(self) -> tuple[str, ...]:
        """Those that are measured unless told otherwise."""
        return (OWN,) if self.source else ("uniform", "zipf")

    def smaller(self) -> "Workload":
        """The same with little work, to see that it runs."""
        rows = tuple(min(rows, QUICK_ROWS) for rows in self.tables[:4])
        low, high = self.pooling
        return replace(
            self, tables=rows, batch=min(self.batch or QUICK_BATCH, QUICK_BATCH), pooling=(min(low, 6), min(high, 6))
        )

    def shortened(self, batch: int) -> "Workload":
        """The same with at most so many results over each table."""
        return replace(self, batch=min(self.batch or batch, batch))

    def make(self, distribution: str, seed: int, config: Config, data: Path | None = None) -> Made:
        """Module and inputs, equal for equal arguments; ``data`` is the folder with real data, if there is one.

        Raises ValueError for a distribution that does not exist or is not for this workload.
        """
        if bool(self.source) != (distribution == OWN):
            raise ValueError(f"workload {self.name} must have distributions {self.distributions}, not {distribution!r}")
        rng = np.random.default_rng([seed, len(self.tables), self.dim])
        if self.source == "text":
            return self._text(rng)
        streams, origin = self._streams(distribution, rng, config, data)
        weights = [_table(rows, self.dim, rng) for rows in self.tables]
        if self.mode == "gather":
            indices = torch.from_numpy(streams[0][0])
            return Made(
                self,
                nn.Embedding(self.tables[0], self.dim, _weight=weights[0]),
                (indices,),
                len(indices),
                len(indices),
                origin,
            )
        inputs = [self._bag_inputs(indices, lengths, rng) for indices, lengths in streams]
        module = Bags([_bag(weight, "mean" if self.mode == "mean" else "sum") for weight in weights])
        lookups, bags = sum(len(indices) for indices, _ in streams), self.batch * len(self.tables)
        return Made(self, module, (inputs,), lookups, bags, origin)

    def _text(self, rng: np.random.Generator) -> Made:
        """The bags of words; as many as the batch says, or all if that is 0."""
        indices, offsets, words = numbered(paragraphs()[: self.batch or None])
        module = Bags([_bag(_table(words, self.dim, rng), self.mode)])
        return Made(self, module, ([(indices, offsets)],), len(indices), len(offsets), "Python's help topics")

    def _streams(
        self, distribution: str, rng: np.random.Generator, config: Config, data: Path | None
    ) -> tuple[list[tuple[Indices, Indices]], str]:
        """Indices and lengths of bags for each table, and where they come from."""
        if distribution != OWN:
            found = []
            for rows in self.tables:
                lengths = self._lengths(rng)
                found.append((draw(distribution, int(lengths.sum()), rows, rng, config), lengths))
            return found, "generated"
        path = data / reuse_traces.FOLDER / self.source if data is not None else None
        if path is None or not path.is_file():  # what has the same shape
            generated = replace(self, source="")
            return generated._streams("zipf", rng, config, None)[0], "stand-in: zipf"
        histogram = reuse_traces.read_histogram(path)
        found = []
        for rows in self.tables:
            lengths = rng.poisson(histogram.bag_length, self.batch)
            indices = by_chance(histogram.chances(rows), int(lengths.sum()), rng, shuffled=True)
            found.append((indices, lengths.astype(np.int64)))
        return found, self.source

    def _lengths(self, rng: np.random.Generator) -> Indices:
        low, high = self.pooling
        return rng.integers(low, high, self.batch, dtype=np.int64, endpoint=True)

    def _bag_inputs(self, indices: Indices, lengths: Indices, rng: np.random.Generator) -> tuple[Tensor, ...]:
        offsets = np.cumsum(lengths) - lengths
        tensors = (torch.from_numpy(indices), torch.from_numpy(offsets))
        if self.mode != "weighted":
            return tensors
        return (*tensors, torch.from_numpy(rng.standard_normal(len(indices), dtype=np.float32)))


def _bag(weight: Tensor, mode: str) -> nn.EmbeddingBag:
    return nn.EmbeddingBag.from_pretrained(weight, mode=mode)


def _table(rows: int, dim: int, rng: np.random.Generator) -> Tensor:
    return torch.from_numpy(rng.standard_normal((rows, dim), dtype=np.float32))


ROWS = 65_536
"""Rows of a table unless its workload says otherwise."""

KAGGLE = tuple(int(rows) for rows in np.geomspace(10, 60_000, 26).round())
"""Rows of the tables of ``kaggle``."""

REUSED = "sum of bags, indices as often used as in production-like data of"

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("rm1", "sum of bags, 8 tables", "sum", (ROWS,) * 8, 32, 64, (80, 80)),
        Workload("rm2", "sum of bags, 4 tables", "sum", (ROWS,) * 4, 64, 128, (32, 32)),
        Workload("rm3", "weighted sum of bags, 2 tables", "weighted", (ROWS,) * 2, 128, 128, (20, 20)),
        Workload("kaggle", "one row of each of 26 tables", "sum", KAGGLE, 16, 512),
        Workload("wide1", "sum of bags, 26 tables of one column", "sum", (ROWS,) * 26, 1, 512, (1, 50)),
        Workload("text", "mean of the words of paragraphs", "mean", (0,), 64, 0, source="text"),
        Workload("reuse21", f"{REUSED} 2021", "sum", (ROWS,) * 4, 64, 128, (4, 28), "meta_locality_stats_2021.txt"),
        Workload("reuse22", f"{REUSED} 2022", "sum", (ROWS,) * 4, 64, 128, (4, 24), "meta_locality_stats_2022.txt"),
        Workload("gather", "rows of one table, unchanged", "gather", (ROWS,), 64, 8192),
    )
}
"""Name -> workload, in the order in which they are measured."""
