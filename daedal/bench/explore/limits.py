"""What limits a launch, by what the model counted of it: the share of its cycles that each thing needs or takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daedal.cosim.clock.parameters import Memory
from daedal.driver.launch.record import Stats

BUSY = 0.75
"""The share of cycles from which on what is busy is what limits."""

STARTING = 0.3
"""The share of cycles from which on the start of a launch is what limits."""

SEEN = 0.1
"""A wait for a smaller share of cycles decides nothing."""

HALF = 0.5
"""What is busy for less does not limit, if nothing else is seen to."""

UNEQUAL = 1.25
"""Cycles of the longest tile ÷ the mean of all, from which on that tiles wait for it is what limits."""

MEMORY, ROWS, LANES, START = "memory bandwidth", "rows that the DRAM opens", "lanes", "start of a launch"
TILES = "unequal tiles"

_EXECUTE_WAITS = ("token_empty", "scalar_empty", "vector_empty", "hazard", "store_full")
"""Causes that keep the lanes from working; they follow each other, so the rest of the cycles the lanes work."""

_WAITS: Mapping[str, tuple[str, str]] = {
    "vector_full": ("latency", "places for lines on their way: reorder_beats, vector_beats"),
    "port_busy": ("ports", "requests that wait at one port: ports, port_requests"),
    "load": ("indices", "latency of indices and offsets: lookahead_lines, contexts"),
    "token_full": ("queues", "callbacks that wait for the lanes: token_depth"),
    "scalar_full": ("queues", "scalars that wait for the lanes: scalar_depth"),
    "store_address_full": ("queues", "rows that wait to be stored: store_address_depth"),
    "hazard": ("chains", "lanes wait for their own results: contexts"),
    "store_full": ("writes", "rows that wait to be written: store_beats, write_batch"),
}
"""Cause of a stall -> what limits then, in a word, and what it is with the fields of a configuration that count."""


@dataclass(frozen=True)
class Limits:
    """What limits a launch.

    Attributes
    ----------
    limit
        In a word or three.
    why
        In a sentence, with its share of the cycles.
    shares
        The share of the cycles that each resource is busy: the memory's pins (with refresh), rows that are opened,
        lanes, and what the start of a launch takes.
    """

    limit: str
    why: str
    shares: Mapping[str, float]

    @property
    def of_limit(self) -> float:
        """Cycles that the memory needs for the lines ÷ cycles taken."""
        return self.shares[MEMORY]


def limits_of(stats: Stats, activations: float, start: float, memory: Memory) -> Limits:
    """What limits a launch of these figures, that opens so many rows; ``start``: cycles of one that does nothing."""
    cycles = max(stats.cycles, 1)
    usable = cycles * (1 - memory.refresh_share)
    waits = sum(stats.stalls.get(cause, 0) for cause in _EXECUTE_WAITS)
    shares = {
        MEMORY: (stats.lines_read + stats.lines_written) * memory.line_cycles / usable,
        ROWS: activations * memory.parameters.activate_gap / usable if memory.parameters.dram else 0.0,
        LANES: max(0.0, 1 - waits / cycles),
        START: min(1.0, start / cycles),
    }
    shares = {name: round(share, 4) for name, share in shares.items()}
    busiest = max((MEMORY, ROWS, LANES), key=shares.__getitem__)
    if shares[busiest] >= BUSY:
        return Limits(busiest, f"{busiest}: {shares[busiest]:.0%} of the cycles", shares)
    if shares[START] >= STARTING:
        return Limits(START, f"start of a launch: {shares[START]:.0%} of the cycles are those of an empty one", shares)
    cause = max(_WAITS, key=lambda each: stats.stalls.get(each, 0))
    part = stats.stalls.get(cause, 0) / cycles
    if part < SEEN and shares[busiest] < HALF:
        return Limits("levels", f"steps of the access unit itself: {busiest} only {shares[busiest]:.0%}", shares)
    if part < SEEN:
        return Limits(busiest, f"{busiest}: {shares[busiest]:.0%} of the cycles, and nothing waits for long", shares)
    limit, what = _WAITS[cause]
    return Limits(limit, f"{what} ({cause}: {part:.0%} of the cycles)", shares)


def limits_of_tiles(longest: Limits, cycles: Sequence[int]) -> Limits:
    """What limits a system whose tiles take so many cycles, of which the longest is limited so."""
    mean = sum(cycles) / len(cycles)
    if max(cycles) <= UNEQUAL * mean:
        return longest
    busy = sum(each > 0 for each in cycles)
    what = f"{busy} of {len(cycles)} tiles have work" if busy < len(cycles) else "all tiles have work"
    why = f"the plan: {what}, the longest {max(cycles) / mean:.1f} × the mean; more bytes for copies share it out"
    return Limits(TILES, why, longest.shares)
