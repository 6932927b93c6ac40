"""Memory inside of the FPGA, for boards without DRAM: with ports like those of LiteDRAM's crossbar."""

from collections.abc import Callable
from typing import Any

from litedram.common import LiteDRAMNativePort
from litex.gen import LiteXModule
from migen import Case, If, Memory, Signal


class OnChipMemory(LiteXModule):
    """A memory that any number of ports share; one access per cycle, the first port that asks has it.

    A line is read three cycles after its command was taken, and written one cycle after.

    Parameters
    ----------
    ram
        Makes the memory itself, of ``(lines, width)``: a module with ``address``, ``data_w``, ``mask`` (a bit per
        byte), ``write``, and ``data_r``, a cycle after ``address``.
    memory_bytes
        Size, bytes, a power of two.
    width
        Bits of a line.
    """

    def __init__(self, ram: Callable[[int, int], Any], *, memory_bytes: int, width: int) -> None:
        self.lines, self.width = memory_bytes * 8 // width, width
        self.ram = ram(self.lines, width)
        self.ports: list[LiteDRAMNativePort] = []

    def get_port(self, mode: str = "both", data_width: int | None = None) -> LiteDRAMNativePort:
        """One more port; it must be as wide as a line."""
        if data_width not in (None, self.width):
            raise ValueError(f"data_width must be {self.width}, not {data_width!r}")
        port = LiteDRAMNativePort(mode, (self.lines - 1).bit_length(), self.width, id=len(self.ports))
        self.ports.append(port)
        return port

    def do_finalize(self) -> None:
        """Joins the ports: a command in the first cycle, the access in the second, what was read in the third."""
        count = len(self.ports)
        taken, reading = Signal(count), Signal(count)
        write = Signal()
        free: Any = 1
        for k, port in enumerate(self.ports):
            self.comb += [
                port.cmd.ready.eq(free),
                port.wdata.ready.eq(taken[k] & write),
                port.rdata.valid.eq(reading[k]),
                port.rdata.data.eq(self.ram.data_r),
            ]
            self.sync += [
                taken[k].eq(port.cmd.valid & port.cmd.ready),
                reading[k].eq(taken[k] & ~write),
                If(port.cmd.valid & port.cmd.ready, self.ram.address.eq(port.cmd.addr), write.eq(port.cmd.we)),
            ]
            free = free & ~port.cmd.valid
        cases = {
            1 << k: [self.ram.data_w.eq(port.wdata.data), self.ram.mask.eq(port.wdata.we)]
            for k, port in enumerate(self.ports)
        }
        self.comb += [self.ram.write.eq((taken != 0) & write), Case(taken, cases | {"default": []})]


class ModelRam(LiteXModule):
    """The memory itself as plain registers, for simulation and for block RAM; see :class:`OnChipMemory`."""

    def __init__(self, lines: int, width: int) -> None:
        self.address, self.write = Signal(max=lines), Signal()
        self.data_w, self.data_r, self.mask = Signal(width), Signal(width), Signal(width // 8)
        memory = Memory(width, lines)
        port = memory.get_port(write_capable=True, we_granularity=8)
        self.specials += memory, port
        self.comb += [
            port.adr.eq(self.address),
            port.dat_w.eq(self.data_w),
            self.data_r.eq(port.dat_r),
            If(self.write, port.we.eq(self.mask)),
        ]
