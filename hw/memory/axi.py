"""Signatures of the memory and control ports, with AXI's own names so that Verilog has ``read0__arvalid``.

One transaction order per port: the only identifier is 0, but where ports are joined. Bursts are INCR, of whole lines.
"""

from collections.abc import Mapping
from typing import Any

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.isa.registers import REGISTER_ADDRESS_BITS

MASTERS = ("ports", "single", "single-axi3")
"""How a tile reaches memory: by the core's ports, or by one AXI4 or AXI3 master."""

BOUNDARY = 4096
"""Bytes that no burst crosses."""


class Burst(enum.Enum, shape=2):
    """How addresses of a burst go on; the machine uses INCR only."""

    FIXED = 0
    INCR = 1
    WRAP = 2


def is_error(response: Any) -> Any:
    """Amaranth expression: whether a two-bit ``response`` is SLVERR or DECERR."""
    return response[1]


def beat_size(config: Config) -> int:
    """The value of AxSIZE for whole lines."""
    return exact_log2(config.bus_bytes)


class Described(wiring.Signature):
    """A signature whose members have a meaning each, in ``meanings``.

    ``members`` maps a name to the member and its meaning.
    """

    def __init__(self, members: Mapping[str, tuple[wiring.Member, str]]) -> None:
        super().__init__({name: member for name, (member, _) in members.items()})
        self.meanings = {name: meaning for name, (_, meaning) in members.items()}


class ReadMaster(Described):
    """The AR and R channels of an AXI4 master, ``bus_bytes`` wide, one identifier."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "arid": (Out(1), "identifier, always 0"),
                "araddr": (Out(config.address_bits), "byte address of the burst, a multiple of the line"),
                "arlen": (Out(8), f"beats of the burst less 1, at most {MAX_BURST - 1}"),
                "arsize": (Out(3), "log2 of the bytes of a beat, constant"),
                "arburst": (Out(2), "kind of burst, always INCR"),
                "arvalid": (Out(1), "the address is valid"),
                "arready": (In(1), "the address is taken"),
                "rid": (In(1), "identifier, ignored"),
                "rdata": (In(8 * config.bus_bytes), "a line; byte 0 is in the lowest bits"),
                "rresp": (In(2), "outcome; SLVERR and DECERR stop the launch with fault MEMORY_ERROR"),
                "rlast": (In(1), "last beat of the burst"),
                "rvalid": (In(1), "the line is valid"),
                "rready": (Out(1), "the line is taken"),
            }
        )


class WriteMaster(Described):
    """The AW, W and B channels of an AXI4 master, ``bus_bytes`` wide, one identifier."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "awid": (Out(1), "identifier, always 0"),
                "awaddr": (Out(config.address_bits), "byte address of the burst, a multiple of the line"),
                "awlen": (Out(8), f"beats of the burst less 1, at most {MAX_BURST - 1}"),
                "awsize": (Out(3), "log2 of the bytes of a beat, constant"),
                "awburst": (Out(2), "kind of burst, always INCR"),
                "awvalid": (Out(1), "the address is valid; all data of its burst are there by then"),
                "awready": (In(1), "the address is taken"),
                "wdata": (Out(8 * config.bus_bytes), "a line; byte 0 is in the lowest bits"),
                "wstrb": (Out(config.bus_bytes), "bytes of the line to write"),
                "wlast": (Out(1), "last beat of the burst"),
                "wvalid": (Out(1), "the line is valid"),
                "wready": (In(1), "the line is taken"),
                "bid": (In(1), "identifier, ignored"),
                "bresp": (In(2), "outcome; SLVERR and DECERR stop the launch with fault MEMORY_ERROR"),
                "bvalid": (In(1), "the burst is acknowledged"),
                "bready": (Out(1), "the acknowledgement is taken"),
            }
        )


class JoinedMaster(Described):
    """An AXI4 master that reads with as many identifiers as a core has ports, and writes with identifier 0.

    Answers of different identifiers may come in any order, and their beats mixed. Nothing but B tells that a write was
    done before a read. With ``is_axi3`` it is an AXI3 master: lengths have four bits, and W has an identifier too.
    """

    def __init__(self, config: Config, *, is_axi3: bool) -> None:
        ids, lengths = max(1, exact_log2(config.ports)), 4 if is_axi3 else 8
        changed = {
            "arid": (Out(ids), "number of the core's read port"),
            "arlen": (Out(lengths), f"beats of the burst less 1, at most {MAX_BURST - 1}"),
            "rid": (In(ids), "identifier of the burst; beats of bursts with different ones may be mixed"),
            "awid": (Out(ids), "identifier, always 0"),
            "awlen": (Out(lengths), f"beats of the burst less 1, at most {MAX_BURST - 1}"),
            **({"wid": (Out(ids), "identifier, always 0: bursts are never mixed")} if is_axi3 else {}),
            "bid": (In(ids), "identifier, ignored"),
        }
        both = [ReadMaster(config), WriteMaster(config)]
        known = {name: (member, each.meanings[name]) for each in both for name, member in each.members.items()}
        super().__init__({name: changed.get(name, found) for name, found in {**known, **changed}.items()})


class LiteSlave(Described):
    """An AXI4-Lite slave of 32-bit registers: signals that the host drives are inputs."""

    def __init__(self, address_bits: int = REGISTER_ADDRESS_BITS) -> None:
        super().__init__(
            {
                "awaddr": (In(address_bits), "byte address of the register to write"),
                "awvalid": (In(1), "the address is valid"),
                "awready": (Out(1), "the address is taken, in the same cycle as the data"),
                "wdata": (In(32), "value to write"),
                "wstrb": (In(4), "ignored: registers are written whole"),
                "wvalid": (In(1), "the value is valid"),
                "wready": (Out(1), "the value is taken"),
                "bresp": (Out(2), "outcome, always OKAY"),
                "bvalid": (Out(1), "the write is acknowledged"),
                "bready": (In(1), "the acknowledgement is taken"),
                "araddr": (In(address_bits), "byte address of the register to read"),
                "arvalid": (In(1), "the address is valid"),
                "arready": (Out(1), "the address is taken"),
                "rdata": (Out(32), "value of the register"),
                "rresp": (Out(2), "outcome, always OKAY"),
                "rvalid": (Out(1), "the value is valid"),
                "rready": (In(1), "the value is taken"),
            }
        )
