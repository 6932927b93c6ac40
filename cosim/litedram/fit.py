"""Which DRAM fits which core."""

from pathlib import Path

from daedal.cosim.litedram.memories import Dram
from daedal.cosim.litedram.model import build_dram
from daedal.cosim.litedram.text import Description, generate
from daedal.hw.config.core import Config


def dram_behind(config: Config, dram: Dram, *, checks: bool = False) -> tuple[Path, Description]:
    """The library of a DRAM with a user port for each read port of the core, and its description.

    With ``checks``, the SDRAM model checks the timing of every command.

    Raises
    ------
    ValueError
        The core's lines, pages or banks are not the DRAM's. A port is for banks (``port_of`` in
        ``hw/memory/address_map.py``) and classes are mapped inside of superblocks, so they must be the same.
    """
    check_fit(config, generate(dram, config.ports, checks=checks).description)
    return build_dram(dram, config.ports, checks=checks)


def check_fit(config: Config, description: Description) -> None:
    """ValueError if this core is not for this DRAM; see :func:`dram_behind`."""
    for name, value in (
        ("bus_bytes", description.word_bytes),
        ("page_bytes", description.page_bytes),
        ("banks", description.banks),
    ):
        if getattr(config, name) != value:
            raise ValueError(
                f"{name} of configuration {config.name} must be {value} for memory {description.name}, "
                f"not {getattr(config, name)!r}"
            )
