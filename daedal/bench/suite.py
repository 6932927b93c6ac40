"""What a suite of ``daedal bench`` is, and what it is asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daedal.bench.report.table import Column
from daedal.hw.config.core import Config

Row = dict[str, Any]
"""One result, as it stands in the JSON file. ``verdict`` says what is wrong, if anything; ``outcome`` how it stands
against a goal.
"""

Say = Callable[[str], None]
"""Is told what is being done."""


@dataclass(frozen=True)
class Order:
    """What is to be measured.

    Attributes
    ----------
    machines
        Configuration and memory model of each machine.
    distributions
        Those of the workloads without indices of their own; none for the workload's usual ones.
    placements
        Placements of tables, from 0.
    seed, data, quick
        As in ``Setting``.
    host
        Whether PyTorch is measured beside each row.
    target
        Target of the workloads, of ``shapes``, ``types``, ``layers``, ``handwritten`` and ``levels``; the emulator has
        no cycles.
    reports
        Reports of ``daedal bitstream``, for the suite ``prediction``.
    only, drawn
        Of the suite ``shapes``: which of its shapes, by patterns of names and groups, and how many random ones instead;
        of ``types``, which of its operations.
    """

    machines: tuple[tuple[Config, str], ...]
    distributions: tuple[str, ...] = ()
    placements: int = 1
    seed: int = 1
    data: Path | None = None
    quick: bool = False
    host: bool = True
    target: str = "verilator"
    reports: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()
    drawn: int = 0


@dataclass(frozen=True)
class Machine:
    """One machine of an order: target, configuration and memory model, and the start of all random data."""

    config: Config
    memory: str = "ideal"
    target: str = "verilator"
    seed: int = 1
    quick: bool = False

    def facts(self) -> Row:
        """What each of its rows says of it."""
        return {"target": self.target, "config": self.config.name, "memory": self.memory}


@dataclass(frozen=True)
class Suite:
    """Something to measure.

    Attributes
    ----------
    name
        What the command line calls it.
    title
        What stands above its table; suites of one title share one.
    columns
        Those of the table.
    run
        Gives the rows, one after the other.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    run: Callable[[Order, Say], Iterator[Row]]


def machines_of(order: Order) -> Iterator[Machine]:
    """Each machine of an order."""
    for config, memory in order.machines:
        yield Machine(config, memory, order.target, order.seed, order.quick)


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch with one thread meanwhile: on a busy computer the barriers of several cost milliseconds each."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def is_broken(row: Row) -> bool:
    """Whether a row is an error rather than a result."""
    return bool(row.get("verdict")) or row.get("bit_exact") is False


NOT_EQUAL = "NOT EQUAL to PyTorch"
"""The verdict on a result with other bits."""


def against(value: float | None, goal: float | None) -> str:
    """In words, how ``value`` stands against its ``goal``, the least that is wanted."""
    if goal is None:
        return ""
    if value is None:
        return f"{goal:,}: not measured"
    return f"{goal:,}: {'reached' if value >= goal else 'missed'}"


def at_most(value: float | None, goal: float | None) -> str:
    """In words, how ``value`` stands against its ``goal``, the most that is wanted."""
    if goal is None:
        return ""
    if value is None:
        return f"at most {goal:g}: not measured"
    return f"at most {goal:g}: {'reached' if value <= goal else 'missed'}"
