"""The suite ``system``: what many tiles give; the longest and one at random run on the RTL, others on the model."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, against, machines_of, one_thread
from daedal.bench.workloads.fleets import FLEETS, Fleet
from daedal.bench.workloads.runner import same_bits
from daedal.driver.device import MEMORY_BYTES, Device
from daedal.system.system import System

TILES = (4, 8, 16)

GOALS = {4: 0.95, 8: 0.90, 16: 0.86}
"""Least share of N times one core, by N."""

QUEUED = 1
"""Calls in the middle of a queue, whose cycles count: each begins while the one before it ends, and gives way to the
next one. The first of a queue has a start of its own, and the last one nothing behind it.
"""

OTHERS = "model"
"""What the tiles run on that the order's target is not for: their cycles are predicted."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each fleet and number of tiles, and before them one core."""
    with one_thread():
        for machine in machines_of(order):
            for name in fleets_of(order.only):
                fleet = FLEETS[name].smaller() if order.quick else FLEETS[name]
                for distribution in order.distributions or ("zipf",):
                    one: float | None = None
                    for tiles in (1, 2) if order.quick else (1, *TILES):
                        say(f"system: {name}, {distribution}, {tiles} tiles on {machine.memory}")
                        row = measure(fleet, distribution, tiles, machine)
                        one = row["cycles"] if tiles == 1 else one
                        assert one is not None
                        share = one / row["cycles"] / tiles if row["cycles"] else None
                        yield row | {
                            "share": share,
                            "speed_up": None if share is None else share * tiles,
                            "outcome": against(share, None if order.quick else GOALS.get(tiles)),
                        }


def fleets_of(names: Sequence[str]) -> Sequence[str]:
    """These fleets, or all; ValueError for one that there is not."""
    for name in names:
        if name not in FLEETS:
            raise ValueError(f"a fleet must be one of {', '.join(FLEETS)}, not {name!r}")
    return names or tuple(FLEETS)


def measure(fleet: Fleet, distribution: str, tiles: int, machine: Machine) -> Row:
    """Plan, run the longest tile and another one on the order's target, and all others on the model."""
    module, inputs = fleet.make(distribution, machine.seed, machine.config)
    options: dict[str, Any] = {"memory_bytes": bytes_of(fleet), "table_check": "versions"}
    with System.open(OTHERS, machine.config, machine.memory, tiles=tiles, **options) as predicted:
        plan = daedal.plan(module, predicted, sample=inputs)
        longest = int(np.argmax(plan.load))
        rest = [tile for tile in range(tiles) if tile != longest]
        chosen = [longest]
        if rest:
            chosen.append(int(np.random.default_rng(machine.seed).choice(rest)))
        timed = {tile: Device.open(machine.target, machine.config, machine.memory, **options) for tile in chosen}
        with System([timed.get(n, tile) for n, tile in enumerate(predicted.tiles)], machine.memory) as system:
            exe = daedal.compile(module, inputs, device=system, plan=plan)
            equal = same_bits(exe(*inputs), module(*inputs))
            lone = [each.cycles for each in exe.stats.per_tile]
            futures = [exe.submit(*inputs) for _ in range(QUEUED + 2)]
            equal = equal and all(same_bits(future.result(), module(*inputs)) for future in futures)
    each = [np.mean([future.stats.per_tile[tile].cycles for future in futures[1:-1]]) for tile in chosen]
    errors = [plan.load[tile] / lone[tile] - 1 for tile in chosen if lone[tile]]
    return {
        "workload": fleet.name, **machine.facts(), "distribution": distribution, "placement": 0, "seed": machine.seed,
        "tiles": tiles,
        "lookups": sum(len(indices) for indices, _ in inputs[0]), "cycles": round(max(each)),
        "cycles_alone": lone[longest], "cycles_other": round(min(each)), "predicted": max(plan.load),
        "balance": plan.balance, "longest_by_shortest": max(lone) / max(1, min(lone)), "extra_bytes": plan.extra,
        "prediction_error": max(errors, key=abs, default=None), "bit_exact": equal,
        "verdict": "" if equal else NOT_EQUAL,
    }  # fmt: skip


def bytes_of(fleet: Fleet) -> int:
    """Bytes of a tile's memory for a fleet."""
    return max(MEMORY_BYTES, fleet.table_bytes * 5 // 4)


NAME = "system"

SUITE = Suite(
    name=NAME,
    title="Systems of tiles: calls queued behind each other, the longest tile and another one on the RTL",
    columns=(
        column("fleet", "workload"), column("indices", "distribution"), column("tiles", "tiles"),
        column("cycles", "cycles", ",.0f"), column("times one", "speed_up", ".2f"), column("share", "share", ".3f"),
        column("predicted alone", "predicted", ",d"), column("alone", "cycles_alone", ",d"),
        column("error", "prediction_error", "+.1%"), column("longest ÷ mean", "balance", ".3f"),
        column("longest ÷ shortest", "longest_by_shortest", ".3f"),
        column("more bytes", "extra_bytes", ".1%"), column("equal", "bit_exact"), column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
