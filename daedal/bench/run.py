"""One workload on one simulated machine: run, compared with PyTorch, its figures as a row."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from daedal.bench.limit import launch_bursts, limit_of, lines_of_tables, lines_per_cycle
from daedal.bench.suite import Row
from daedal.bench.workloads.measured import Model, Task
from daedal.bench.workloads.runner import first_difference
from daedal.cosim.harness_library import BURST
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.errors import DaedalError
from daedal.hw.config.core import Config

FILLER = "filler"
"""The table that stands in front of the others."""

OF_REFERENCE = {"PyTorch": "PyTorch's", "specification": "the specification's"}
"""What a result is compared with, in words."""

PLACES = 64
"""Superblocks by which placements move the tables, at most."""


@dataclass(frozen=True)
class Setting:
    """What to measure on.

    Attributes
    ----------
    config, memory
        The machine, and the memory model behind it with its options.
    placement
        Where tables are, and which of their rows are hot: 0 is from the bottom of an empty memory.
    seed
        Start of all random data of placement 0; the others have their own.
    data
        Folder with real data, or None.
    quick
        Small workloads: they show that everything runs, their figures mean nothing.
    target
        What it runs on: ``verilator``, or ``model``, which knows no limits.
    """

    config: Config
    memory: str = "ideal"
    placement: int = 0
    seed: int = 1
    data: Path | None = None
    quick: bool = False
    target: str = "verilator"

    def make(self, workload: Model, distribution: str) -> Task:
        """The workload's module and inputs."""
        chosen = workload.smaller() if self.quick else workload
        return chosen.make(distribution, self.seed + 1000 * self.placement, self.config, self.data)


@dataclass
class Run:
    """What came of a run: its row, the workload's data, the program's text, the bursts of its launches, and the
    cycles of the simulation in which it began and ended.
    """

    row: Row
    made: Task
    asm: str = ""
    bursts: NDArray[np.void] = field(default_factory=lambda: np.empty(0, BURST))
    first_cycle: int = 0
    last_cycle: int = 0


def measure(
    workload: Model,
    distribution: str,
    setting: Setting,
    *,
    wave: str | None = None,
) -> Run:
    """Run a workload once, and find the limit of the lines that it moved.

    A run that fails gives a row too, whose ``verdict`` says of what.
    """
    row: Row = {
        "workload": workload.name, "distribution": distribution, "config": setting.config.name,
        "memory": setting.memory, "placement": setting.placement, "seed": setting.seed, "dim": workload.dim,
        "tables": len(workload.tables), "mode": workload.mode,
    }  # fmt: skip
    made = setting.make(workload, distribution)
    row |= {"data": made.origin, "lookups": made.lookups, "bags": made.bags, "equal_to": made.reference}
    run = Run(row, made)
    try:
        if setting.target == "verilator":
            _on_a_device(run, setting, wave)
            _add_limit(run, setting)
        else:
            _predicted(run, setting)
    except DaedalError as error:
        row |= {"bit_exact": False, "verdict": f"{type(error).__name__}: {error}"}
    return run


SWEEP = 2
"""Cycles for each line of a vector queue that a machine has after its reset before a launch that counts: at first it
sweeps its memories, a word a cycle, and fetches no rows until that is done. Hosts take longer to write their tables.
"""


def _add_limit(run: Run, setting: Setting) -> None:
    found = limit_of(run.bursts, setting.memory)
    run.row |= {
        "limit_cycles": found.cycles,
        "limit_in_order_cycles": found.in_order,
        "limit_in_order_share": found.in_order / run.row["cycles"],
        "limit_share": found.cycles / run.row["cycles"],
        "window": found.window,
    }


def _on_a_device(run: Run, setting: Setting, wave: str | None) -> None:
    made, config = run.made, setting.config
    with Device.open("verilator", config=config, memory=setting.memory, wave=wave) as device:
        target: Any = device.target
        filler = _shift(device, setting)
        executable, call = made.compile(device)
        target.step(SWEEP * config.vector_beats)
        start = target.cycles, target.seconds
        target.record()
        result = call()
        bursts, stats, records = target.recorded(), executable.stats, device.records
        run.first_cycle, run.last_cycle = start[0], target.cycles
        seconds = target.seconds - start[1]
        speed = (target.cycles - start[0]) / seconds / 1000 if seconds else None
        tables = [table for name, table in device.tables.items() if name != FILLER]
        del filler
        run.asm = executable.asm()
    with torch.no_grad():
        difference = first_difference(result, made.expected())
    run.bursts = launch_bursts(bursts, stats, config, records)
    run.row |= figures(made, stats, setting) | {"sim_kcycles_per_s": speed and round(speed, 1)}
    run.row |= {"row_lines": lines_of_tables(run.bursts, tables, config), "bit_exact": not difference}
    run.row["verdict"] = verdict(run.row, made, difference, config)


def _predicted(run: Run, setting: Setting) -> None:
    made = run.made
    with Device.open(setting.target, config=setting.config, memory=setting.memory) as device:
        filler = _shift(device, setting)
        executable, call = made.compile(device)
        start = time.perf_counter()
        result = call()
        seconds, stats = time.perf_counter() - start, executable.stats
        del filler
        run.asm = executable.asm()
    with torch.no_grad():
        difference = first_difference(result, made.expected())
    run.row |= figures(made, stats, setting) | {"sim_kcycles_per_s": round(stats.cycles / seconds / 1000, 1)}
    run.row |= {"target": setting.target, "predicted": stats.predicted, "checked": stats.checked}
    run.row |= {"bit_exact": not difference, "verdict": verdict(run.row, made, difference, setting.config)}


def _shift(device: Device, setting: Setting) -> object:
    """Fill memory up to where the placement has its tables; the filler lasts as long as what is returned."""
    if not setting.placement:
        return None
    places = int(np.random.default_rng(setting.placement).integers(1, PLACES))
    size = setting.config.superblock_bytes
    filler = np.zeros((places, size // 4), np.float32)
    return filler, device.bind_table(FILLER, filler.reshape(-1, 16))


def figures(made: Task, stats: Stats, setting: Setting) -> Row:
    """Counts and shares of one launch, or of several together."""
    lines, per_cycle = stats.lines_read + stats.lines_written, lines_per_cycle(setting.memory)
    most = stats.cycles * per_cycle
    lane_cycles = made.lane_cycles(setting.config)
    return {
        "cycles": stats.cycles,
        "lane_cycles": lane_cycles,
        "limit_cycles": None,
        "limit_share": None,
        "lane_share": lane_cycles / stats.cycles if lane_cycles and stats.cycles else None,
        "line_share": lines / most,
        "row_share": made.row_bytes / (most * setting.config.bus_bytes),
        "useful_share": made.useful_bytes / (most * setting.config.bus_bytes),
        "rows": stats.rows,
        "lines_read": stats.lines_read,
        "lines_written": stats.lines_written,
        "lines_needed": made.lines(setting.config.bus_bytes),
        "launches": stats.launches,
        "flops": made.flops,
        "useful_bytes": made.useful_bytes,
        "stalls": {cause: count for cause, count in stats.stalls.items() if count},
        "main_stall": stats.main_stall,
    }


def verdict(row: Row, made: Task, difference: str, config: Config) -> str:
    """What is wrong with a run, or an empty text.

    Every index must have read its row out of memory: at once, or in as many parts as the execute unit needs for it. A
    preset for lists of tables must have done all in one launch; other machines may need one for each table.
    """
    wrong = [f"not {OF_REFERENCE[made.reference]}: {difference}"] if difference else []
    fetches, lines = made.fetched(config)
    if row["rows"] != fetches:
        parts = fetches // made.lookups
        times = f" of {parts} parts" if parts > 1 else ""
        wrong.append(f"{row['rows']} rows were read for {made.lookups} indices{times}")
    if row.get("row_lines", lines) != lines:
        wrong.append(f"{row['row_lines']} lines were read out of tables for rows of {lines} lines")
    launches = made.launches(config)
    if not 1 <= row["launches"] <= launches:
        wrong.append(f"{row['launches']} launches instead of {launches}")
    return "; ".join(wrong)
