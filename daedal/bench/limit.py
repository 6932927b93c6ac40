"""The least cycles in which a memory model can move the lines of a launch, if no request depends on another."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from daedal.cosim.harness_library import BURST, WRITE_PORT
from daedal.cosim.litedram.memories import Dram
from daedal.cosim.memory_spec import MemorySpec
from daedal.cosim.oracle.traffic import oracle_of, requests_of
from daedal.driver.launch.record import RECORD_BYTES, Stats
from daedal.driver.memory.regions import Region
from daedal.driver.tables.table_store import Table
from daedal.errors import DaedalError
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import place_of


class TrafficError(DaedalError):
    """The bursts on the memory ports are not what the machine counted. A defect of Daedal's."""


@dataclass(frozen=True)
class Limit:
    """The best of what was tried: its cycles, which way of reordering that was, and the cycles of the best way that
    keeps the order in each bank.
    """

    cycles: int
    window: str
    in_order: int


def launch_bursts(
    bursts: NDArray[np.void], stats: Stats, config: Config, records: Iterable[Region]
) -> NDArray[np.void]:
    """The bursts of one launch, or of several together, without those of their completion records, which are no work.

    ``records`` is where these are written. Raises TrafficError if the lines are not those that the machine counted.
    """
    keep = np.ones(len(bursts), bool)
    for place, size in records:  # of mapping class PLAIN: memory addresses are the device's
        keep &= (bursts["port"] != WRITE_PORT) | (bursts["address"] < place) | (bursts["address"] >= place + size)
    kept = bursts[keep]
    found, lines = lines_of(kept), lines_of(bursts[~keep])[1]
    wanted = stats.launches * RECORD_BYTES // config.bus_bytes
    if lines != wanted or found != (stats.lines_read, stats.lines_written):
        raise TrafficError(
            f"the memory ports must move {stats.lines_read} lines in and {stats.lines_written} out, as the machine "
            f"counted, not {found[0]} and {found[1]} (and {lines} of the records' {wanted}): this is a defect"
        )
    return kept


def lines_of(bursts: NDArray[np.void]) -> tuple[int, int]:
    """Lines read and lines written by these bursts."""
    assert bursts.dtype == BURST
    written = int(bursts["beats"][bursts["port"] == WRITE_PORT].sum())
    return int(bursts["beats"].sum()) - written, written


def lines_of_tables(bursts: NDArray[np.void], tables: Iterable[Table], config: Config) -> int:
    """Lines that these bursts read out of these tables."""
    return int(bursts["beats"][_of_tables(bursts, tables, config)].sum())


def _of_tables(bursts: NDArray[np.void], tables: Iterable[Table], config: Config) -> NDArray[np.bool_]:
    """Which of these bursts read out of these tables.

    A table has superblocks of its own, inside of which its mapping class moves addresses: so a burst's address tells.
    """
    found = np.zeros(len(bursts), bool)
    for table in tables:
        start, size = place_of(table.address, config), table.rows * table.pitch
        end = start + -(-size // config.superblock_bytes) * config.superblock_bytes
        found |= (bursts["address"] >= start) & (bursts["address"] < end)
    found &= bursts["port"] != WRITE_PORT
    return found


def needed_bursts(bursts: NDArray[np.void], tables: Iterable[Table], config: Config) -> NDArray[np.void]:
    """Those of a launch's bursts that it cannot do without: all reads of tables, and each other line once.

    Lines of arrays that are read again are left out, in the order in which they were asked for first.
    """
    rows = _of_tables(bursts, tables, config)
    other = bursts[~rows]
    beats = other["beats"].astype(np.int64)
    lines = np.repeat(other, beats)
    behind = np.arange(len(lines)) - np.repeat(np.cumsum(beats) - beats, beats)
    lines["address"] += (behind * config.bus_bytes).astype(np.uint64)
    lines["beats"] = 1
    place = np.concatenate((np.flatnonzero(rows), np.repeat(np.flatnonzero(~rows), beats)))
    kinds = np.stack((lines["address"].astype(np.int64), (lines["port"] == WRITE_PORT).astype(np.int64)))
    first = np.unique(kinds, axis=1, return_index=True)[1]
    keep = np.concatenate((np.arange(rows.sum()), rows.sum() + np.sort(first)))
    found: NDArray[np.void] = np.concatenate((bursts[rows], lines))[keep][np.argsort(place[keep], kind="stable")]
    return found


def limit_of(bursts: NDArray[np.void], memory: str) -> Limit:
    """The limit of a launch's bursts on this memory model."""
    dram = dram_of(memory)
    if dram is None:
        return ideal_limit(*lines_of(bursts), MemorySpec.parse(memory, predicted=True))
    requests = requests_of(bursts["address"], bursts["beats"], bursts["port"] == WRITE_PORT, dram.word_bytes)
    best = oracle_of(dram).best(requests)
    return Limit(best.cycles, str(best.policy), best.in_order)


def dram_of(memory: str) -> Dram | None:
    """The DRAM of a memory model with its options, or None for one without."""
    return MemorySpec.parse(memory, predicted=True).dram


def lines_per_cycle(memory: str) -> float:
    """Lines that the memory's pins can move in a cycle."""
    return MemorySpec.parse(memory, predicted=True).lines


def ideal_limit(read: int, written: int, spec: MemorySpec) -> Limit:
    """The limit of memory ``ideal``: all writes first, while the first read waits for its latency.

    Every line takes its share of a cycle; a read cannot come before its latency is over, nor can the last write be
    acknowledged. Stalls and pauses of the model are left out: this is what it could do at best.
    """
    moving = ceil((read + written) / spec.lines)
    first_reads = spec.latency + ceil(read / spec.lines)
    last_write = ceil(written / spec.lines) + spec.latency if written else 0
    cycles = max(moving, first_reads, last_write)
    return Limit(cycles, "any", cycles)
