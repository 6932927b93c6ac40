"""Which DRAM fits which core."""

from pathlib import Path

from daedal.cosim.litedram.memories import Dram
from daedal.cosim.litedram.model import build_dram
from daedal.cosim.litedram.text import Description
from daedal.hw.config import Config


def dram_behind(config: Config, dram: Dram) -> tuple[Path, Description]:
    """The library of a DRAM with a user port for each read port of the core, and its description.

    Raises
    ------
    ValueError
        The core's lines, pages or banks are not the DRAM's. A port is for banks (``port_of`` in
        ``hw/memory/address_map.py``) and classes are mapped inside of superblocks, so they must be the same.
    """
    library, description = build_dram(dram, config.ports)
    check_fit(config, description)
    return library, description


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
