"""What a piece costs a tile: cycles of what is busy longest, from the configuration and the times of the memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from daedal.driver.memory.layout import row_pitch
from daedal.hw.config.core import MAX_BURST, Config
from daedal.runtime.request import has_long_bags
from daedal.system.demand import Demand
from daedal.system.memory_times import Channel, channel_of

# Fitted to some 2,800 launches on the target ``model``: rows of 4 to 1,536 bytes, bags of 1 to 100 rows, all presets.
AT_PINS, AT_UNITS = 4, 16
"""How much what is busy at the same time is in each other's way, in the memory and in the core: see ``_together``."""

START, START_LATENCIES = 80, 2.6
"""Cycles of a launch before its first row and after its last one, and latencies of memory in them."""

TABLE, TABLE_LATENCIES = 178, 0.12
"""The same of a table, or a part of one: descriptors, first indices, last results."""

TO_PLACE, TO_PLACE_OF_DRAM = 22, 50
"""Cycles of a line besides the memory's latency, from its request to the place that it leaves free."""

AT_PORT, AT_PORT_OF_DRAM = 2, 25
"""Cycles of a request at a port besides the latency, or, where lines come in turn, besides the opening of a row."""

UNEVEN = 1.07
"""What several ports take longer for, as requests meet them at random."""

LANDING = 10
"""Entries of a queue's outputs that are on their way to it."""

IN_TURN = 1.5
"""Requests on their way from a port to memory, by those whose lines a port of the controller holds: in their order."""

PORT_LINES = 16
"""Lines that a port of a DRAM's controller holds."""

OPENED, OPENED_IN_GROUPS = 0.5, 0.375
"""Rows of banks that a line of indices opens where each is a request; with requests in groups."""

TURNS = 1.9
"""Turns from reading to writing and back, by batches of writes."""

WRITES, OPENS, REFRESHES = 0.95, 0.97, 0.9
"""Shares of the cycles of writes, of the gaps between rows that are opened, and of refreshes that nothing hides."""

SERIAL_ROW, SERIAL_BAG, SERIAL_COPY = 14, 13, 21
"""Cycles of a look-up, of a bag's end, and of a row that is copied, where all levels are serial."""

LIST_LEVELS = 3
"""Levels that a list of several tables' bags in one launch takes."""


def _together(times: Sequence[float], exponent: int) -> float:
    """The longest of these times, and more if others are nearly as long: they wait for each other now and then."""
    most = max(times)
    return most * sum((each / most) ** exponent for each in times) ** (1 / exponent) if most else 0.0


def _before_a_bank_repeats(banks: int) -> float:
    """Random requests in a row that are for different ones of so many banks, on average."""
    found, share = 0.0, 1.0
    for used in range(1, banks + 1):
        found, share = found + share, share * (banks - used) / banks
    return found


@dataclass(frozen=True)
class _Work:
    """Some columns of all bags of a table, in the terms of a machine.

    Attributes
    ----------
    lookups, bags, is_copied
        Of the demand.
    beats, row_lines
        Of a row.
    passes
        How often indices are read, as rows are longer than vectors.
    read, written
        Lines of indices and the like, and of results.
    requests
        For these lines that are read.
    is_lone
        Each line of indices is a request: bags have streams of their own.
    in_turn
        Rows of several bags in turn, so that none waits for the sum before.
    rows
        That can be on their way.
    """

    lookups: int
    bags: int
    is_copied: bool
    beats: int
    row_lines: int
    passes: int
    read: float
    written: float
    requests: float
    is_lone: bool
    in_turn: bool
    rows: float


@dataclass(frozen=True)
class Costs:
    """Cycles of the pieces of tables on a tile of this configuration, with this memory channel.

    Predicted for rows that are looked up evenly: where some come again and again, a DRAM opens fewer of its rows.
    """

    config: Config
    channel: Channel

    @property
    def start(self) -> float:
        """Cycles of a launch, besides those of its tables."""
        return START + START_LATENCIES * self.channel.parameters.latency

    @property
    def table(self) -> float:
        """Cycles in which a table, or a part of one, begins and ends."""
        return TABLE + TABLE_LATENCIES * self.channel.parameters.latency

    def cycles_of(self, demand: Demand, columns: int) -> float:
        """Cycles of some columns of all bags of a table, besides ``start`` and ``table``."""
        if not demand.lookups and not demand.bags:
            return 0.0
        work, latency = self._work(demand, columns), self.channel.parameters.latency
        lines = work.lookups * work.row_lines
        to_place = latency + (TO_PLACE_OF_DRAM if self._is_dram else TO_PLACE)
        places = max(lines / self.config.reorder_beats, work.lookups * work.passes / work.rows) * to_place
        memory = self._dram(demand, columns, work) if self._is_dram else self._lines(work)
        busy = (memory, self._ports(work), self._asked(work), places, self._lanes(demand, work), self._steps(work))
        return _together(busy, AT_UNITS)

    @property
    def _is_dram(self) -> bool:
        return bool(self.channel.parameters.dram)

    def _work(self, demand: Demand, columns: int) -> _Work:
        config, line = self.config, self.config.bus_bytes
        lookups, bags, width = demand.lookups, demand.bags, demand.bytes_of(columns)
        beats, row_lines = -(-columns // config.lanes), max(1, -(-width // line))
        passes = 1 if demand.is_copied else -(-columns // config.vl_max)
        is_short = beats <= config.context_beats and beats < config.accumulate_cycles
        may_turn = not demand.is_copied and config.context_level is not None and is_short
        is_lone = may_turn and has_long_bags(lookups, bags)
        listed = demand.listed if config.levels >= LIST_LEVELS else 0
        read = (demand.overhead_of(columns) * passes + listed) / line
        rows = (config.store_address_depth + LANDING) * lookups / max(bags, 1)
        if not demand.is_copied:
            rows = min(rows, config.token_depth + LANDING)
        return _Work(
            lookups, bags, demand.is_copied, beats, row_lines, passes, read,
            bags * columns * demand.element / line,
            read if is_lone or config.is_serial else read / config.burst_lines,
            is_lone, is_lone or (may_turn and config.dealt_bundles > 0), max(1.0, rows),
        )  # fmt: skip

    def _lines(self, work: _Work) -> float:
        """Of the pins of a memory that answers after a fixed latency."""
        return (work.lookups * work.row_lines + work.read + work.written) * self.channel.line_cycles

    def _dram(self, demand: Demand, columns: int, work: _Work) -> float:
        """Of a DRAM: of its pins, of rows that are opened no faster than their gap, and of banks that are open for a
        while; then of writes, and turns between reading and writing.
        """
        times, config = self.channel.parameters, self.config
        line_cycles = self.channel.line_cycles
        missed = self._missed(demand, columns, work)
        opened = OPENED_IN_GROUPS if config.row_groups > 1 else OPENED
        loads = work.requests * (opened if work.is_lone else 1)
        crossed = 1 + max(0, demand.bytes_of(columns) - config.bus_bytes) / config.page_bytes
        # A row of a bank that is opened for indices is in the way of one that was open.
        opens = work.lookups * work.passes * missed * crossed + loads * (2 - missed)
        repeats = _before_a_bank_repeats(max(1, times.banks // config.ports))
        pins = (work.lookups * work.row_lines + work.read) * line_cycles
        gaps, banks = opens * times.activate_gap * OPENS, opens * times.row_cycle / (config.ports * repeats)
        writes = work.written * (WRITES * line_cycles + TURNS * times.turn / config.write_batch)
        return (_together((pins, gaps, banks), AT_PINS) + writes) / (1 - REFRESHES * self.channel.refresh_share)

    def _missed(self, demand: Demand, columns: int, work: _Work) -> float:
        """The share of look-ups that open a row of a bank; of those that wait at a port for the same row, one does."""
        config, banks = self.config, self.channel.parameters.banks
        pages = demand.rows * row_pitch(demand.bytes_of(columns), config) / config.page_bytes
        if pages <= banks:
            return 0.0
        share, here = 1 - banks / pages, max(1.0, pages / config.ports)
        if config.row_groups == 1:
            return share
        on_the_way = min(config.reorder_beats / work.row_lines, work.rows) / config.ports
        waiting = max(1.0, min(config.port_requests, on_the_way - IN_TURN * PORT_LINES / work.row_lines))
        return float(share * here * (1 - (1 - 1 / here) ** waiting) / waiting)

    def _ports(self, work: _Work) -> float:
        """Of the places for requests on their way at the ports."""
        times, config = self.channel.parameters, self.config
        held = times.precharge + times.activate + AT_PORT_OF_DRAM if self._is_dram else times.latency + AT_PORT
        return (
            self._asked(work) * held / (config.ports * config.port_outstanding) * (UNEVEN if config.ports > 1 else 1.0)
        )

    def _asked(self, work: _Work) -> float:
        """Of the way to memory that rows and indices share: a request in a cycle."""
        return work.lookups * work.passes * ceil(work.row_lines / work.passes / MAX_BURST) + work.requests

    def _lanes(self, demand: Demand, work: _Work) -> float:
        """Of the lanes, or of what hands rows on to be stored: a line in a cycle at most."""
        config, beats = self.config, work.beats
        if work.is_copied:
            return work.lookups * float(work.row_lines)
        if demand.has_heads and not config.preadder:
            beats = max(beats, config.accumulate_cycles) + beats if config.two_pass else 2 * beats + 1
        elif not work.in_turn:
            beats = max(beats, config.accumulate_cycles * work.passes)
        return work.lookups * float(max(beats, work.row_lines)) + work.bags

    def _steps(self, work: _Work) -> float:
        """Of the steps of the access unit: for each look-up, and for each bag's end."""
        if not self.config.is_serial:
            return float(work.lookups + (0 if work.is_copied else work.bags))
        if work.is_copied:
            return work.lookups * float(SERIAL_COPY)
        return work.passes * float(work.lookups * SERIAL_ROW + work.bags * SERIAL_BAG)


def costs_of(memory: str, config: Config) -> Costs:
    """The costs with a memory model."""
    return Costs(config, channel_of(memory, config))
