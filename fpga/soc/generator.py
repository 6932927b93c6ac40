"""A board's system as Verilog, with its constraints and a description for the host."""

import contextlib
import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daedal.errors import InvalidConfig
from daedal.fpga.boards import find_board
from daedal.fpga.boards.board import Board, Dram
from daedal.hw.config.core import Config
from daedal.hw.verilog import core_verilog

SIMULATED_BYTES = 64 << 20
"""Memory of a simulated board, bytes, unless another size is asked for; real ones have all that their chip has."""


DESIGN_MARK = 0xDAED_A11F
"""Stands for the design's number until that is known."""

FIRST_NUMBER = 1 << 20
"""Of Migen's objects of a system; those that its modules make when they are imported have smaller ones."""


@dataclass(frozen=True)
class Generated:
    """A system that was generated.

    Attributes
    ----------
    verilog
        Everything: the system and the core, without a vendor's primitives.
    constraints
        Name of a file -> its text, for the tools of the board; none if simulated.
    description
        What a host needs to know; JSON values only. ``top``: the top module. ``board``, ``simulated``, ``config`` (its
        fields and ``hash``). ``clock_hz``, ``core_hz``, ``division`` (system clocks per clock of the core; simulated
        boards only). ``baud``. ``design``: the number that the board's link tells. ``etherbone``: None, or ``address``
        and ``port`` of the bridge to the network (real boards only). ``memory``, ``registers``: ``base`` and ``size``,
        bytes, on the bus that the bridge drives. ``sdram``: settings of LiteDRAM's PHY, geometry, and the sequence of
        commands that starts it, or None if there is none. ``soc``: LiteX's map of all registers, constants and regions
        (its ``csr.json``).
    """

    verilog: str
    constraints: dict[str, str]
    description: dict[str, Any]


CORE_MHZ = 3.125, 400
"""Clocks that ECP5's PLL makes, as LiteX says (``clko_freq_range``); other boards' cores have their board's clock."""


def generate(
    board: str | Board, config: Config | None = None, *, simulated: bool = False, serial: str = "bytes",
    memory_bytes: int = SIMULATED_BYTES, core_hz: float | None = None, etherbone: bool = False,
) -> Generated:  # fmt: skip
    """The system of a board around a core.

    Parameters
    ----------
    board
        The board, or its name.
    config
        The core; the board's own if None.
    simulated
        With models in place of pins: clocks (``sys_clk``, ``sys_rst``), SDRAM and serial line.
    serial
        The line of a simulated board: ``bytes`` (streams ``serial_source_*`` and ``serial_sink_*``) or ``pins``
        (``serial_tx``, ``serial_rx`` at the board's baud rate).
    memory_bytes
        Memory of a simulated board, bytes, a power of two; the chip's rows limit it (``simulated_memory``).
    core_hz
        The core's clock, if not the board's own.
    etherbone
        With a bridge to the network beside the serial one; for real boards that have a network.

    Raises UnknownBoard, and InvalidConfig if the configuration does not go with the board's memory, or for a clock
    that no board makes.
    """
    with _quiet_litex():
        _begin_numbers()
        found = board if isinstance(board, Board) else find_board(board)
        chosen = found.config if config is None else config
        hertz = found.core_hz if core_hz is None else core_hz
        if not CORE_MHZ[0] <= hertz / 1e6 <= CORE_MHZ[1]:
            raise InvalidConfig(
                f"the core's clock must be from {CORE_MHZ[0]} to {CORE_MHZ[1]} MHz, which clock generators make, "
                f"not {hertz / 1e6:g}"
            )
        if etherbone and (found.ethernet is None or simulated):
            which = f"{found.name}{' simulated' * simulated}"
            raise InvalidConfig(f"etherbone must be False for {which}, which has no network")
        if simulated:
            return _generate_simulated(found, chosen, hertz, serial, memory_bytes)
        return _generate_real(found, chosen, hertz, etherbone)


def _begin_numbers() -> None:
    """Let Migen number its objects as for any other system. The numbers are the objects' hashes, from which come the
    order of its sets, and from that the names of signals of one name: so the same system is the same text.
    """
    from migen.fhdl.structure import DUID

    DUID._DUID__next_uid = FIRST_NUMBER


def _plain(text: str) -> str:
    """LiteX's Verilog without its comments, which have the date, and a tree of modules in an order of its own each
    time: the same system is the same text.
    """
    text = re.sub(r"^/\*.*?\*/\n?", "", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))


def _numbered(text: str) -> tuple[str, int]:
    """Verilog of a system with ``DESIGN_MARK``, with its own digest in place of that; and this number."""
    literal = f"32'd{DESIGN_MARK}"
    assert literal in text, "the mark is a constant of a link's registers"
    design = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
    return text.replace(literal, f"32'd{design}"), design


def _generate_real(board: Board, config: Config, core_hz: float, etherbone: bool) -> Generated:
    from daedal.fpga.soc.soc import ETHERBONE, System

    platform = board.platform()
    clocks = board.clocks(platform, board.clock_hz, core_hz)
    phy: Any = None
    if isinstance(board.memory, Dram):
        phy = board.memory.phy(platform, clocks, board.clock_hz)
        module = board.memory.module(board.clock_hz, board.memory.rate)
    else:
        module = _on_chip(board.memory.ram, board.memory.memory_bytes, config)
    soc = System(
        platform, clocks, phy=phy, module=module, config=config, clock_hz=board.clock_hz, core_hz=core_hz,
        baud=board.baud, design=DESIGN_MARK, small=board.small, patches=board.litedram_patches,
    )  # fmt: skip
    if etherbone and board.ethernet is not None:
        soc.add_network(board.ethernet(platform))
    top = f"daedal_{board.name}"
    with tempfile.TemporaryDirectory() as folder:
        platform.build(soc, build_dir=folder, build_name=top, run=False)
        files = {path.name: path.read_text(encoding="utf-8") for path in Path(folder).iterdir() if path.is_file()}
    constraints = {name: text for name, text in files.items() if Path(name).suffix in (".lpf", ".pcf", ".cst", ".sdc")}
    verilog, design = _numbered(_plain(files[f"{top}.v"]) + "\n" + core_verilog(config))
    description = _description(board, config, core_hz, soc, top)
    description |= {"simulated": False, "design": design, "etherbone": ETHERBONE if etherbone else None}
    return Generated(verilog, constraints, description)


def _generate_simulated(board: Board, config: Config, core_hz: float, serial: str, memory_bytes: int) -> Generated:
    from daedal.fpga.soc.on_chip_memory import ModelRam
    from daedal.fpga.soc.simulated_board import SimulatedClocks, SimulatedPlatform, simulated_memory
    from daedal.fpga.soc.soc import System

    platform = SimulatedPlatform(serial)
    clocks = SimulatedClocks(platform, board.clock_hz, core_hz)
    phy: Any = None
    if isinstance(board.memory, Dram):
        phy, module = simulated_memory(board.memory.module, board.clock_hz, board.memory.data_bits, memory_bytes)
    else:
        module = _on_chip(ModelRam, min(memory_bytes, board.memory.memory_bytes), config)
    soc = System(
        platform, clocks, phy=phy, module=module, config=config, clock_hz=board.clock_hz, core_hz=core_hz,
        baud=board.baud, design=DESIGN_MARK, small=board.small, patches=board.litedram_patches,
    )  # fmt: skip
    top = f"daedal_{board.name}_simulated"
    soc.finalize()
    verilog, design = _numbered(_plain(str(platform.get_verilog(soc, name=top))) + "\n" + core_verilog(config))
    description = _description(board, config, core_hz, soc, top)
    description |= {"simulated": True, "division": clocks.division, "serial": serial, "design": design}
    return Generated(verilog, {}, description)


def _on_chip(ram: Any, memory_bytes: int, config: Config) -> Any:
    from daedal.fpga.soc.on_chip_memory import OnChipMemory

    return OnChipMemory(ram, memory_bytes=memory_bytes, width=8 * config.bus_bytes)


def _description(board: Board, config: Config, core_hz: float, soc: Any, top: str) -> dict[str, Any]:
    from litex.soc.integration.export import get_csr_json

    from daedal.fpga.soc.soc import sdram_description

    found = json.loads(get_csr_json(soc.csr_regions, soc.constants, soc.mem_regions))
    regions = {name: {key: region[key] for key in ("base", "size")} for name, region in found["memories"].items()}
    return {
        "schema": 1,
        "top": top,
        "board": board.name,
        "config": asdict(config) | {"hash": config.hash},
        "clock_hz": int(board.clock_hz),
        "core_hz": int(core_hz),
        "baud": board.baud,
        "memory": regions["main_ram"],
        "registers": regions["daedal"],
        "sdram": sdram_description(soc.sdram.controller) if hasattr(soc, "sdram") else None,
        "soc": found,
    }


@contextlib.contextmanager
def _quiet_litex() -> Iterator[None]:
    """Keep LiteX's log, its changes of the working directory and of ``sys.stderr``, and its warnings, to itself."""
    where, errors, level = os.getcwd(), sys.stderr, logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        os.chdir(where)
        sys.stderr = errors
