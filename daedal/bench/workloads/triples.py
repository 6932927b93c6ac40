"""Triples of a knowledge graph as numbers: head, relation and tail."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daedal.bench.workloads.graphs import unpacked
from daedal.bench.workloads.reuse_traces import DataError
from daedal.bench.workloads.streams import ZIPF, Indices, by_chance

FOLDER = "kg"
"""Where triples are in a data folder."""

FIELDS = 3

ENTITIES, RELATIONS, TRIPLES = 17_050, 51, 10_311
"""Of what is drawn where there are no data: as many as CoDEx-M and its test triples have."""


@dataclass(frozen=True)
class Triples:
    """Triples to score, and the sizes of the tables of entities and of relations."""

    heads: Indices
    kinds: Indices
    tails: Indices
    entities: int
    relations: int


def read_triples(folder: Path, name: str) -> Triples:
    """The test triples of ``name``; entities and relations are numbered as they come in all of its files.

    Raises DataError if a file is none.
    """
    texts = {part: unpacked(folder / f"{name}_{part}.tsv.gz") for part in ("train", "valid", "test")}
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    found: list[tuple[int, int, int]] = []
    for part, text in texts.items():
        found = []
        for line in text.splitlines():
            fields = line.split("\t")
            if len(fields) != FIELDS:
                raise DataError(f"{folder / name}_{part}.tsv.gz must have lines of {FIELDS} fields, not {line[:40]!r}")
            head, relation, tail = fields
            found.append(
                (
                    entities.setdefault(head, len(entities)),
                    relations.setdefault(relation, len(relations)),
                    entities.setdefault(tail, len(entities)),
                )
            )
    heads, kinds, tails = np.array(found, dtype=np.int64).reshape(-1, FIELDS).T.copy()
    return Triples(heads, kinds, tails, len(entities), len(relations))


def drawn(rng: np.random.Generator) -> Triples:
    """Triples with skewed entities and relations."""
    sizes = (ENTITIES, RELATIONS, ENTITIES)
    heads, kinds, tails = (
        by_chance(np.arange(1, size + 1, dtype=np.float64) ** -ZIPF, TRIPLES, rng, shuffled=True) for size in sizes
    )
    return Triples(heads, kinds, tails, ENTITIES, RELATIONS)
