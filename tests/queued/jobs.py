"""What is launched: layers, and copies of which each reads what the one before wrote; all know what must come of it."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

import daedal
from daedal.driver.launch.launch import Launch
from daedal.driver.memory.regions import Region
from tests.compiler.layers.compiler_support import random_bags, same_bits, wild_table
from tests.driver.test_driver_targets import copy_program

WIDTHS = (1, 4, 16, 40, 64, 256, 600)
"""Rows from one element to some that cross a page of any DRAM."""

COUNTED = ("rows", "lookups", "bytes_written")
ROWS, COPIES = 12, 4
"""Of a chain of copies."""


class Future(Protocol):
    """What both kinds of ``submit`` give."""

    def done(self) -> bool:
        """Whether it has ended."""
        ...


class Flying(NamedTuple):
    """A launch that was submitted: its future, and what raises AssertionError if not all of it is as it must be."""

    future: Future
    check: Callable[[], None]


class Layer:
    """A bag or a gather, compiled for ``machine``: PyTorch says what it gives, ``emulator`` what it counts."""

    def __init__(self, machine: daedal.Device, emulator: daedal.Device, rng: np.random.Generator) -> None:
        width, rows = int(rng.choice(WIDTHS)), int(rng.integers(2, 400))
        most, table = max(1, 200 // width), wild_table(rows, width, rng)
        if rng.random() < 0.3:
            module: nn.Module = nn.Embedding.from_pretrained(table)
            self._inputs: tuple[torch.Tensor, ...] = (
                torch.from_numpy(rng.integers(0, rows, rng.integers(1, 2 * most + 1))),
            )
        else:
            mode = str(rng.choice(["sum", "mean", "max"]))
            module = nn.EmbeddingBag.from_pretrained(table, mode=mode, include_last_offset=True)
            bags = int(rng.integers(0, most + 1))
            self._inputs = random_bags(rows, bags, rng, types=(torch.int64, torch.int64))
        self._expected = module(*self._inputs)
        self._executable = daedal.compile(module, self._inputs, device=machine)
        alone = daedal.compile(module, self._inputs, device=emulator)
        assert same_bits(alone(*self._inputs), self._expected)
        self._counts = [alone.stats[name] for name in COUNTED]

    def submit(self) -> list[Flying]:
        """Queue it once more."""
        future = self._executable.submit(*self._inputs)

        def check() -> None:
            assert same_bits(future.result(), self._expected)
            assert [future.stats[name] for name in COUNTED] == self._counts

        return [Flying(future, check)]


class Chain:
    """Random rows that are copied from place to place: each launch reads what the one before it writes."""

    def __init__(self, machine: daedal.Device, rng: np.random.Generator) -> None:
        self._machine, self._rng = machine, rng
        self._program = machine.load_program(copy_program(machine.config))

    def submit(self) -> list[Flying]:
        """Queue the copies of new rows."""
        rows = self._rng.integers(0, 1 << 32, (ROWS, int(self._rng.choice([16, 64, 272]))), np.uint32)
        arena, pitch = self._machine.arena(), rows.nbytes // ROWS
        places = [Region(arena.upload(rows), rows.nbytes)]
        places += [Region(arena.reserve(rows.nbytes), rows.nbytes) for _ in range(COPIES)]
        launches = [
            self._machine.submit(
                self._program, [origin.address, target.address, ROWS, pitch, pitch], reads=[origin], writes=[target]
            )
            for origin, target in pairwise(places)
        ]

        def check(launch: Launch, place: Region) -> None:
            try:
                assert launch.result().stats.rows == ROWS
                assert np.array_equal(arena.download(place.address, rows.shape, np.uint32), rows)
            finally:
                if launch is launches[-1]:
                    arena.release()

        return [
            Flying(launch, partial(check, launch, place)) for launch, place in zip(launches, places[1:], strict=True)
        ]
