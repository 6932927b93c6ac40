"""The suite ``types``: bags and gathers of rows of each element type, beside PyTorch and FBGEMM on this computer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import torch

from daedal.bench.host import Host
from daedal.bench.limit import launch_bursts, limit_of, lines_of_tables, lines_per_cycle
from daedal.bench.report.table import column
from daedal.bench.suite import Machine, Order, Row, Say, Suite, at_most, machines_of, one_thread
from daedal.bench.workloads.runner import first_difference
from daedal.bench.workloads.typed import FLOAT8, FLOATS, INTEGERS, MODES, TYPES, Typed
from daedal.driver.device import Device
from daedal.errors import DaedalError
from daedal.hw.config.core import PRESETS, Config

NAME = "types"

MEMORIES = ("ideal", "litedram-ddr3-x16")
"""Those that are measured unless others are named."""

WIDTHS = (16, 32, 64, 128)
"""Elements of a row."""

QUICK: dict[str, Any] = {"rows": 64, "bags": 4, "pooling": 5}
"""What differs in quick runs."""

HOST: dict[str, Any] = {"rows": 1 << 19, "bags": 2048}
"""The same on this computer: a call of few bags is all start, and rows of small tables come out of caches."""

GOAL_DIM = 64
GOALS: dict[tuple[str, str], dict[str, tuple[float, float]]] = {
    ("ddr3", "bf16"): {"sum": (17, 17), "weighted": (17, 17), "mean": (19, 19)},
    ("ddr3", "fp16"): {"sum": (17, 17), "weighted": (17, 17), "mean": (19, 19)},
    ("ddr3", "int8"): {"sum": (34, 34), "weighted": (34, 34)},
    ("ddr3", "int4"): {"sum": (34, 34), "weighted": (34, 34)},
    ("narrow16", "bf16"): {"sum": (9.3, 9.8), "weighted": (9.3, 9.8), "mean": (10.5, 10.5)},
    ("narrow16", "fp16"): {"sum": (9.3, 9.8), "weighted": (9.3, 9.8), "mean": (10.5, 10.5)},
    ("narrow16", "int8"): {"sum": (6.5, 7.0), "weighted": (6.5, 7.0)},
    ("narrow16", "int4"): {"sum": (4.6, 5.0), "weighted": (4.6, 5.0)},
}
"""Most cycles of a row of ``GOAL_DIM`` elements, by preset and type: on the memory ``ideal``, and on a DRAM."""


def with_types(config: Config) -> Config:
    """A preset without converters with all that it can have, called after it; any other configuration as it is."""
    if PRESETS.get(config.name) != config or config.binary16 or config.bfloat16 or config.quantised:
        return config
    if config.lanes < 2 or not config.instructions:
        return config
    quantised = int(config.scalars > 0)
    return replace(config, name=f"{config.name}-types", binary16=1, bfloat16=1, quantised=quantised)


def operations(only: Sequence[str] = ()) -> list[Typed]:
    """Those that PyTorch or FBGEMM has of each type and width, or of these the ones whose names fit a pattern.

    ValueError for a pattern that fits none.
    """
    found = [
        Typed(kind, mode, dim) for kind in TYPES for dim in WIDTHS for mode in MODES if kind in FLOATS or mode != "mean"
    ]
    for pattern in only:
        if not any(fnmatchcase(typed.name, pattern) for typed in found):
            raise ValueError(f"a pattern must fit a name such as {found[0].name!r}, not {pattern!r}")
    return [typed for typed in found if not only or any(fnmatchcase(typed.name, each) for each in only)]


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each machine and operation; PyTorch is measured once for each operation."""
    host = Host() if order.host else None
    beside: dict[Typed, Row] = {}
    for machine in machines_of(order):
        machine = replace(machine, config=with_types(machine.config))
        for typed in operations(order.only):
            say(f"{NAME}: {typed.mode} of {typed.dim} {typed.type} on {machine.memory}")
            with one_thread():
                row = measure(replace(typed, **QUICK) if machine.quick else typed, machine)
            if host is not None and typed not in beside:
                beside[typed] = _on_host(host, replace(typed, **(QUICK if machine.quick else HOST)))
            yield row | beside.get(typed, {})


def measure(typed: Typed, machine: Machine) -> Row:
    """Run an operation once and compare it with PyTorch; ``verdict`` says of what a run failed.

    What the configuration cannot do is no failure: the row's ``note`` says why.
    """
    row: Row = {
        "workload": typed.name, **machine.facts(), "seed": machine.seed,
        "type": typed.type, "mode": typed.mode, "dim": typed.dim, "row_bytes": typed.row_bytes,
        "lookups": typed.lookups, "useful_bytes": typed.useful_bytes,
    }  # fmt: skip
    note = _why_not(typed, machine.config)
    if note:
        return {**row, "note": f"configuration {machine.config.name} has {note}", "verdict": ""}
    try:
        row |= _figures(typed, machine)
    except DaedalError as error:
        return {**row, "bit_exact": False, "verdict": f"{type(error).__name__}: {error}"}
    return row if machine.quick or typed.dim != GOAL_DIM else {**row, "outcome": _outcome(row, machine.config)}


def _why_not(typed: Typed, config: Config) -> str:
    """What a machine has instead of what this operation needs of it; empty if it has that."""
    if typed.mode == "gather" or typed.type == "fp32":
        return ""
    has = {"bf16": config.bfloat16, "fp16": config.binary16, FLOAT8: config.float8}
    if not has.get(typed.type, config.quantised):
        return "no converter"
    is_long = typed.type in INTEGERS and typed.dim > config.vl_max
    return f"registers of {config.vl_max} elements, shorter than a row" if is_long else ""


def _figures(typed: Typed, machine: Machine) -> Row:
    made = typed.make(machine.seed)
    with Device.open(machine.target, config=machine.config, memory=machine.memory) as device:
        target: Any = device.target
        executable = made.on(device)
        executable(*made.start)  # the first launch of a machine has a start of its own
        has_clock = hasattr(target, "record")
        if has_clock:
            target.record()
        result = executable(*made.inputs)
        stats = executable.stats
        bursts = launch_bursts(target.recorded(), stats, machine.config, device.records) if has_clock else None
        row_lines = None if bursts is None else lines_of_tables(bursts, device.tables.values(), machine.config)
    with torch.no_grad():
        difference = first_difference(result, made.module(*made.inputs))
    pins = lines_per_cycle(machine.memory) * machine.config.bus_bytes
    row: Row = {
        "rows": stats.rows, "lines_read": stats.lines_read, "lines_written": stats.lines_written,
        "launches": stats.launches, "cycles": stats.cycles or None, "main_stall": stats.main_stall,
        "row_lines": row_lines, "bit_exact": not difference, "verdict": _verdict(typed, machine, difference, row_lines),
    }  # fmt: skip
    if stats.cycles:
        row |= {
            "cycles_each": stats.cycles / typed.lookups,
            "useful_share": typed.useful_bytes / (stats.cycles * pins),
        }
    if bursts is not None:
        limit = limit_of(bursts, machine.memory).cycles
        row |= {"limit_cycles": limit, "limit_share": limit / stats.cycles}
    return row


def _verdict(typed: Typed, machine: Machine, difference: str, row_lines: int | None) -> str:
    """What is wrong with a run: other bits, or rows that are not as narrow in memory as their type."""
    wrong = [f"not PyTorch's: {difference}"] if difference else []
    lines = typed.lookups * typed.device_lines(machine.config.bus_bytes)
    if row_lines not in (None, lines):
        wrong.append(f"{row_lines} lines were read out of tables for rows of {lines}")
    return "; ".join(wrong)


def _on_host(host: Host, typed: Typed) -> Row:
    """Shares of this computer's triad that PyTorch and FBGEMM reach."""
    made = typed.make(1, is_even=True)
    ours, fused = made.in_torch(), made.in_fbgemm()
    if ours is not None:
        return host.beside(ours, fused, typed.useful_bytes).as_row()
    alone = {} if fused is None else host.beside(fused, None, typed.useful_bytes).as_row()
    return {**alone, "torch_share": None, "fbgemm_share": alone.get("torch_share")}


def _outcome(row: Row, config: Config) -> str:
    goals = GOALS.get((config.name.removesuffix("-types"), row["type"]), {})
    goal = goals.get(row["mode"])
    return at_most(row.get("cycles_each"), goal and goal[not row["memory"].startswith(MEMORIES[0])])


SUITE = Suite(
    NAME,
    "Types of elements: cycles a row, and shares of the triad of PyTorch and FBGEMM",
    (
        column("type", "type"), column("D", "dim", "d"), column("mode", "mode"), column("memory", "memory"),
        column("row bytes", "row_bytes", "d"), column("cycles a row", "cycles_each", ".2f"),
        column("of limit", "limit_share", ".3f"), column("useful", "useful_share", ".3f"),
        column("PyTorch", "torch_share", ".2f"), column("FBGEMM", "fbgemm_share", ".2f"),
        column("main stall", "main_stall"), column("equal", "bit_exact"), column("goal", "outcome"),
        column("note", "note"),
    ),
    run,
)  # fmt: skip
