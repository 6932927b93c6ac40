"""The suite ``plans``: what plans are worth, on the model, and how good and quick the planner is on many tables."""

import random
import time
from collections.abc import Iterator, Sequence

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import Machine, Order, Row, Say, Suite, against, at_most, machines_of, one_thread
from daedal.bench.suites.systems import OTHERS, bytes_of, fleets_of
from daedal.bench.workloads.fleets import FLEETS, Fleet
from daedal.bench.workloads.streams import DISTRIBUTIONS
from daedal.system.demand import Demand
from daedal.system.plan import Piece, Plan, PlannedTable
from daedal.system.planner import Planner
from daedal.system.system import System

SPREAD = 1.05
"""Most that the longest tile's cycles may differ by between distributions, under one plan."""

ROUND_ROBIN = 8.0
"""Times as fast as tables in turn on 16 tiles, at least, with ``skew``."""

MOST_SECONDS = 2.0
"""Of a plan for 1,000 tables on 16 tiles."""

TILE_BYTES = 1 << 36
"""Memory of a tile for many tables, which are planned only."""

TORCHREC = {(26, 2): 1.004, (26, 4): 1.107, (26, 8): 1.739, (100, 8): 1.071}
"""Tables, devices -> longest ÷ mean load of TorchRec's planner (1.8 and 1.9.2), by its own model of CPUs: the most that
is good. ``tests/frameworks/test_torchrec_planner.py`` runs it on the tables of :func:`drawn`.
"""

BATCH = 512
"""Bags of each table of :func:`drawn`."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """Distributions under one plan, round robin, and the planner alone."""
    with one_thread():
        for machine in machines_of(order):
            for name in fleets_of(order.only):
                fleet = FLEETS[name].smaller() if order.quick else FLEETS[name]
                tiles = 2 if order.quick else 8
                say(f"plans: {name}, one plan for all distributions, {tiles} tiles")
                yield _distributions(fleet, tiles, machine)
            if not order.only or "skew" in order.only:
                tiles = 2 if order.quick else 16
                say(f"plans: skew beside round robin, {tiles} tiles")
                yield _round_robin(FLEETS["skew"].smaller() if order.quick else FLEETS["skew"], tiles, machine)
            for tables, tiles in [*TORCHREC, (1000, 16)]:
                say(f"plans: {tables} tables on {tiles} tiles")
                yield _planned(tables, tiles, machine)


def _longest(fleet: Fleet, distribution: str, plan: Plan | None, tiles: int, machine: Machine) -> tuple[int, Plan]:
    """Cycles of the longest tile under this plan, or one that is made, on the model."""
    module, inputs = fleet.make(distribution, machine.seed, machine.config)
    with System.open(
        OTHERS, machine.config, machine.memory, tiles=tiles, memory_bytes=bytes_of(fleet), table_check="versions"
    ) as system:
        plan = daedal.plan(module, system, sample=inputs) if plan is None else plan
        executable = daedal.compile(module, inputs, device=system, plan=plan)
        executable(*inputs)
        return executable.stats.cycles, plan


def _distributions(fleet: Fleet, tiles: int, machine: Machine) -> Row:
    plan, found = None, {}
    for distribution in DISTRIBUTIONS:
        found[distribution], plan = _longest(fleet, distribution, plan, tiles, machine)
    spread = max(found.values()) / min(found.values())
    return _row(machine, f"{fleet.name}, five distributions", tiles) | {
        "figure": "longest ÷ shortest time", "value": spread, "each": found, "outcome": at_most(spread, SPREAD),
    }  # fmt: skip


def _round_robin(fleet: Fleet, tiles: int, machine: Machine) -> Row:
    cycles, plan = _longest(fleet, "zipf", None, tiles, machine)
    pieces = tuple(
        Piece(table.name, (0, table.dim), (0, table.bags), number % tiles) for number, table in enumerate(plan.tables)
    )
    others = Plan(pieces, plan.tables, plan.config, plan.memory, tiles, (0,) * tiles, 0.0)
    theirs, _ = _longest(fleet, "zipf", others, tiles, machine)
    return _row(machine, f"{fleet.name}, Zipf", tiles) | {
        "figure": "times round robin", "value": theirs / cycles, "extra_bytes": plan.extra,
        "outcome": against(theirs / cycles, ROUND_ROBIN if tiles == 16 else None),
    }  # fmt: skip


def _planned(tables: int, tiles: int, machine: Machine) -> Row:
    start = time.perf_counter()
    plan = Planner(drawn(tables), machine.config, machine.memory, tiles, TILE_BYTES, 0.1).plan()
    seconds = time.perf_counter() - start
    goal = TORCHREC.get((tables, tiles))
    return _row(machine, f"{tables:,} tables", tiles) | {
        "figure": "longest ÷ mean load", "value": plan.balance, "extra_bytes": plan.extra, "seconds": seconds,
        "published": goal,
        "outcome": at_most(plan.balance, goal) if goal else at_most(seconds, MOST_SECONDS) + " (seconds)",
    }  # fmt: skip


def drawn(count: int) -> Sequence[Demand]:
    """Tables of 1,000 to 10 million rows, of 16 to 128 columns, with bags of 1 to 80 rows."""
    rng = random.Random(count)
    rows = [int(10 ** rng.uniform(3, 7)) for _ in range(count)]
    dims = [rng.choice([16, 32, 64, 128]) for _ in range(count)]
    found = []
    for number, (high, dim) in enumerate(zip(rows, dims, strict=True)):
        length, bags = rng.choice([1, 1, 5, 20, 80]), BATCH
        table = PlannedTable(f"t{number}", high, dim, "float32", bags, bags * length)
        overhead = 8 * (bags * length + bags + 1)
        found.append(Demand(table, high, 1, 4, 4 * dim, bags, bags * length, overhead))
    return sorted(found, key=lambda each: each.table.name)


def _row(machine: Machine, workload: str, tiles: int) -> Row:
    return {"workload": workload, **machine.facts(), "target": OTHERS, "seed": machine.seed, "tiles": tiles}


NAME = "plans"

SUITE = Suite(
    name=NAME,
    title="Plans: one for all distributions, beside round robin, and for many tables",
    columns=(
        column("what", "workload"), column("tiles", "tiles"), column("figure", "figure"), column("", "value", ".3f"),
        column("of TorchRec's planner", "published", ".3f"), column("more bytes", "extra_bytes", ".1%"),
        column("seconds to plan", "seconds", ".2f"), column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
