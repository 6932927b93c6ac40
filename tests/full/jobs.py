"""What `make test-full` runs, in pieces of some seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Protocol

import numpy as np

from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from tests.unit.float import models
from tests.unit.float.models import Kind
from tests.unit.float.operands import CORNERS, alignments

PIECE = 5_000_000
"""Random operations of one piece."""

COUNTS = 4096
"""The largest count whose divisions are run exhaustively."""

LARGEST = (1 << 24) - 1
"""The largest count there is."""

MULTIPLIES = (LaneOp.MUL, LaneOp.FMA, LaneOp.MUL_ADD)
"""Operations with the hardest arithmetic, of which there are more cases."""


class Found(Protocol):
    """What every piece reports."""

    checked: int
    wrong: int


class Run(Protocol):
    """Does a piece of work."""

    def __call__(self) -> Found: ...


@dataclass(frozen=True)
class Job:
    """A piece of work of ``group``: ``run`` says how many results it has checked, and how many are wrong."""

    group: str
    run: Run


def jobs(seed: int, count: int, *, largest: int = COUNTS) -> Iterator[Job]:
    """All pieces: ``count`` random operations, and every division by a count up to ``largest``."""
    a, b, c = alignments(fractions=10)
    yield Job("corners", partial(models.run_grid, CORNERS, CORNERS, CORNERS))
    yield Job("alignment distances", partial(models.run_grid, a, b, c))
    yield from _operations(seed, count)
    yield from _divisions(seed, largest)


def _operations(seed: int, count: int) -> Iterator[Job]:
    """Each operation with each kind of operands; those that multiply get four times as many."""
    shares = {(op, kind): 4 if op in MULTIPLIES else 1 for op, kind in product(LaneOp, Kind)}
    for number, ((op, kind), share) in enumerate(shares.items()):
        left, piece = count * share // sum(shares.values()), 0
        while left > 0:
            start = (seed << 32) + (number << 20) + piece
            yield Job(f"{op.name}", partial(models.run_random, start, op, kind, min(left, PIECE)))
            left, piece = left - PIECE, piece + 1


def _divisions(seed: int, largest: int) -> Iterator[Job]:
    """On the lane: hard dividends for every count, and counts of all sizes. On the host: all dividends."""
    rng = np.random.default_rng(seed)
    for begin, end in pairwise([*range(1, COUNTS + 1, 256), COUNTS + 1]):
        yield Job("division, RTL", partial(models.run_divisions, seed + begin, range(begin, end), each=4096))
    large = [int(x) for x in 2 ** rng.uniform(12, 24, 20_000)]
    yield Job("division, RTL", partial(models.run_divisions, seed, [min(x, LARGEST) for x in large], each=256))
    odd = [int(x) | 1 for x in rng.integers(1 << 21, LARGEST, 200_000)]
    for begin in range(0, len(odd), 20_000):
        yield Job("division, next to halfway, RTL", partial(models.run_near_halfway, odd[begin : begin + 20_000]))
    for begin in range(1, LARGEST + 1, 1 << 20):
        counts = range(begin, min(begin + (1 << 20), LARGEST + 1))
        yield Job("reciprocal, RTL", partial(models.run_reciprocals, counts))
    for begin in range(1, largest + 1, 64):
        end = min(begin + 64, largest + 1)
        yield Job("division, normal quotients, C", partial(models.run_all_dividends, begin, end))
        yield Job("division, subnormal quotients, C", partial(models.run_all_dividends, begin, end, subnormal=True))
