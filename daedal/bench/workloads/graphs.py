"""Graphs as edges in the order of their destinations: read from files, or drawn with as skewed degrees."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daedal.base.files import decode_text, read_whole
from daedal.bench.workloads.reuse_traces import DataError
from daedal.bench.workloads.streams import Indices, by_chance

FOLDER = "graph"
"""Where graphs are in a data folder."""

SKEW = 0.5
"""In a drawn graph the node of rank r has edges with a chance that falls with ``(r + 1) ** -SKEW``: a tenth of them end
at one node of a hundred, as in networks of citations and of collaborations.
"""

MOST_TEXT = 64 << 20
"""Bytes of the longest text that a file may hold."""


@dataclass(frozen=True)
class Graph:
    """A directed graph.

    Attributes
    ----------
    pointers
        Edges into node v are ``pointers[v]`` to ``pointers[v + 1] - 1``: nodes + 1 numbers.
    columns
        The node that each edge comes from, ascending for each node.
    """

    pointers: Indices
    columns: Indices

    @property
    def nodes(self) -> int:
        """How many there are."""
        return len(self.pointers) - 1

    @property
    def rows(self) -> Indices:
        """The node that each edge goes to."""
        return np.repeat(np.arange(self.nodes, dtype=np.int64), np.diff(self.pointers))

    def first(self, outputs: int, nodes: int) -> "Graph":
        """Edges into the first ``outputs`` nodes, from the first ``nodes`` ones: others are taken modulo that."""
        pointers = self.pointers[: outputs + 1]
        return Graph(pointers, self.columns[: pointers[-1]] % nodes)


def graph_of(destinations: NDArray[np.int64], sources: NDArray[np.int64], nodes: int) -> Graph:
    """The graph with these edges, in any order."""
    order = np.lexsort((sources, destinations))
    pointers = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(destinations, minlength=nodes), out=pointers[1:])
    return Graph(pointers, np.ascontiguousarray(sources[order]))


def drawn(nodes: int, edges: int, rng: np.random.Generator) -> Graph:
    """A graph whose degrees fall as a power law. Few nodes have many edges, some none; an edge may be there twice."""
    chances = np.arange(1, nodes + 1, dtype=np.float64) ** -SKEW
    names = rng.permutation(nodes)
    ends = [names[by_chance(chances, edges, rng, shuffled=False)] for _ in range(2)]
    return graph_of(ends[0], ends[1], nodes)


def read_graph(path: Path) -> Graph:
    """The graph in a compressed file, each edge both ways: ``.metis.gz``, or lines ``u v`` with each edge once.

    Raises DataError if it is no such file.
    """
    try:
        text = unpacked(path)
        return _metis(text) if path.name.endswith(".metis.gz") else _edge_list(text)
    except (ValueError, IndexError, MemoryError) as error:
        raise DataError(f"{path} must be a graph: take it out of the data folder or replace it ({error})") from error


def unpacked(path: Path) -> str:
    """The text in a compressed file; DataError for what is none."""
    raw = read_whole(path, str(path))
    try:
        with gzip.open(path) as stream:
            text = stream.read(MOST_TEXT + 1)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path} must be a file of gzip, not {len(raw):,} other bytes") from error
    if len(text) > MOST_TEXT:
        raise DataError(f"{path} must hold at most {MOST_TEXT:,} bytes, and has more")
    return decode_text(text, str(path))


def _edge_list(text: str) -> Graph:
    ends = np.array(text.split(), dtype=np.int64).reshape(-1, 2)
    if not len(ends) or ends.min() < 0 or ends.max() > 1 << 24:
        raise ValueError(f"nodes must be from 0 to {1 << 24}")
    other = ends[ends[:, 0] != ends[:, 1]]  # a self-loop is one edge
    both = np.concatenate([ends, other[:, ::-1]])
    return graph_of(both[:, 0], both[:, 1], int(ends.max()) + 1)


def _metis(text: str) -> Graph:
    lines = text.split("\n")
    nodes = int(lines[0].split()[0])
    if not 0 < nodes < len(lines):
        raise ValueError(f"it must have a line for each of {nodes} nodes")
    found = [np.array(line.split(), dtype=np.int64) - 1 for line in lines[1 : nodes + 1]]
    columns = np.concatenate(found)
    if len(columns) and not 0 <= columns.min() <= columns.max() < nodes:
        raise ValueError(f"neighbours must be from 1 to {nodes}")
    return graph_of(np.repeat(np.arange(nodes, dtype=np.int64), [len(one) for one in found]), columns, nodes)
