"""What the clock computes with: a memory as numbers, in the order of ``parameters.h``."""

from dataclasses import dataclass

from daedal.cosim.dram_times import DramTimes
from daedal.cosim.litedram.fit import check_fit
from daedal.cosim.litedram.text import Description, generate
from daedal.cosim.memory_spec import MemorySpec
from daedal.hw.config.core import Config

PARTS = 256
"""Parts of a cycle in which times on the bus are counted."""

TURN, SHORT_TURN, ACKNOWLEDGED = 70, 30, 25
"""Cycles that reads wait around a batch of writes besides those of its lines, and around a short one that is written
while few reads are on their way; cycles after which a batch's last line is acknowledged. Fitted to LiteDRAM.
"""

CONTROLLER, REFRESHES, TO_READ = 10, 10, 1
"""Cycles of LiteDRAM's controller and buffers in a read's latency, around a refresh, from tRCD to a read; fitted."""

PORT_LINES = 8
"""Lines that wait at a bank of LiteDRAM, the depth of its queue of commands; a burst is on its way to it."""

UNBOUNDED = 1 << 20


@dataclass(frozen=True)
class Parameters:
    """A memory, cycles unless something else is said; see ``parameters.h``."""

    dram: int
    latency: int
    line_time: int
    banks: int
    page_bytes: int
    precharge: int = 0
    activate: int = 0
    active: int = 0
    row_cycle: int = 0
    activate_gap: int = 1
    refresh_interval: int = 0
    refresh_time: int = 0
    port_words: int = UNBOUNDED
    turn: int = 0
    short_turn: int = 0
    write_latency: int = 0


@dataclass(frozen=True)
class Memory:
    """A memory for the model.

    Attributes
    ----------
    name
        What it is called, without options.
    parameters
        Its times.
    mixed
        Whether it loses no time between reads and writes.
    settings
        All that shapes its time, in words.
    clock
        Hz of the core and its controller; 0 for ``ideal``, whose times are in cycles of any clock.
    channels
        Channels of one part (stack, module, package), each a tile's: a core has one.
    """

    name: str
    parameters: Parameters
    mixed: bool
    settings: str
    clock: int = 0
    channels: int = 1

    @property
    def refresh_share(self) -> float:
        """The part of time in which the memory refreshes."""
        every = self.parameters.refresh_interval
        return self.parameters.refresh_time / every if every else 0.0

    @property
    def line_cycles(self) -> float:
        """Cycles in which its pins move a line."""
        return self.parameters.line_time / PARTS


def memory_of(config: Config, text: str) -> Memory:
    """The memory that ``memory=`` names, behind a core of this configuration.

    Raises
    ------
    ValueError
        There is no such memory, it is random, or it is not for this core.
    """
    spec, name = MemorySpec.parse(text, predicted=True), text.partition(":")[0]
    if spec.times is not None:
        return _listed(config, spec.times)
    if spec.random or spec.pause_after is not None:
        raise ValueError(
            f"memory of target model must be without stall, seed and pause, not {text!r}: use target verilator for it"
        )
    if spec.dram is None:
        times = Parameters(0, spec.latency, round(PARTS / spec.lines), config.banks, config.page_bytes,
                           write_latency=spec.latency)  # fmt: skip
        return Memory(name, times, bool(spec.mixed), spec.settings(config.ports))
    description = generate(spec.dram, config.ports).description
    check_fit(config, description)
    return Memory(name, _litedram(description), False, spec.settings(config.ports), spec.dram.clock)


def _litedram(of: Description) -> Parameters:
    timing = of.timing
    return Parameters(
        1, of.phy["read_latency"] + CONTROLLER, PARTS, of.banks, of.page_bytes, precharge=timing["tRP"],
        activate=timing["tRCD"] + TO_READ, active=timing["tRAS"], row_cycle=timing["tRC"], activate_gap=timing["tRRD"],
        refresh_interval=timing["tREFI"], refresh_time=timing["tRP"] + timing["tRFC"] + REFRESHES,
        port_words=PORT_LINES, turn=TURN, short_turn=SHORT_TURN, write_latency=ACKNOWLEDGED,
    )  # fmt: skip


def _listed(config: Config, of: DramTimes) -> Memory:
    for field, value in (("bus_bytes", of.line_bytes), ("page_bytes", of.page_bytes)):
        if getattr(config, field) != value:
            raise ValueError(
                f"{field} of configuration {config.name} must be {value} for memory {of.name}, "
                f"not {getattr(config, field)!r}"
            )
    times = Parameters(
        1, of.latency + CONTROLLER, PARTS, max(of.banks, config.banks), of.page_bytes, precharge=of.precharge,
        activate=of.activate + TO_READ, active=of.active, row_cycle=of.row_cycle, activate_gap=of.activate_gap,
        refresh_interval=of.refresh_interval, refresh_time=of.precharge + of.refresh + REFRESHES,
        port_words=PORT_LINES, turn=TURN, short_turn=SHORT_TURN, write_latency=ACKNOWLEDGED,
    )  # fmt: skip
    return Memory(of.name, times, False, of.text(), of.clock, of.channels)
