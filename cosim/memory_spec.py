"""Memory models by text, as ``"ideal:latency=200,stall=0.1,seed=3"`` or ``"litedram-ddr3-x16"``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daedal.base.messages import shown
from daedal.cosim.dram_times import DRAMS, DramTimes
from daedal.cosim.litedram.memories import MEMORIES, Dram

IDEAL = "ideal"

MODELS = (IDEAL, *MEMORIES)
"""Names of the memory models that are RTL, or stand behind it."""

PREDICTED = (*MODELS, *DRAMS)
"""Names of those and of the ones of which only the timing is known, for the target ``model``."""

MAX_LATENCY = 10_000
"""Cycles; far below those after which the watchdog takes a memory for dead (``WATCHDOG_CYCLES``)."""

MAX_PAUSE = 1 << 40
"""Lines before a pause, and cycles of one."""

MIN_LINES, MAX_LINES = 0.01, 64
"""Lines per cycle."""


@dataclass(frozen=True)
class MemorySpec:
    """A memory model and its options.

    ``ideal``: a fixed latency, and one line per cycle for reads and writes together, fair to all. It has all options.
    The others are DRAMs (:mod:`daedal.cosim.litedram`), whose time is that of LiteDRAM's controller. They have
    ``stall``, ``seed`` and ``checks``. Those of which only the timing is known have none.

    Attributes
    ----------
    model
        One of ``PREDICTED``.
    latency
        Cycles from the address of a read to its first possible beat, and from the last beat of a write to its
        response.
    lines
        Lines per cycle over all ports; a fraction is an average.
    stall
        Probability with which a channel withholds its ready or valid in a cycle.
    pause_after, pause
        Lines that move before the memory stops answering, and for how many cycles it does. It goes on taking addresses
        meanwhile. There is no pause if ``pause_after`` is left out; a ``pause`` that is left out has no end.
    seed
        Start of the random numbers. Given, or with ``stall``, an answer of ``ideal`` comes up to ``latency`` cycles
        later at random as well, so ports overtake each other.
    mixed
        1 unless given: the machine is told that the memory loses no time between reads and writes. 0: that it does, so
        reads wait for writes as with a DRAM.
    checks
        1: the SDRAM model checks the timing of every command, and a violation ends the simulation.
    """

    model: str = IDEAL
    latency: int = 100
    lines: float = 1.0
    stall: float = 0.0
    pause_after: int | None = None
    pause: int | None = None
    seed: int | None = None
    mixed: int = 1
    checks: int = 0

    def __post_init__(self) -> None:
        if self.model not in PREDICTED:
            raise ValueError(f"memory must be one of {', '.join(PREDICTED)}, not {shown(self.model)}")
        if not 1 <= self.latency <= MAX_LATENCY:
            raise ValueError(f"latency must be from 1 to {MAX_LATENCY} cycles, not {shown(self.latency)}")
        if not MIN_LINES <= self.lines <= MAX_LINES:
            raise ValueError(f"lines must be from {MIN_LINES} to {MAX_LINES} per cycle, not {shown(self.lines)}")
        if not 0 <= self.stall <= 0.95:
            raise ValueError(f"stall must be from 0 to 0.95, not {shown(self.stall)}")
        for name in ("pause_after", "pause"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < MAX_PAUSE:
                raise ValueError(f"{name} must be from 0 to {MAX_PAUSE - 1}, not {shown(value)}")
        if self.pause is not None and self.pause_after is None:
            raise ValueError(f"pause must come with pause_after, not alone as {shown(self.pause)}")
        if self.seed is not None and not 0 <= self.seed < 1 << 32:
            raise ValueError(f"seed must be from 0 to {(1 << 32) - 1}, not {shown(self.seed)}")
        for name in ("mixed", "checks"):
            if getattr(self, name) not in (0, 1):
                raise ValueError(f"{name} must be 0 or 1, not {getattr(self, name)!r}")

    @property
    def random(self) -> bool:
        """Whether anything is random."""
        return self.seed is not None or self.stall > 0

    @property
    def dram(self) -> Dram | None:
        """The DRAM, or None for ``ideal``, and for one without RTL."""
        return MEMORIES.get(self.model)

    @property
    def times(self) -> DramTimes | None:
        """The times of a DRAM without RTL, None for all others."""
        return DRAMS.get(self.model)

    def settings(self, ports: int) -> str:
        """The memory behind so many ports with all that shapes its time, to be given with figures."""
        from daedal.cosim.litedram.text import generate

        if self.times is not None:
            return self.times.text()
        if self.dram is not None:
            return generate(self.dram, ports, checks=bool(self.checks)).description.text()
        wait = "" if self.mixed else ", reads wait for writes"
        return f"{self.model}: latency {self.latency} cycles, {self.lines:g} lines per cycle{wait}"

    @staticmethod
    def parse(text: str, *, predicted: bool = False) -> "MemorySpec":
        """The options in ``text``; ValueError says what is wrong and what there is.

        ``predicted``: of the target ``model``, which also has DRAMs without RTL.
        """
        model, _, rest = text.partition(":")
        if model in DRAMS and not predicted:
            raise ValueError(f"memory must be one of {', '.join(MODELS)}, not {shown(model)}: only target model has it")
        if model not in PREDICTED:
            raise ValueError(
                f"memory must be one of {', '.join(PREDICTED if predicted else MODELS)}, not {shown(model)}"
            )
        if model in DRAMS and rest:
            raise ValueError(
                f"memory {model} must be without options, not {shown(text)}: a core has one channel, and several "
                "channels are the tiles of a daedal.System"
            )
        options = _OPTIONS if model == IDEAL else _DRAM_OPTIONS
        values: dict[str, Any] = {}
        for item in filter(None, rest.split(",")):
            name, _, value = item.partition("=")
            if name not in options:
                raise ValueError(f"an option of memory {model} must be one of {', '.join(options)}, not {shown(name)}")
            if name in values:
                raise ValueError(f"option {name} of memory {model} must be given once, not again as {shown(value)}")
            try:
                values[name] = options[name](value)
            except ValueError:
                kind = "a whole number" if options[name] is int else "a number"
                raise ValueError(f"{name} of memory {model} must be {kind}, not {shown(value)}") from None
        return MemorySpec(model, **values)


_OPTIONS: dict[str, Callable[[str], int | float]] = {
    "latency": int,
    "lines": float,
    "stall": float,
    "pause_after": int,
    "pause": int,
    "seed": int,
    "mixed": int,
}
_DRAM_OPTIONS: dict[str, Callable[[str], int | float]] = {"stall": float, "seed": int, "checks": int}
