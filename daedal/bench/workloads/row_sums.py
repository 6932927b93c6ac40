"""What the lanes need at least for rows and sums along them, and such sums in the machine's order."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.bench.workloads.graphs import Graph
from daedal.hw.config.core import Config
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.isa.instructions import PARTIAL_SUMS, VectorOp
from daedal.hw.isa.spec.binary32 import Floats
from daedal.hw.isa.spec.reduction import reduce

PART = 1 << 14
"""Rows that are reduced at a time, for the sake of memory."""


def beats_of(config: Config, dim: int) -> int:
    """Beats of a row in the lanes."""
    return -(-dim // config.lanes)


def reduction_cycles(config: Config, dim: int) -> int:
    """Least cycles of the lanes for a sum along a row.

    Its beats and those of its tree, or the adder's loop for each time that the partial sums are gone round.
    """
    beats, partial = beats_of(config, dim), max(1, PARTIAL_SUMS // config.lanes)
    tree = sum(-(-(PARTIAL_SUMS >> k) // config.lanes) for k in range(1, PARTIAL_SUMS.bit_length()))
    rounds = -(-beats // partial)
    return max(beats + tree, (rounds - 1) * max(latencies(config).loop, partial) + beats - (rounds - 1) * partial)


def passed_messages(graph: Graph, x: Floats) -> Floats:
    """Message passing as the machine adds."""
    out, left = np.zeros((graph.nodes, x.shape[1]), np.float32), np.diff(graph.pointers)
    with np.errstate(all="ignore"):
        products = reduced(graph.columns, lambda part: x[graph.columns[part]] * x[graph.rows[part]])
        for number in range(int(left.max(initial=0))):
            nodes = np.flatnonzero(left > number)
            edges = graph.pointers[nodes] + number
            out[nodes] = products[edges, None] * x[graph.columns[edges]] + out[nodes]
    return out


def reduced(like: NDArray[Any], terms: Callable[[slice], Floats]) -> Floats:
    """The machine's sums along the rows that ``terms`` gives, a part of them at a time."""
    parts = [reduce(VectorOp.ADD, terms(slice(first, first + PART))) for first in range(0, len(like), PART)]
    return np.concatenate([np.zeros(0, np.float32), *parts])
