"""The suite ``shapes``: shapes where a machine like this falls off, each against what is wanted of its class."""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import torch

from daedal.bench.limit import launch_bursts, limit_of, lines_of_tables, lines_per_cycle, needed_bursts
from daedal.bench.report.table import column
from daedal.bench.suite import Machine, Order, Row, Say, Suite, machines_of, one_thread
from daedal.bench.suites.shape_goals import USUAL_LATENCY, WIDE_BUS, goals_of
from daedal.bench.workloads import shape_list
from daedal.bench.workloads.runner import first_difference
from daedal.bench.workloads.shapes import LONG_LINES, MadeShape, Shape
from daedal.compiler.api import compile
from daedal.cosim.memory_spec import IDEAL, MemorySpec
from daedal.driver.device import Device
from daedal.errors import DaedalError

NAME = "shapes"

FEW = 0.01
"""Part of a launch's lines up to which lines that are read again do not have the memory asked once more."""


def chosen(order: Order) -> list[Shape]:
    """The shapes of an order, whatever the machine; ValueError if a pattern fits none."""
    found = list(shape_list.drawn(order.drawn, order.seed) if order.drawn else shape_list.shapes())
    for pattern in order.only:
        if not any(_fits(shape, pattern) for shape in found):
            groups = ", ".join(dict.fromkeys(shape.group for shape in found))
            raise ValueError(f"a pattern must fit the name of a shape, or be one of {groups}, not {pattern!r}")
    return [shape for shape in found if not order.only or any(_fits(shape, each) for each in order.only)]


def _fits(shape: Shape, pattern: str) -> bool:
    return pattern == shape.group or fnmatchcase(shape.name, pattern)


def is_for(shape: Shape, machine: Machine) -> bool:
    """Whether a shape is measured on a machine: its start at any latency, all else at the usual one; the shapes for
    wide memory only there.
    """
    spec, wide = MemorySpec.parse(machine.memory, predicted=True), machine.config.bus_bytes >= WIDE_BUS
    if spec.model == IDEAL and spec.latency != USUAL_LATENCY and shape.batch != 1:
        return False
    return shape.group == "random" or wide == (shape.group == shape_list.WIDE)


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each shape and machine, each on a machine of its own."""
    shapes = chosen(order)
    with one_thread():
        for machine in machines_of(order):
            for shape in shapes:
                if is_for(shape, machine):
                    say(f"{NAME}: {shape.name} on {machine.memory}")
                    yield measure(shape, machine)


def measure(shape: Shape, machine: Machine) -> Row:
    """Run a shape once, compare it with PyTorch, and put its figures beside what is wanted of its class.

    A run that fails gives a row too, whose ``verdict`` says of what.
    """
    shape = shape.smaller(machine.config) if machine.quick else shape.sized(machine.config)
    row: Row = {
        "workload": shape.name, "group": shape.group, **machine.facts(), "seed": machine.seed, "mode": shape.mode,
        "dims": sorted({table.dim for table in shape.tables}), "tables": len(shape.tables),
        "table_rows": max(table.rows for table in shape.tables), "pooling": list(shape.pooling), "batch": shape.batch,
        "index_bytes": shape.index_bytes,
    }  # fmt: skip
    goals = goals_of(shape, machine.config, machine.memory)
    try:
        row |= _figures(shape.make(machine.seed), machine)
        if any(goal.figure == "of_sum" for goal in goals) and row["cycles"]:
            row["of_sum"] = row["cycles"] / _figures(replace(shape, mode="sum").make(machine.seed), machine)["cycles"]
    except DaedalError as error:
        return {**row, "bit_exact": False, "verdict": f"{type(error).__name__}: {error}"}
    if machine.quick:
        return row
    row["goals"] = [{"figure": g.figure, "value": g.value, "most": g.most, "reached": g.is_reached(row)} for g in goals]
    return {**row, "outcome": "; ".join(goal.text(row) for goal in goals)}


def _figures(made: MadeShape, machine: Machine) -> Row:
    """Cycles and shares of one launch, and what is wrong with it."""
    config = machine.config
    with Device.open(machine.target, config=config, memory=machine.memory) as device:
        target: Any = device.target
        executable = compile(made.module, made.inputs, device=device)
        executable.prepare(made.inputs)
        for name, weight in made.module.named_parameters():
            device.bind_table(name, weight)
        if made.shape.batch or made.needed_lines(config) < LONG_LINES // 2:
            executable(*made.inputs)  # the first launch of a machine has a start of its own
        has_clock = hasattr(target, "record")
        if has_clock:
            target.record()
        result = executable(*made.inputs)
        stats, tables = executable.stats, list(device.tables.values())
        bursts = launch_bursts(target.recorded(), stats, config, device.records) if has_clock else None
    with torch.no_grad():
        difference = first_difference(result, made.module(*made.inputs))
    row: Row = {
        "lookups": made.lookups, "rows": stats.rows, "lines_needed": made.needed_lines(config),
        "lines_read": stats.lines_read, "lines_written": stats.lines_written, "launches": stats.launches,
        "useful_bytes": made.useful_bytes, "lane_cycles": made.lane_cycles(config), "cycles": stats.cycles or None,
        "stalls": {cause: count for cause, count in stats.stalls.items() if count}, "main_stall": stats.main_stall,
        "bit_exact": not difference,
    }  # fmt: skip
    wrong = [f"not PyTorch's: {difference}"] if difference else []
    if stats.rows != made.rows(config):
        wrong.append(f"{stats.rows} rows were read for {made.rows(config)} that are to be")
    if bursts is not None:
        row["row_lines"] = lines_of_tables(bursts, tables, config)
        if row["row_lines"] != made.row_lines(config):
            wrong.append(f"{row['row_lines']} lines were read out of tables for rows of {made.row_lines(config)}")
        row["limit_cycles"] = limit_of(bursts, machine.memory).cycles
        row |= _shares(row, made, machine, needed_cycles(bursts, tables, made, machine, row["limit_cycles"]))
    return {**row, "verdict": "; ".join(wrong)}


def needed_cycles(bursts: Any, tables: Any, made: MadeShape, machine: Machine, limit: int) -> float:
    """Least cycles in which this memory moves the lines that the operation needs; `ideal` without its latency.

    A DRAM is asked for those of the launch's bursts that are needed; if nearly all are, they take their part of the
    ``limit`` of all. Launch block and program are taken off by their part of all lines.
    """
    lines, spec = made.needed_lines(machine.config), MemorySpec.parse(machine.memory, predicted=True)
    if spec.model == IDEAL:
        return lines / spec.lines
    needed = needed_bursts(bursts, tables, machine.config)
    found, moved = int(needed["beats"].sum()), int(bursts["beats"].sum())
    if found < (1 - FEW) * moved:
        limit, moved = limit_of(needed, machine.memory).cycles, found
    return limit * lines / moved


def _shares(row: Row, made: MadeShape, machine: Machine, needed: float) -> Row:
    """The figures that need the memory's limits: ``needed`` cycles for the needed lines, and the row's for all."""
    cycles, limit, lanes = row["cycles"], row["limit_cycles"], row["lane_cycles"]
    pins = lines_per_cycle(machine.memory) * machine.config.bus_bytes
    return {
        "need_cycles": round(needed),
        "need_share": needed / cycles,
        "limit_share": limit / cycles,
        "bound": "lanes" if lanes > limit else "memory",
        "bound_share": max(limit, lanes) / cycles,
        "useful_share": made.useful_bytes / (cycles * pins),
        "useful_ceiling": made.useful_bytes / (needed * pins),
        "cycles_each": cycles / (made.shape.batch * len(made.shape.tables)),
    }


SUITE = Suite(
    NAME,
    "Shapes: need, limit, and the lesser of limit and lanes ÷ cycles; useful bytes and their ceiling",
    (
        column("shape", "workload"), column("memory", "memory"), column("cycles", "cycles", ",d"),
        column("need", "need_share", ".3f"), column("of limit", "limit_share", ".3f"),
        column("of bound", "bound_share", ".3f"), column("bound", "bound"), column("useful", "useful_share", ".3f"),
        column("ceiling", "useful_ceiling", ".3f"), column("of sum", "of_sum", ".3f"),
        column("main stall", "main_stall"), column("equal", "bit_exact"), column("goal", "outcome"),
    ),
    run,
)  # fmt: skip
