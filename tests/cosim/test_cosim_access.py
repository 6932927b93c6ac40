"""Register accesses during traffic: machine and memory do the same with and without, cycle for cycle."""

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from daedal.cosim.harness_library import DramCounts, Harness, Traffic
from daedal.cosim.litedram.memories import MEMORIES
from daedal.cosim.litedram.model import build_dram
from daedal.cosim.memory_spec import MemorySpec
from daedal.cosim.waveform.samples import sample
from daedal.hw.isa.launch import LaunchWord
from daedal.hw.isa.registers import IDENTITY, Register
from tests.cosim.copier import BLOCK, CONFIG, FLOOD_CYCLES, LINES, RECORD, SOURCE, TARGET, Mistake, library

__all__ = ["library"]

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

MEMORY_BYTES = 1 << 20
DRAM = "litedram-ddr3-x16"
MODELS = ["ideal:latency=5", "ideal:latency=3,lines=0.5,stall=0.3,seed=4", DRAM, f"{DRAM}:stall=0.3,seed=5"]
COPIED, END = 4000, 4000 + FLOOD_CYCLES + 1000
"""Cycles at which a copy is over with any of these, and a flood of reads behind it."""

MARGIN = 50
"""Cycles before an end in which there are no accesses, of which each takes fewer."""

PINS = (
    *(
        f"copier.read{port}__{pin}"
        for port in range(CONFIG.ports)
        for pin in ("arvalid", "arready", "araddr", "rvalid", "rready", "rdata", "rlast")
    ),
    *(
        f"copier.write__{pin}"
        for pin in ("awvalid", "awready", "awaddr", "wvalid", "wready", "wdata", "wlast", "bvalid", "bready")
    ),
)

Access = Callable[[Harness], None]
Start = Callable[[str], Harness]


class Seen(NamedTuple):
    """What a copy and a flood did: the bytes copied, counts of both, all bursts asked for, and what memory did."""

    copied: bytes
    counts: tuple[dict[str, int] | None, ...]
    bursts: bytes
    traffic: Traffic
    dram: DramCounts | None


@pytest.fixture
def start(library: Path) -> Iterator[Start]:
    opened = []

    def make(spec: str) -> Harness:
        parsed = MemorySpec.parse(spec)
        dram = None if parsed.dram is None else build_dram(MEMORIES[DRAM], CONFIG.ports)
        harness = Harness(library, MEMORY_BYTES, parsed, dram)
        opened.append(harness)
        return harness

    yield make
    for harness in opened:
        harness.close()


def read(harness: Harness) -> None:
    assert harness.read_register(Register.IDENTITY.value) == IDENTITY


def write_and_read(harness: Harness) -> None:
    """LAUNCH_HIGH means nothing between two doorbells."""
    harness.write_register(Register.LAUNCH_HIGH.value, 0x5A)
    assert harness.read_register(Register.LAUNCH_HIGH.value) == 0x5A


def clear(harness: Harness) -> None:
    harness.write_register(Register.INTERRUPT.value, 1)


def stop_the_clock(harness: Harness) -> None:
    """No access, but the clock goes on only when it is told to."""


def ring(harness: Harness, mistake: Mistake) -> None:
    """Ring the doorbell, without an interrupt: the clock goes on for as long as it is told to."""
    block = BLOCK | mistake.value
    harness.write(block + 8 * LaunchWord.RECORD.value, (BLOCK + RECORD).to_bytes(8, "little"))
    for register, value in ((Register.LAUNCH_LOW, block), (Register.LAUNCH_HIGH, 0), (Register.DOORBELL, 1)):
        harness.write_register(register.value, value)


def run_until(harness: Harness, end: int, gaps: Iterator[int], access: Access) -> None:
    """Run to this cycle, with an ``access`` whenever so many cycles are over; with 0, one right behind the other."""
    while (rest := end - MARGIN - harness.cycle) > 0:
        harness.run(min(next(gaps), rest), 60)
        access(harness)
    harness.run(end - harness.cycle, 60)
    assert harness.cycle == end


def watch(harness: Harness, data: bytes, gaps: list[int], access: Access) -> Seen:
    """A copy of ``data``, then a flood of reads, with accesses meanwhile."""
    harness.write(BLOCK + SOURCE, data)
    harness.record(True)
    counts, endless = [], cycle(gaps)
    for mistake, end in ((Mistake.NONE, COPIED), (Mistake.FLOOD, END)):
        ring(harness, mistake)
        run_until(harness, end, endless, access)
        counts.append(harness.counts(BLOCK + RECORD))
    copied = bytes(harness.memory[BLOCK + TARGET : BLOCK + TARGET + len(data)])
    return Seen(copied, tuple(counts), harness.recorded().tobytes(), harness.traffic(), harness.dram_counts())


@pytest.fixture
def data(rng: np.random.Generator) -> bytes:
    return rng.bytes(LINES * CONFIG.bus_bytes)


@pytest.mark.parametrize("access", [read, write_and_read, clear, stop_the_clock])
@pytest.mark.parametrize("model", MODELS)
def test_nothing_else_changes(start: Start, rng: np.random.Generator, data: bytes, model: str, access: Access) -> None:
    undisturbed = watch(start(model), data, [END], stop_the_clock)
    copied, flooded = undisturbed.counts
    assert copied and copied["LINES_WRITTEN"] == LINES and flooded and flooded["LINES_READ"] > FLOOD_CYCLES // 3
    for gaps in ([1], [2], [3], [0, 1], [0, 0, 4], [9], rng.integers(1, 12, 1000).tolist()):
        assert watch(start(model), data, gaps, access) == undisturbed, gaps
    if access is not stop_the_clock:
        assert watch(start(model), data, [0], access) == undisturbed


@pytest.mark.parametrize("model", MODELS)
def test_an_access_in_any_one_cycle(start: Start, data: bytes, model: str) -> None:
    """Of the first lines of a copy, a single access each."""
    undisturbed = watch(start(model), data, [END], stop_the_clock)
    for place in range(0, 60):
        harness = start(model)
        assert watch(harness, data, [place, END], read) == undisturbed, place
        harness.close()


@pytest.mark.parametrize("model", [MODELS[0], DRAM])
def test_pins_in_a_waveform(start: Start, data: bytes, tmp_path: Path, model: str) -> None:
    seen = []
    for number, (gaps, access) in enumerate([([END], stop_the_clock), ([0, 1, 5], read), ([3], clear)]):
        harness, path = start(model), tmp_path / f"{number}.vcd"
        harness.trace(str(path))
        watch(harness, data, gaps, access)
        harness.close()
        seen.append(list(sample(path, PINS)))
    assert len(seen[0]) > END // 2
    assert seen[1] == seen[0] == seen[2]
