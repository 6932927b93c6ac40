"""Launches of compiled programs as they stand in memory before their doorbell is rung, to be run with changes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

import daedal
from daedal import f32, i64
from daedal.cosim.emulator import EmulatorTarget
from daedal.driver.device import Device
from daedal.driver.launch.record import RECORD_BYTES
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import BLOCK_REGION, STORE_GRANULE, LaunchFlags, LaunchWord, StoreWindow, launch_block_words
from daedal.hw.isa.program import WORD_BYTES, Program, unpack
from daedal.hw.isa.registers import Register
from tests.fuzz.programs.case import split

MEMORY_BYTES = 1 << 20
ROWS, COUNT, BAGS = 50, 24, 6

B, D, N, P, M = daedal.dims("B D N P M")


@daedal.kernel
def scattered(out: f32[B, D], table: f32[N, D], idx: i64[P], place: i64[P]):
    for p in range(len(idx)):
        for d in range(D):
            out[place[p], d] = table[idx[p], d]


@daedal.kernel
def two_nests(out: f32[B, D], total: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[M]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]
    for b in range(B):
        for d in range(D):
            total[b, d] = table[b, d]


@dataclass(frozen=True)
class Snapshot:
    """All of memory before a launch, and what its launch block says. ``after`` is memory after it."""

    name: str
    memory: bytes
    after: bytes
    block: int
    program: int
    words: int
    first: int
    end: int
    """The store window, bytes."""
    record: int

    def outside(self, memory: bytes) -> tuple[bytes, ...]:
        """All bytes that the launch may not change."""
        cuts = sorted([(self.first, self.end), (self.record, self.record + RECORD_BYTES)])
        (a, b), (c, d) = cuts
        return memory[:a], memory[b:c], memory[d:]

    def with_flips(self, *bits: int) -> bytes:
        """Memory with these bits of the program inverted."""
        changed = bytearray(self.memory)
        for bit in bits:
            changed[self.program + bit // 8] ^= 1 << bit % 8
        return bytes(changed)


class Watched(EmulatorTarget):
    """Keeps memory and launch block of the last doorbell."""

    rung: tuple[int, bytes] | None = None

    def csr_write(self, address: int, value: int) -> None:
        if address == Register.DOORBELL.value:
            block = self.csr_read(Register.LAUNCH_LOW.value) | self.csr_read(Register.LAUNCH_HIGH.value) << 32
            self.rung = block, self.mem_read(0, self.memory_bytes)
        super().csr_write(address, value)


def snapshots(config: Config) -> Iterator[Snapshot]:
    """Of each program that can be compiled for the machine two: one that follows its launch block, if it is short
    enough for that, and one by its address.
    """
    for name, job in _jobs(config).items():
        target = Watched(config, MEMORY_BYTES)
        with Device(target, config) as device:
            try:
                job(device)
            except UnsupportedOperation:
                continue
            taken = _taken(name, target)
        if taken.program > taken.block and taken.program < taken.block + BLOCK_REGION:
            yield taken
        yield _by_address(taken)


def _jobs(config: Config) -> dict[str, Callable[[Device], object]]:
    rng, generator = np.random.default_rng(7), torch.Generator().manual_seed(7)
    table = torch.randn(ROWS, 20, generator=generator)
    indices = torch.randint(ROWS, (COUNT,), generator=generator)
    offsets, weights = torch.arange(0, COUNT, COUNT // BAGS), torch.rand(COUNT, generator=generator)

    def module(kind: torch.nn.Module, *inputs: torch.Tensor) -> Callable[[Device], object]:
        return lambda device: daedal.compile(kind, inputs, device=device)(*inputs)

    def bag(mode: str, width: int = 20) -> torch.nn.Module:
        made = torch.nn.EmbeddingBag(ROWS, width, mode=mode)
        torch.nn.init.normal_(made.weight, generator=generator)
        return made

    numbers = table.numpy()
    places, starts = rng.permutation(COUNT), np.arange(0, COUNT + 1, COUNT // BAGS)
    copied = (np.zeros((COUNT, 20), np.float32), numbers, indices.numpy(), places)
    both = (*(np.zeros((BAGS, 20), np.float32) for _ in range(2)), numbers, indices.numpy(), starts)
    return {
        "sum": module(bag("sum"), indices, offsets),
        "mean": module(bag("mean"), indices, offsets),
        "weighted": lambda device: daedal.compile(bag("sum"), (indices, offsets, weights), device=device)(
            indices, offsets, weights
        ),
        "tiles": module(bag("sum", config.vl_max + 4), indices[:5], offsets[:2]),
        "gather": module(torch.nn.Embedding(ROWS, 20, _weight=table), indices),
        "scatter": lambda device: daedal.compile(scattered, copied, device=device)(*copied),
        "two nests": lambda device: daedal.compile(two_nests, both, device=device)(*both),
    }


def _taken(name: str, target: Watched) -> Snapshot:
    assert target.rung is not None
    block, memory = target.rung
    said = split(memory[block : block + WORD_BYTES * launch_block_words(0)])
    flags = unpack(LaunchFlags, said[LaunchWord.FLAGS.value])
    window = unpack(StoreWindow, said[LaunchWord.WINDOW.value])
    program, words = said[LaunchWord.PROGRAM.value], flags["last_word"] + 1
    if flags["last_word"]:
        program = block + WORD_BYTES * launch_block_words(flags["last_argument"] + 1)
    else:
        words = _length(memory[program:])
    after, record = target.mem_read(0, MEMORY_BYTES), said[LaunchWord.RECORD.value]
    first, end = STORE_GRANULE * window["first"], STORE_GRANULE * (window["last"] + 1)
    return Snapshot(name, memory, after, block, program, words, first, end, record)


def _length(raw: bytes) -> int:
    """The words of the program at the start of these bytes."""
    words = int.from_bytes(raw[WORD_BYTES : WORD_BYTES + 4], "little")
    Program.from_bytes(raw[: WORD_BYTES * words])
    return words


def _by_address(taken: Snapshot) -> Snapshot:
    """The same launch with all arguments in its block, and the program where PROGRAM says."""
    at = taken.block + WORD_BYTES * LaunchWord.FLAGS.value
    program = int.from_bytes(taken.memory[taken.block : taken.block + WORD_BYTES], "little")
    flags = bytes(WORD_BYTES)
    memory, after = (raw[:at] + flags + raw[at + WORD_BYTES :] for raw in (taken.memory, taken.after))
    return replace(taken, name=f"{taken.name} by address", memory=memory, after=after, program=program)
