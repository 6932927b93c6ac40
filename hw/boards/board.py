"""What a board with DRAM is, as far as the system around the core depends on it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daedal.hw.config import Config


@dataclass(frozen=True)
class Board:
    """A board on which the core runs behind LiteDRAM.

    Attributes
    ----------
    name
        What `daedal bitstream --board` and the driver call it.
    title
        What it is, for people.
    config
        The core that it gets unless another one is asked for.
    clock_hz
        Clock of memory controller and bus.
    core_hz
        Clock of the core; a domain of its own if it differs.
    baud
        Bits per second of the serial line.
    platform
        Makes LiteX's platform: part, pins.
    clocks
        Makes the clock domains: of ``(platform, clock_hz, core_hz)``.
    phy
        Makes LiteDRAM's PHY: of ``(platform, clocks, clock_hz)``.
    memory, rate, data_bits
        LiteDRAM's module class of the chip, the ratio of its clock, the width of its data bus.
    flow
        The tools that make the configuration file: a name in ``flows.FLOWS``.
    part
        Options of nextpnr that name the part.
    """

    name: str
    title: str
    config: Config
    clock_hz: float
    core_hz: float
    baud: int
    platform: Callable[[], Any]
    clocks: Callable[[Any, float, float], Any]
    phy: Callable[[Any, Any, float], Any]
    memory: type
    rate: str
    data_bits: int
    flow: str
    part: tuple[str, ...]
