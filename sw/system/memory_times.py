"""The times of a tile's memory, which the target ``model`` has too: imported by a path when they are asked for."""

from collections.abc import Callable
from typing import Protocol, cast

from daedal.driver.targets.target_registry import imported
from daedal.hw.config.core import Config

MEMORY_TIMES = "daedal.cosim.clock.parameters:memory_of"
"""The memory behind a core of a configuration, by its name and options; ValueError if it is not for that core."""

_OF_TIME = ("latency", "lines", "mixed")
"""Options of a memory that say how fast it is; others make it random, or end it."""


class Times(Protocol):
    """Cycles; attributes are those of ``cosim.clock.parameters.Parameters``."""

    dram: int
    latency: int
    banks: int
    page_bytes: int
    precharge: int
    activate: int
    row_cycle: int
    activate_gap: int
    turn: int


class Channel(Protocol):
    """A memory channel, as ``cosim.clock.parameters.Memory``."""

    parameters: Times
    mixed: bool

    @property
    def refresh_share(self) -> float:
        """The part of time in which it refreshes."""
        ...

    @property
    def line_cycles(self) -> float:
        """Cycles in which its pins move a line."""
        ...


def channel_of(memory: str, config: Config) -> Channel:
    """The channel that a memory model is, without what is random; ``ideal`` for one that is not for the configuration,
    as emulated tiles may have.
    """
    memory_of = cast(Callable[[Config, str], Channel], imported(MEMORY_TIMES))
    model, _, options = memory.partition(":")
    of_time = ",".join(each for each in options.split(",") if each.partition("=")[0] in _OF_TIME)
    for text in (memory, f"{model}:{of_time}".rstrip(":")):
        try:
            return memory_of(config, text)
        except ValueError:
            continue
    return memory_of(config, "ideal")
