"""Starting a board's DRAM over the link: LiteDRAM's sequence of commands, then read levelling.

The controller has a switch that hands the DRAM's pins to registers (LiteDRAM's DFI injector). A PHY that has to be
levelled has a delay and a bit slip for each lane of eight data bits. All lanes go through all settings together; a
pattern is written and read at each; each lane then takes the middle of its longest row of delays that read it.
"""

import random
import struct
from collections.abc import Sequence
from typing import Any, Protocol

from daedal.errors import LevellingFailed

CONTROL = {"DFII_CONTROL_SEL": 1, "DFII_CONTROL_CKE": 2, "DFII_CONTROL_ODT": 4, "DFII_CONTROL_RESET_N": 8}
COMMAND = {
    "DFII_COMMAND_CS": 1, "DFII_COMMAND_WE": 2, "DFII_COMMAND_CAS": 4, "DFII_COMMAND_RAS": 8,
    "DFII_COMMAND_WRDATA": 16, "DFII_COMMAND_RDDATA": 32,
}  # fmt: skip
"""LiteDRAM's names for the bits of its registers, which its sequences use."""

CS, WE, CAS, RAS, WRDATA, RDDATA = COMMAND.values()
HARDWARE = CONTROL["DFII_CONTROL_SEL"]
SOFTWARE = CONTROL["DFII_CONTROL_CKE"] | CONTROL["DFII_CONTROL_ODT"] | CONTROL["DFII_CONTROL_RESET_N"]

SEEDS = (42, 84, 36)
"""Of the patterns that each setting has to read."""

CHECK_BYTES = 256
"""Written and read over the bus at the end."""


class Link(Protocol):
    """What this needs of a link."""

    def read(self, address: int, size: int, /) -> bytes:
        """Bytes of the board's bus."""
        ...

    def write_all(self, writes: Sequence[tuple[int, bytes]], /) -> None:
        """Writes in this order."""
        ...

    def pause(self, seconds: float, /) -> None:
        """Let time go by."""
        ...


def flags(text: str) -> int:
    """The value of names joined with ``|``, of CONTROL or COMMAND."""
    names = text.split("|")
    return sum((CONTROL | COMMAND)[name] for name in names)


def longest_run(good: Sequence[bool]) -> tuple[int, int]:
    """Start and length of the longest row of True."""
    best, start = (0, 0), 0
    for position, value in enumerate(good):
        if not value:
            start = position + 1
        elif position + 1 - start > best[1]:
            best = start, position + 1 - start
    return best


class Dram:
    """The DRAM of a board.

    Parameters
    ----------
    link
        The way to the board's bus.
    description
        What ``daedal.fpga.soc.generator`` says of the board.
    """

    def __init__(self, link: Link, description: dict[str, Any]) -> None:
        self._link = link
        self._csr: dict[str, dict[str, Any]] = description["soc"]["csr_registers"]
        self._sequence: list[dict[str, Any]] = description["sdram"]["sequence"]
        self._memory: int = description["memory"]["base"]
        self._hertz: float = description["clock_hz"]
        phy = description["sdram"]["phy"]
        self._phases, self._read_phase, self._write_phase = phy["nphases"], phy["rdphase"], phy["wrphase"]
        self._lanes = phy["databits"] // 8
        self._phase_bytes = phy["dfi_databits"] // 8
        self._levelled: bool = phy["read_leveling"]
        self._delays, self._slips = phy["delays"], max(1, phy["bitslips"])
        self.windows: list[tuple[int, int, int]] = []
        """For each lane: bit slip, first good delay, number of good delays."""

    def start(self) -> None:
        """Initialise the DRAM, level its PHY and check that memory keeps what is written.

        Raises LevellingFailed if it does not.
        """
        self._write([("sdram_dfii_control", SOFTWARE)])
        for step in self._sequence:
            self._write([("sdram_dfii_pi0_address", step["address"]), ("sdram_dfii_pi0_baddress", step["bank"])])
            value = flags(step["command"])
            if step["command"].startswith("DFII_CONTROL"):
                self._write([("sdram_dfii_control", value)])
            else:
                self._write(self._issue(0, value))
            self._link.pause(step["wait"] / self._hertz)
        if self._levelled:
            self._level()
        self._write([("sdram_dfii_control", HARDWARE)])
        self._check()

    def set_lanes(self, lanes: int, slip: int, delay: int) -> None:
        """Bit slip and delay of the lanes in this mask."""
        writes = [("ddrphy_dly_sel", lanes), ("ddrphy_rdly_dq_rst", 1), ("ddrphy_rdly_dq_bitslip_rst", 1)]
        writes += [("ddrphy_rdly_dq_bitslip", 1)] * slip + [("ddrphy_rdly_dq_inc", 1)] * delay
        every = (1 << self._lanes) - 1
        # A pause of all lanes at once brings the read pointers of an ECP5's lanes in step again.
        self._write([*writes, ("ddrphy_dly_sel", 0), ("ddrphy_dly_sel", every), ("ddrphy_dly_sel", 0)])

    def reading(self) -> list[bool]:
        """Whether each lane reads all patterns with the present setting."""
        good = [True] * self._lanes
        for seed in SEEDS:
            pattern = [random.Random(seed + phase).randbytes(self._phase_bytes) for phase in range(self._phases)]
            found, bursts = self._try(pattern)
            for lane in range(self._lanes):
                same = all(
                    a[lane :: self._lanes] == b[lane :: self._lanes] for a, b in zip(pattern, found, strict=True)
                )
                good[lane] &= same and bool(bursts >> lane & 1)
            if not any(good):
                break
        return good

    def _level(self) -> None:
        """Find and set each lane's bit slip and delay."""
        every = (1 << self._lanes) - 1
        best = [(0, 0, 0)] * self._lanes
        for slip in range(self._slips):
            rows = []
            for delay in range(self._delays):
                self.set_lanes(every, slip, delay)
                rows.append(self.reading())
            for lane in range(self._lanes):
                start, length = longest_run([row[lane] for row in rows])
                if length > best[lane][2]:
                    best[lane] = slip, start, length
        for lane, (slip, start, length) in enumerate(best):
            if not length:
                raise LevellingFailed(
                    f"lane {lane} of the board's DRAM reads no pattern right with any of {self._delays} delays and "
                    f"{self._slips} bit slips: check that the bitstream is for this board, and the board's power"
                )
            self.set_lanes(1 << lane, slip, start + (length - 1) // 2)
        self.windows = best
        bad = [lane for lane, good in enumerate(self.reading()) if not good]
        if bad:
            raise LevellingFailed(
                f"lane {bad[0]} of the board's DRAM stopped reading right at the delay that was chosen, {best[bad[0]]} "
                "(slip, first, number of good delays): open the device again; if it stays, check the board's power"
            )

    def _check(self) -> None:
        wanted = random.Random(1).randbytes(CHECK_BYTES)
        self._link.write_all([(self._memory, wanted)])
        found = self._link.read(self._memory, CHECK_BYTES)
        if found != wanted:
            byte = next(n for n in range(CHECK_BYTES) if found[n] != wanted[n])
            raise LevellingFailed(
                f"the board's memory has {found[byte]:#04x} at byte {byte}, where {wanted[byte]:#04x} was written: "
                "check that the bitstream is for this board, and open the device again"
            )

    def _try(self, pattern: list[bytes]) -> tuple[list[bytes], int]:
        """Write a burst at row 0 of bank 0 and read it: the bytes of each phase, and the lanes that saw a burst."""
        place = [("sdram_dfii_pi0_address", 0), ("sdram_dfii_pi0_baddress", 0)]
        writes = [*place, *self._issue(0, RAS | CS)]
        for phase, data in enumerate(pattern):
            writes.append((f"sdram_dfii_pi{phase}_wrdata", int.from_bytes(data, "little")))
        for phase, command in ((self._write_phase, CAS | WE | CS | WRDATA), (self._read_phase, CAS | CS | RDDATA)):
            if command & RDDATA and "ddrphy_burstdet_clr" in self._csr:
                writes.append(("ddrphy_burstdet_clr", 1))
            writes += [(f"sdram_dfii_pi{phase}_address", 0), (f"sdram_dfii_pi{phase}_baddress", 0)]
            writes += self._issue(phase, command)
        self._write([*writes, *place, *self._issue(0, RAS | WE | CS)])
        found = [self._read(f"sdram_dfii_pi{phase}_rddata") for phase in range(self._phases)]
        every = (1 << self._lanes) - 1
        bursts = self._read("ddrphy_burstdet_seen") if "ddrphy_burstdet_seen" in self._csr else every
        return [value.to_bytes(self._phase_bytes, "little") for value in found], bursts

    def _issue(self, phase: int, command: int) -> list[tuple[str, int]]:
        name = f"sdram_dfii_pi{phase}_command"
        return [(name, command), (f"{name}_issue", 1)]

    def _write(self, values: Sequence[tuple[str, int]]) -> None:
        """Write registers by name, all on their way at once; LiteX has the highest word of a register first."""
        writes: list[tuple[int, bytes]] = []
        for name, value in values:
            where = self._csr[name]
            words = [value >> 32 * n & 0xFFFF_FFFF for n in reversed(range(where["size"]))]
            raw = struct.pack(f"<{len(words)}I", *words)
            if writes and writes[-1][0] + len(writes[-1][1]) == where["addr"]:  # one burst of registers side by side
                writes[-1] = writes[-1][0], writes[-1][1] + raw
            else:
                writes.append((where["addr"], raw))
        self._link.write_all(writes)

    def _read(self, name: str) -> int:
        where = self._csr[name]
        value = 0
        for word in struct.unpack(f"<{where['size']}I", self._link.read(where["addr"], 4 * where["size"])):
            value = value << 32 | word
        return value
