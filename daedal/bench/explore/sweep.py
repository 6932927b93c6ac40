"""The sweep: a row for each configuration, memory and number of tiles, predicted by the target ``model``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from daedal.bench.explore.energy import energy
from daedal.bench.explore.limits import limits_of, limits_of_tiles
from daedal.bench.explore.machines import DEFAULT_MEMORIES, clock_of, fitting, size_of
from daedal.bench.explore.subject import Subject, Work, room_for, work_of
from daedal.bench.suite import Row, Say, one_thread
from daedal.compiler.api import compile
from daedal.compiler.planning import plan
from daedal.cosim.clock.parameters import Memory
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.errors import DaedalError
from daedal.hw.config.core import Config
from daedal.system.default_plan import EXTRA_BYTES
from daedal.system.planner import Planner
from daedal.system.system import System

QUEUED = 5
"""Calls behind each other, of which the one in the middle counts: it begins while the one before it ends, and gives way
to the next one. The first of a queue has a start of its own, and the last one nothing behind it.
"""


@dataclass(frozen=True)
class Sweep:
    """What is tried: each memory with the configurations that are for it, and tiles. No memory: those that there are a
    configuration for; no configuration: all presets. ``extra_bytes``: as of ``daedal.plan``.
    """

    subject: Subject
    memories: tuple[str, ...]
    configs: tuple[Config, ...]
    tiles: tuple[int, ...]
    extra_bytes: float = EXTRA_BYTES

    def machines(self) -> list[tuple[Config, Memory, str]]:
        """Configuration, memory as the model has it, and as it was named. ValueError for what does not fit."""
        if self.memories:
            return [(config, found, text) for text in self.memories for config, found in fitting(text, self.configs)]
        found = [(config, known, text) for text in DEFAULT_MEMORIES for config, known in _fitting(text, self.configs)]
        if not found:
            named = ", ".join(config.name for config in self.configs)
            raise ValueError(f"memory must be given for {named}: none of {', '.join(DEFAULT_MEMORIES)} is for it")
        return found

    def work(self) -> Work:
        """What a call asks for, whatever the machine. Raises DaedalError if the subject is not for the device."""
        config = self.machines()[0][0]
        with torch.no_grad():
            return work_of(*self.subject.made(config), config)

    def run(self, say: Say) -> Iterator[Row]:
        """The rows; one that has no figures says why in ``note``. Raises DaedalError if the subject is not for it."""
        with one_thread(), torch.no_grad():
            for config, memory, text in self.machines():
                module, inputs = self.subject.made(config)
                work = work_of(module, inputs, config)
                start = start_of(config, text)
                for tiles in self.tiles:
                    say(f"{self.subject.name}: {config.name}, {text}, {tiles} {'tiles' if tiles > 1 else 'tile'}")
                    point = Point(config, text, memory, tiles, start, self.extra_bytes)
                    yield point.row(module, inputs, work)


@dataclass(frozen=True)
class Point:
    """A machine of the sweep; ``start``: cycles of a launch that does nothing on one tile of it; ``extra_bytes``: as of
    ``daedal.plan``.
    """

    config: Config
    memory: str
    known: Memory
    tiles: int
    start: float
    extra_bytes: float = EXTRA_BYTES

    def row(self, module: Any, inputs: tuple[Any, ...], work: Work) -> Row:
        """What calls of a module do on it, queued behind each other."""
        size, clock = size_of(self.config), clock_of(self.known)
        row: Row = {
            "config": self.config.name, "hash": f"{self.config.hash:#010x}", "memory": self.memory,
            "tiles": self.tiles, "clock_mhz": clock / 1e6, "lookups": work.lookups, "tables": work.tables,
            "lut": int(size["lut"]) * self.tiles if size else None, "core": size or None, "note": "",
        }  # fmt: skip
        if not work.lookups:
            return {**row, "note": "a call looks up no row: give inputs that do"}
        try:
            called = self._run(module, inputs, work)
        except DaedalError as error:
            return {**row, "note": f"{type(error).__name__}: {' '.join(str(error).split())}"}
        each, done = called.tiles, sum(work.operations[name] for name in called.operations)
        longest = int(np.argmax([stats.cycles for stats in each]))
        cycles = each[longest].cycles
        if not cycles:
            return {**row, "note": "no operation runs on this machine: explain() of the compiled module says why"}
        alone_on_it = limits_of(each[longest], called.opened[longest], self.start, self.known)
        found = limits_of_tiles(alone_on_it, [stats.cycles for stats in each])
        moved = sum(stats.lines_read + stats.lines_written for stats in each)
        spent = energy(self.memory, moved * self.config.bus_bytes, round(work.elements * done / work.lookups))
        others = len(work.operations) - len(called.operations)
        rest = f"; {others} of {len(work.operations)} operations are PyTorch's here, and not counted" if others else ""
        return {
            **row,
            "cycles": cycles,
            "cycles_alone": called.alone,
            "call_us": called.alone / clock * 1e6,
            "lookups": done,
            "lookups_per_s": done * clock / cycles,
            "share": self._share(moved, cycles),
            "bytes_per_s": moved * self.config.bus_bytes * clock / cycles,
            "limit": found.limit,
            "why": found.why + rest,
            "shares": dict(found.shares),
            "stalls": {cause: count for cause, count in each[longest].stalls.items() if count},
            "launches": sum(stats.launches for stats in each),
            "lines": moved,
            "tile_bytes": called.tile_bytes,
            "nj_least": spent and spent.least / done,
            "nj_most": spent and spent.most / done,
            "nj_dram_least": spent and spent.dram_least / done,
            "nj_dram_most": spent and spent.dram_most / done,
            "checked": each[longest].checked,
        }

    def _share(self, lines: int, cycles: int) -> float:
        """Of the lines that all channels' pins could move in these cycles, refresh taken off, those that they did."""
        most = self.tiles * cycles * (1 - self.known.refresh_share) / self.known.line_cycles
        return lines / most

    def _run(self, module: Any, inputs: tuple[Any, ...], work: Work) -> "_Called":
        """Tables have places only: no figure depends on what is in them. OutOfDeviceMemory if they do not fit."""
        room = room_for(module, self.config)
        if self.tiles == 1:
            Planner(work.demands, self.config, self.memory, 1, room, 0.0).plan()
            with Device.open("model", self.config, self.memory, memory_bytes=room, table_check="shapes") as device:
                return _call(compile(module, inputs, device=device), inputs, (device,))
        with System.open(
            "model", self.config, self.memory, tiles=self.tiles, memory_bytes=room, table_check="shapes"
        ) as system:
            shared = plan(module, system, sample=inputs, extra_bytes=self.extra_bytes)
            return _call(compile(module, inputs, device=system, plan=shared), inputs, system.tiles)


def _fitting(memory: str, configs: Sequence[Config]) -> list[tuple[Config, Memory]]:
    """As :func:`fitting`, but none if none is for it."""
    try:
        return fitting(memory, configs)
    except ValueError:
        return []


@dataclass(frozen=True)
class _Called:
    """Figures of calls.

    Attributes
    ----------
    tiles
        Of one in the middle of a queue, by tile.
    opened
        Rows of the DRAM that each tile opened in it.
    alone
        Cycles of one alone.
    tile_bytes
        Bytes of tables on the fullest tile.
    operations
        Those that run on the machine, by name.
    """

    tiles: Sequence[Stats]
    opened: Sequence[float]
    alone: int
    tile_bytes: int
    operations: Sequence[str]


def _call(executable: Any, inputs: tuple[Any, ...], tiles: Sequence[Device]) -> _Called:
    executable(*inputs)
    alone = executable.stats.cycles
    targets: list[Any] = [tile.target for tile in tiles]
    before = [target.activations for target in targets]
    futures = [executable.submit(*inputs) for _ in range(QUEUED)]
    for future in futures:
        future.result()
    opened = [(target.activations - old) / QUEUED for target, old in zip(targets, before, strict=True)]
    held = [sum(table.rows * table.pitch for table in tile.tables.values()) for tile in tiles]
    middle = futures[QUEUED // 2].stats
    return _Called(getattr(middle, "per_tile", (middle,)), opened, alone, max(held), executable.offloaded)


def start_of(config: Config, memory: str) -> float:
    """Cycles of a launch that sums one row, or copies it where nothing is summed, behind others."""
    width = max(1, config.bus_bytes // 4)
    module: nn.Module = nn.Embedding(16, width)
    inputs: tuple[torch.Tensor, ...] = (torch.tensor([3]),)
    if config.executes:
        module = nn.EmbeddingBag(16, width, mode="sum", include_last_offset=True)
        inputs = (*inputs, torch.tensor([0, 1]))
    with Device.open("model", config, memory) as device:
        return float(_call(compile(module, inputs, device=device), inputs, (device,)).tiles[0].cycles)
