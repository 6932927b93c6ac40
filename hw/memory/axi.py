"""Signatures of the memory and control ports, with AXI's own names so that Verilog has ``read0__arvalid``.

One transaction order per port: the only identifier is 0. Bursts are INCR, of whole lines.
"""

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config import ADDRESS_BITS, Config
from daedal.hw.isa.registers import REGISTER_ADDRESS_BITS

BOUNDARY = 4096
"""Bytes that no burst crosses."""


class Burst(enum.Enum, shape=2):
    """How addresses of a burst go on; the machine uses INCR only."""

    FIXED = 0
    INCR = 1
    WRAP = 2


class Response(enum.Enum, shape=2):
    """Outcome of a transaction; SLVERR and DECERR are errors."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


def is_error(response: object) -> object:
    """Amaranth expression: whether a two-bit ``response`` is SLVERR or DECERR."""
    return response[1]  # type: ignore[index]


def beat_size(config: Config) -> int:
    """The value of AxSIZE for whole lines."""
    return exact_log2(config.bus_bytes)


class ReadMaster(wiring.Signature):
    """The AR and R channels of an AXI4 master, ``bus_bytes`` wide, one identifier."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "arid": Out(1),
                "araddr": Out(ADDRESS_BITS),
                "arlen": Out(8),
                "arsize": Out(3),
                "arburst": Out(2),
                "arvalid": Out(1),
                "arready": In(1),
                "rid": In(1),
                "rdata": In(8 * config.bus_bytes),
                "rresp": In(2),
                "rlast": In(1),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class WriteMaster(wiring.Signature):
    """The AW, W and B channels of an AXI4 master, ``bus_bytes`` wide, one identifier."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "awid": Out(1),
                "awaddr": Out(ADDRESS_BITS),
                "awlen": Out(8),
                "awsize": Out(3),
                "awburst": Out(2),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(8 * config.bus_bytes),
                "wstrb": Out(config.bus_bytes),
                "wlast": Out(1),
                "wvalid": Out(1),
                "wready": In(1),
                "bid": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
            }
        )


class LiteSlave(wiring.Signature):
    """An AXI4-Lite slave of 32-bit registers: signals that the host drives are inputs."""

    def __init__(self) -> None:
        super().__init__(
            {
                "awaddr": In(REGISTER_ADDRESS_BITS),
                "awvalid": In(1),
                "awready": Out(1),
                "wdata": In(32),
                "wstrb": In(4),
                "wvalid": In(1),
                "wready": Out(1),
                "bresp": Out(2),
                "bvalid": Out(1),
                "bready": In(1),
                "araddr": In(REGISTER_ADDRESS_BITS),
                "arvalid": In(1),
                "arready": Out(1),
                "rdata": Out(32),
                "rresp": Out(2),
                "rvalid": Out(1),
                "rready": In(1),
            }
        )
