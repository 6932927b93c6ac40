"""What a board is, as far as the system around the core depends on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from daedal.hw.config.core import Config


@dataclass(frozen=True)
class Dram:
    """A DRAM chip behind LiteDRAM.

    Attributes
    ----------
    module
        LiteDRAM's class of the chip.
    rate
        Its clock's ratio to the system's, as LiteDRAM writes it.
    data_bits
        Width of its data bus.
    phy
        Makes LiteDRAM's PHY: of ``(platform, clocks, clock_hz)``.
    """

    module: Any
    rate: str
    data_bits: int
    phy: Callable[[Any, Any, float], Any]


@dataclass(frozen=True)
class OnChip:
    """Memory inside of the FPGA.

    Attributes
    ----------
    ram
        Makes the memory: see :class:`daedal.fpga.soc.on_chip_memory.OnChipMemory`.
    memory_bytes
        Its size.
    """

    ram: Callable[[int, int], Any]
    memory_bytes: int


@dataclass(frozen=True)
class Board:
    """A board on which the core runs.

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
    memory
        What memory it has.
    flow
        The tools that make the configuration file: a name in ``flows.FLOWS``.
    part
        Options of nextpnr that name the part.
    grades
        Speed grades of the same part in which the board is not made -> the fields of this class that are others there:
        ``part``, and with what the core closes. For what the system would do there.
    placer
        Options of nextpnr's placer with which the board's own core closes.
    free_rows
        One row of logic in so many is kept free, for its wires (ECP5, ``rows.py``): what the board's own core needs.
    seed
        Where the placement starts unless another place is asked for: one with which the board's own core closes.
    small
        Its part is small and its clock slow: memory ports have fewer registers and places.
    litedram_patches
        Changes of LiteDRAM's modules without which the board does not close: names of ``litedram_patches.apply``.
    ethernet
        Makes LiteEth's PHY, of ``(platform,)``, for a board that can be reached over Etherbone; else None.
    """

    name: str
    title: str
    config: Config
    clock_hz: float
    core_hz: float
    baud: int
    platform: Callable[[], Any]
    clocks: Callable[[Any, float, float], Any]
    memory: Dram | OnChip
    flow: str
    part: tuple[str, ...]
    placer: tuple[str, ...] = ()
    free_rows: int = 3
    seed: int = 1
    small: bool = False
    litedram_patches: tuple[str, ...] = ()
    ethernet: Callable[[Any], Any] | None = None
    grades: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
