"""``generate``: the Verilog of a DRAM and its description, made once per version of everything that goes into it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from daedal.base.cache import cache_directory, keep_text
from daedal.cosim.litedram.memories import Dram

PACKAGES = ("litedram", "litex", "migen")
"""What the text is made with; their versions are part of its key."""


@dataclass(frozen=True)
class Description:
    """What a user of the Verilog must know, and what figures must be given with.

    All ports are synchronous to ``sys_clk``; ``sys_rst`` is high for some cycles first. No initialisation is needed.
    A word is ``word_bytes``; the address of a word is, from its highest bits: row, bank, column.

    Port ``k`` takes a command in a cycle with ``pk_cmd_valid`` and ``pk_cmd_ready``: a read of the word
    ``pk_cmd_addr``, or a write with ``pk_cmd_we``. Commands to one bank take effect in the order in which they were
    taken. Some cycles later, in the order of the port's commands of its kind, and no more than one port in a cycle:

    - ``pk_wdata_ready`` is high and ``wdata`` and ``wdata_we`` (a bit for each byte) must have the port's next word.
      ``pk_wdata_ready`` is a register, so that it is known from the clock edge on.
    - ``pk_rdata_valid`` is high and ``rdata`` has the port's next word, which cannot be refused.

    The rows are kept outside. In a cycle with ``row_read``, ``row_read_data`` must have the word ``row_read_word`` of
    bank ``row_read_bank`` before the clock edge; in one with a bit of ``row_write`` on, its byte of ``row_write_data``
    is to be written to the word ``row_write_word`` of bank ``row_write_bank`` at the edge. A bank's words are numbered
    row after row (``1 << column_bits`` to each). ``refresh`` is high when a refresh is sent.

    Attributes
    ----------
    name, module, memtype
        The DRAM: its name in Daedal, LiteDRAM's class of the chip, and DDR3 or DDR4.
    top
        Name of the Verilog module.
    ports
        User ports.
    data_bits, clock
        Width of the DRAM's bus; Hz of ``sys_clk``.
    word_bytes
        Bytes of a word.
    column_bits, bank_bits, row_bits
        Split of a word's address, from the lowest bits.
    checks
        The model reports violations of the DRAM's timing: it calls ``daedal_dram_report``.
    timing, controller, phy
        LiteDRAM's settings, in cycles: the defaults of its module, controller and PHY model.
    versions
        Versions of the packages.
    """

    name: str
    module: str
    memtype: str
    top: str
    ports: int
    data_bits: int
    clock: int
    word_bytes: int
    column_bits: int
    bank_bits: int
    row_bits: int
    checks: bool
    timing: Mapping[str, int]
    controller: Mapping[str, Any]
    phy: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def banks(self) -> int:
        """Banks of the DRAM."""
        return 1 << self.bank_bits

    @property
    def page_bytes(self) -> int:
        """Bytes of a row of one bank."""
        return self.word_bytes << self.column_bits

    @property
    def address_bits(self) -> int:
        """Width of ``pk_cmd_addr``."""
        return self.column_bits + self.bank_bits + self.row_bits

    def text(self) -> str:
        """One line with all that shapes the timing, to be printed beside figures."""
        parts = (
            f"{self.name}: {self.memtype} {self.module} ×{self.data_bits} at {self.clock / 1e6:g} MHz, "
            f"{self.banks} banks of {self.page_bytes}-byte pages, {self.ports} user ports",
            "timing in cycles " + ", ".join(f"{name} {cycles}" for name, cycles in self.timing.items()),
            "controller " + ", ".join(f"{name} {value}" for name, value in self.controller.items()),
            "PHY model " + ", ".join(f"{name} {value}" for name, value in self.phy.items()),
            ", ".join(f"{name} {version}" for name, version in self.versions.items()),
        )
        return "; ".join(parts)


@dataclass(frozen=True)
class Generated:
    """The Verilog and what it is."""

    verilog: str
    description: Description


def generate(
    dram: Dram, ports: int, *, top: str = "dram", checks: bool = False, wrong: Mapping[str, int] | None = None
) -> Generated:
    """Controller, crossbar and SDRAM model of ``dram`` with ``ports`` user ports as one Verilog module called ``top``.

    The text is kept in the cache by a digest of the generator's sources, the packages' versions and the options, and is
    the same for the same key.

    Parameters
    ----------
    dram
        One of :data:`MEMORIES`.
    ports
        User ports, each for reads and writes.
    top
        Name of the Verilog module.
    checks
        LiteDRAM's model reports violations of the DRAM's timing. It calls ``daedal_dram_report`` with a text such as
        ``PRE->ACT violation on bank %0d``, the time in picoseconds and the value in the text.
    wrong
        Timings of the controller (``tRP``, ``tRCD``, …) to be replaced, cycles: for tests of the checks.

    Raises
    ------
    ValueError
        There is no such timing, or fewer than 1 or more than 16 ports.
    """
    if not 1 <= ports <= 16:
        raise ValueError(f"ports must be from 1 to 16, not {ports!r}")
    timings = dict(wrong or {})

    def make() -> str:
        made = _make(dram, ports, top, checks, timings)
        return json.dumps({"verilog": made.verilog, "description": asdict(made.description)})

    name = f"{dram.name}-{_key(dram, ports, top, checks, timings)}.json"
    kept = json.loads(keep_text(cache_directory() / name, make))
    return Generated(kept["verilog"], Description(**kept["description"]))


def _make(dram: Dram, ports: int, top: str, checks: bool, wrong: dict[str, int]) -> Generated:
    from daedal.cosim.litedram.generator import TIMINGS, Top, verilog_of  # takes a second

    for name in wrong:
        if name not in TIMINGS:
            raise ValueError(f"wrong must name timings among {', '.join(TIMINGS)}, not {name!r}")
    made = Top(dram, ports, checks=checks, wrong=wrong)
    facts = made.facts()
    verilog = verilog_of(made, top)
    versions = {package: metadata.version(package) for package in PACKAGES}
    description = Description(
        name=dram.name, module=dram.module, top=top, ports=ports, data_bits=dram.data_bits, clock=dram.clock,
        word_bytes=dram.word_bytes, checks=checks, versions=versions, **facts,
    )  # fmt: skip
    return Generated(verilog, description)


def _key(*options: object) -> str:
    digest = hashlib.sha256(repr((options, [metadata.version(package) for package in PACKAGES])).encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:20]
