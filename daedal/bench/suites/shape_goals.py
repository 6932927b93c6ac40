"""What is wanted of a shape on a machine: a goal for each class, of listed and random shapes alike."""

from collections.abc import Iterator
from dataclasses import dataclass

from daedal.bench.suite import Row
from daedal.bench.workloads.shapes import Shape
from daedal.cosim.memory_spec import IDEAL, MemorySpec
from daedal.hw.config.core import Config

USUAL_LATENCY = MemorySpec().latency

LAUNCH, WAITS = 240, 5
"""Most cycles of a launch of one row: so many, and so many latencies of memory."""

MANY = 26
"""Tables of which a launch has a goal."""

MANY_CYCLES = 1200
"""Most cycles of a launch of one row of 16 columns from each of so many tables, at the usual latency."""

OF_ANY = 0.80
"""Of the bound, of a long launch of any other shape: the least that is wanted of any."""

OF_BOUND, OF_NEED, OF_CEILING, OF_SUM = 0.95, 0.80, 0.95, 1.03
"""Of means, short bags and small tables, rows that do not end with a line, and means of one row (at most)."""

WIDE_KAGGLE, WIDE_ONE_ROW, WIDE_MEAN = 0.90, 0.85, 0.85

WIDE_BUS = 64
"""Bytes of a line from which a machine is wide."""

SHORT_ROWS, SHORT_DIM, MEAN_DIM, TINY_ROWS = 3, 16, 16, 7
ODD_FROM = 5
"""Columns from which a row may touch a line more than its bytes need."""


WHOLE_FROM = 10
"""Values from here on are written as whole numbers."""

SMALL_BATCH = 64
"""Bags over each of several tables below which the launch's start and end decide."""


@dataclass(frozen=True)
class Goal:
    """The least (or most) that a figure of a row is to be."""

    figure: str
    value: float
    most: bool = False

    def is_reached(self, row: Row) -> bool | None:
        """Whether the row reaches it; None if it lacks the figure."""
        found = row.get(self.figure)
        if found is None:
            return None
        return bool(found <= self.value) if self.most else bool(found >= self.value)

    def text(self, row: Row) -> str:
        """The goal and how the row stands against it, in words."""
        how = {True: "reached", False: "missed", None: "not measured"}[self.is_reached(row)]
        value = f"{self.value:.2f}" if self.value < WHOLE_FROM else f"{self.value:,.0f}"
        return f"{NAMES[self.figure]} {'at most ' if self.most else ''}{value}: {how}"


NAMES = {"need_share": "need", "limit_share": "limit", "bound_share": "bound", "of_sum": "of a sum", "cycles": "cycles"}
"""Figure -> what it is called."""


def goals_of(shape: Shape, config: Config, memory: str) -> tuple[Goal, ...]:
    """Those of a shape (with its batch) on this machine; none if it is of no class with a goal."""
    spec = MemorySpec.parse(memory, predicted=True)
    if shape.batch == 1:
        return tuple(_of_starts(shape, spec))
    return tuple(_of_wide(shape, spec) if config.bus_bytes >= WIDE_BUS else _of_narrow(shape, config))


def _of_starts(shape: Shape, spec: MemorySpec) -> Iterator[Goal]:
    if spec.model != IDEAL or shape.pooling != (1, 1) or shape.mode == "gather":
        return
    tables = len(shape.tables)
    if tables == 1:
        yield Goal("cycles", LAUNCH + WAITS * spec.latency, most=True)
    elif spec.latency == USUAL_LATENCY and max(table.dim for table in shape.tables) <= SHORT_DIM:
        one = LAUNCH + WAITS * spec.latency
        yield Goal("cycles", one + (MANY_CYCLES - one) / MANY * tables, most=True)


def _of_wide(shape: Shape, spec: MemorySpec) -> Iterator[Goal]:
    if shape.pooling == (1, 1) and shape.mode == "sum" and shape.dim == SHORT_DIM:
        if spec.model != IDEAL:
            yield Goal("limit_share", WIDE_KAGGLE if len(shape.tables) > 1 else WIDE_ONE_ROW)
    elif shape.mode == "mean" and shape.pooling[0] > SHORT_ROWS and shape.dim >= MEAN_DIM:
        yield Goal("bound_share", WIDE_MEAN)


def _of_narrow(shape: Shape, config: Config) -> Iterator[Goal]:
    bags, (low, high) = shape.mode != "gather", shape.pooling
    if len(shape.tables) > 1 and shape.batch < SMALL_BATCH:
        return
    if shape.mode == "mean" and high == 1:
        yield Goal("of_sum", OF_SUM, most=True)
    widest, mean = max(table.dim for table in shape.tables), shape.mode == "mean"
    if bags and high <= SHORT_ROWS and widest <= SHORT_DIM:
        yield Goal("need_share", OF_NEED)
        if mean and low >= SHORT_ROWS and shape.dim >= MEAN_DIM:
            yield Goal("bound_share", OF_BOUND)
    elif max(table.rows for table in shape.tables) <= TINY_ROWS:
        yield Goal("bound_share" if mean else "need_share", OF_NEED)
    elif mean and low >= SHORT_ROWS and shape.dim >= MEAN_DIM:
        yield Goal("bound_share", OF_BOUND)
    elif not mean and low != 2 and all(_is_odd(table.dim, config) for table in shape.tables):
        yield Goal("need_share", OF_CEILING)
    elif not mean or high > 1:
        yield Goal("bound_share", OF_ANY)


def _is_odd(dim: int, config: Config) -> bool:
    return dim >= ODD_FROM and dim * 4 % config.bus_bytes != 0
