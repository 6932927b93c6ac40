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
            each, activations, alone = self._run(module, inputs)
        except DaedalError as error:
            return {**row, "note": f"{type(error).__name__}: {' '.join(str(error).split())}"}
        longest = int(np.argmax([stats.cycles for stats in each]))
        cycles = each[longest].cycles
        if not cycles:
            return {**row, "note": "no operation runs on this machine: explain() of the compiled module says why"}
        alone_on_it = limits_of(each[longest], activations[longest], self.start, self.known)
        found = limits_of_tiles(alone_on_it, [stats.cycles for stats in each])
        moved = sum(stats.lines_read + stats.lines_written for stats in each)
        spent = energy(self.memory, moved * self.config.bus_bytes, work.elements)
        return {
            **row,
            "cycles": cycles,
            "cycles_alone": alone,
            "call_us": alone / clock * 1e6,
            "lookups_per_s": work.lookups * clock / cycles,
            "share": self._share(moved, cycles),
            "bytes_per_s": moved * self.config.bus_bytes * clock / cycles,
            "limit": found.limit,
            "why": found.why,
            "shares": dict(found.shares),
            "stalls": {cause: count for cause, count in each[longest].stalls.items() if count},
            "launches": sum(stats.launches for stats in each),
            "lines": moved,
            "nj_least": spent and spent.least / work.lookups,
            "nj_most": spent and spent.most / work.lookups,
            "nj_dram_least": spent and spent.dram_least / work.lookups,
            "nj_dram_most": spent and spent.dram_most / work.lookups,
            "checked": each[longest].checked,
        }

    def _share(self, lines: int, cycles: int) -> float:
        """Of the lines that all channels' pins could move in these cycles, refresh taken off, those that they did."""
        most = self.tiles * cycles * (1 - self.known.refresh_share) / self.known.line_cycles
        return lines / most

    def _run(self, module: Any, inputs: tuple[Any, ...]) -> tuple[Sequence[Stats], Sequence[float], int]:
        """Figures of a call in the middle of a queue by tile, rows that it opened by tile, cycles of one alone."""
        room = room_for(module)
        if self.tiles == 1:
            with Device.open("model", self.config, self.memory, memory_bytes=room, table_check="versions") as device:
                found = _call(compile(module, inputs, device=device), inputs, (device,))
                return [found.middle], found.opened, found.alone
        with System.open(
            "model", self.config, self.memory, tiles=self.tiles, memory_bytes=room, table_check="versions"
        ) as system:
            shared = plan(module, system, sample=inputs, extra_bytes=self.extra_bytes)
            found = _call(compile(module, inputs, device=system, plan=shared), inputs, system.tiles)
            return found.middle.per_tile, found.opened, found.alone


def _fitting(memory: str, configs: Sequence[Config]) -> list[tuple[Config, Memory]]:
    """As :func:`fitting`, but none if none is for it."""
    try:
        return fitting(memory, configs)
    except ValueError:
        return []


@dataclass(frozen=True)
class _Called:
    """Figures of calls: of one in the middle of a queue, rows that each tile opened in it, and cycles of one alone."""

    middle: Any
    opened: list[float]
    alone: int


def _call(executable: Any, inputs: tuple[Any, ...], tiles: Sequence[Device]) -> _Called:
    executable(*inputs)
    alone = executable.stats.cycles
    targets: list[Any] = [tile.target for tile in tiles]
    before = [target.activations for target in targets]
    futures = [executable.submit(*inputs) for _ in range(QUEUED)]
    for future in futures:
        future.result()
    opened = [(target.activations - old) / QUEUED for target, old in zip(targets, before, strict=True)]
    return _Called(futures[QUEUED // 2].stats, opened, alone)


def start_of(config: Config, memory: str) -> float:
    """Cycles of a launch that sums one row, behind others."""
    module = nn.EmbeddingBag(16, max(1, config.bus_bytes // 4), mode="sum", include_last_offset=True)
    inputs = torch.tensor([3]), torch.tensor([0, 1])
    with Device.open("model", config, memory) as device:
        return float(_call(compile(module, inputs, device=device), inputs, (device,)).middle.cycles)
