"""The workloads of ``daedal bench`` over graphs, triples of a knowledge graph, and blocks of attention."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from daedal.bench.workloads import graphs, structured_tasks, triples
from daedal.bench.workloads.graphs import Graph
from daedal.bench.workloads.models import OWN
from daedal.bench.workloads.streams import Indices
from daedal.bench.workloads.structured_tasks import StructuredTask
from daedal.bench.workloads.triples import Triples
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.spec.binary32 import Floats

GENERATED = "generated"
"""Where indices come from that are computed and stand for nothing else."""

SHAPE_SEED = 46
"""Of what is drawn in place of data: the same in every run, as data are."""

QUICK_OUTPUTS, QUICK_ROWS, QUICK_DIM = 12, 48, 32
"""Sizes of a run that only shows that everything works."""

WINDOW, RANDOM, GLOBAL = 3, 3, 2
"""Blocks of keys that a block of queries attends to: around its own, drawn, and the first and the last one."""

TOKENS, BLOCK = 2_048, 64
"""Tokens of a sequence, and of a block."""


@dataclass(frozen=True)
class StructuredWorkload:
    """An operation over a structure of indices, with int64 indices.

    Attributes
    ----------
    name, what
        As of any workload.
    mode
        ``spmm``, ``gcn`` or ``mp`` over a graph, ``transe`` or ``distmult`` over triples, or ``blocks``.
    dim
        Columns of the tables, binary32.
    source
        The file of the graph or the name of the triples in the data folder, or a word for what is computed.
    nodes, edges
        Of the graph that is drawn, if there is no such file.
    batch
        Nodes that are computed, or triples, or blocks of queries, the first ones; 0 for all.
    rows
        Rows of the table, to which indices are taken modulo; 0 for as many as there are.
    """

    name: str
    what: str
    mode: str
    dim: int
    source: str
    nodes: int = 0
    edges: int = 0
    batch: int = 0
    rows: int = 0

    @property
    def tables(self) -> tuple[int, ...]:
        """Rows of each table, 0 for as many as the data have."""
        return (self.rows,) * {"spmm": 1, "gcn": 1, "mp": 1}.get(self.mode, 2)

    @property
    def row_bytes(self) -> int:
        """Useful bytes of a row."""
        return self.dim * BINARY32.bytes * (BLOCK if self.mode == "blocks" else 1)

    @property
    def distributions(self) -> tuple[str, ...]:
        """The one that the structure has."""
        return (OWN,)

    def smaller(self) -> "StructuredWorkload":
        """The same with little work, to see that it runs."""
        few = 2 if self.mode == "blocks" else QUICK_OUTPUTS
        return replace(self, batch=min(self.batch or few, few), rows=QUICK_ROWS, dim=min(self.dim, QUICK_DIM))

    def shortened(self, batch: int) -> "StructuredWorkload":
        """The same with at most so many results over each table."""
        return replace(self, batch=min(self.batch or batch, batch))

    def make(self, distribution: str, seed: int, config: Config, data: Path | None = None) -> StructuredTask:
        """The operation with its data, equal for equal arguments; ``data`` is the folder with real data, if any.

        Raises ValueError for a distribution that is not the structure's own, DataError for a file that is broken.
        """
        if distribution != OWN:
            raise ValueError(f"workload {self.name} must have distributions {self.distributions}, not {distribution!r}")
        rng = np.random.default_rng([seed, self.dim])

        def values(*shape: int) -> Floats:
            return rng.standard_normal(shape, dtype=np.float32)

        if self.mode == "blocks":
            blocks = attended(TOKENS // BLOCK, np.random.default_rng(SHAPE_SEED))[: self.batch or None].reshape(-1)
            keys, others = values(TOKENS, self.dim), values(TOKENS, self.dim)
            return structured_tasks.block_gather(self, keys, others, blocks, BLOCK, GENERATED)
        if self.mode in ("transe", "distmult"):
            found, origin = self.triples(data)
            tables = values(found.entities, self.dim), values(found.relations, self.dim)
            return structured_tasks.triple_scores(self, found, *tables, origin, distances=self.mode == "transe")
        graph, origin = self.graph(data)
        nodes = self.rows or graph.nodes
        graph = graph.first(self.batch or graph.nodes, nodes)
        x = values(nodes, self.dim)
        if self.mode == "mp":
            return structured_tasks.message_passing(self, graph, x, origin)
        make = structured_tasks.sparse_product if self.mode == "spmm" else structured_tasks.graph_convolution
        return make(self, graph, x, values(len(graph.columns)), origin)

    def graph(self, data: Path | None) -> tuple[Graph, str]:
        """The graph of the workload's file, or one with as many nodes and edges."""
        path = data / graphs.FOLDER / self.source if data is not None else None
        if path is not None and path.is_file():
            return graphs.read_graph(path), self.source
        origin = f"stand-in: {POWER_LAW}" if self.source.endswith(".gz") else GENERATED
        return graphs.drawn(self.nodes, self.edges, np.random.default_rng(SHAPE_SEED)), origin

    def triples(self, data: Path | None) -> tuple[Triples, str]:
        """The triples of the workload's name, or as many drawn ones."""
        folder = data / triples.FOLDER if data is not None else None
        if folder is not None and (folder / f"{self.source}_test.tsv.gz").is_file():
            found, origin = triples.read_triples(folder, self.source), self.source
        else:
            found, origin = triples.drawn(np.random.default_rng(SHAPE_SEED)), "stand-in: zipf"
        few = slice(self.batch or None)
        entities, relations = (min(self.rows or size, size) for size in (found.entities, found.relations))
        heads, kinds, tails = found.heads[few] % entities, found.kinds[few] % relations, found.tails[few] % entities
        return Triples(heads, kinds, tails, entities, relations), origin


def attended(blocks: int, rng: np.random.Generator) -> Indices:
    """The blocks that each of ``blocks`` blocks attends to, none twice: around it, the first and last, drawn ones.

    Near the ends of the sequence more are drawn in place of those that are there already. Shape
    ``(blocks, WINDOW + RANDOM + GLOBAL)``.
    """
    found = []
    for own in range(blocks):
        fixed = dict.fromkeys((0, blocks - 1, *((own + k) % blocks for k in range(-(WINDOW // 2), WINDOW // 2 + 1))))
        others = np.setdiff1d(np.arange(blocks), list(fixed))
        drawn = rng.choice(others, WINDOW + RANDOM + GLOBAL - len(fixed), replace=False)
        found.append([*fixed, *drawn])
    return np.array(found, dtype=np.int64)


POWER_LAW = "power-law graph"
CORA, ASTRO, POWER = (
    ("cora_edges.txt.gz", 2_708, 10_556), ("astro_ph.metis.gz", 16_706, 242_502), (POWER_LAW, 16_384, 131_072)
)  # fmt: skip
"""Graphs: file or name, nodes, and edges, each way counted."""

_GRAPHS = {"cora": CORA, "astro": ASTRO, "power": POWER}
_OF_GRAPHS = {"spmm": "sparse × dense", "mp": "message passing"}

WORKLOADS = {
    workload.name: workload
    for workload in (
        *(
            StructuredWorkload(f"{mode}-{name}", f"{what}, {name}", mode, 64, *graph)
            for mode, what in _OF_GRAPHS.items()
            for name, graph in _GRAPHS.items()
        ),
        StructuredWorkload("gcn-cora", "graph convolution by index_add, cora", "gcn", 64, *CORA),
        StructuredWorkload("kg-codex-transe", "TransE scores of CoDEx-M", "transe", 128, "codex_m"),
        StructuredWorkload("kg-codex-distmult", "DistMult scores of CoDEx-M", "distmult", 128, "codex_m"),
        StructuredWorkload("attn", "key and value blocks of sparse attention", "blocks", 64, "computed"),
    )
}
"""Name -> workload, in the order in which they are measured."""
