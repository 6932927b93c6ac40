"""What the harness knows of a model's ports: the headers ``ports.h`` and ``bind_pins.h``."""

from collections.abc import Mapping
from dataclasses import dataclass

from daedal.cosim.builder.latched_inputs import SUFFIX
from daedal.hw.config.core import Config
from daedal.hw.control.system_registers import system_address_bits
from daedal.hw.isa.registers import REGISTER_ADDRESS_BITS

_READ_OUT = ("arvalid", "araddr", "arlen", "arsize", "arburst", "rready")
_READ = ("arvalid", "arready", "araddr", "arlen", "arsize", "arburst", "rvalid", "rready", "rlast", "rresp", "rdata")
_WRITE_IN = ("awready", "wready", "bvalid", "bresp")
_WRITE = (
    "awvalid", "awready", "awaddr", "awlen", "awsize", "awburst", "wvalid", "wready", "wlast", "wdata", "wstrb",
    "bvalid", "bready", "bresp",
)  # fmt: skip
_LITE_OUT = ("awready", "wready", "bvalid", "arready", "rvalid", "rdata")
_LITE = (
    "awvalid", "awready", "awaddr", "wvalid", "wready", "wdata", "wstrb", "bvalid", "bready", "arvalid", "arready",
    "araddr", "rvalid", "rready", "rdata",
)  # fmt: skip


@dataclass(frozen=True)
class Ports:
    """The ports of a model's top module: those of a core, or of a system of ``tiles`` of them.

    ``joined``: each tile has one master.
    """

    config: Config
    tiles: int | None = None
    joined: bool = False

    @property
    def count(self) -> int:
        """Tiles, of which a core is one."""
        return 1 if self.tiles is None else self.tiles

    def headers(self) -> Mapping[str, str]:
        """The C++ headers by name."""
        return {"ports.h": self._sizes(), "bind_pins.h": self._binding()}

    def _sizes(self) -> str:
        address = "IData" if self.config.address_bits <= 32 else "QData"
        bits = REGISTER_ADDRESS_BITS if self.tiles is None else system_address_bits(self.tiles)
        register = "CData" if bits <= 8 else "SData" if bits <= 16 else "IData"
        return f"""#pragma once
#include "verilated.h"
constexpr unsigned BUS_BYTES = {self.config.bus_bytes}, READ_PORTS = {self.config.ports}, TILES = {self.count};
constexpr bool IS_SYSTEM = {int(self.tiles is not None)}, IS_JOINED = {int(self.joined)};
using AddressPin = {address};
using RegisterPin = {register};
"""

    def _binding(self) -> str:
        cases, joined = [], []
        for tile in range(self.count):
            tile_name = "" if self.tiles is None else f"tile{tile}_"
            reads = [] if self.joined else [f"{tile_name}read{k}" for k in range(self.config.ports)]
            write = tile_name + ("memory" if self.joined else "write")
            listed = ", ".join(f"{{{_pins(name, _READ, set(_READ) - set(_READ_OUT))}}}" for name in reads)
            cases.append(f"    case {tile}: return {{{{{listed}}}, {{{_pins(write, _WRITE, set(_WRITE_IN))}}}}};")
            if self.joined:
                found = f"{{{_pins(write, _READ, set(_READ) - set(_READ_OUT))}}}"
                ids = _pins(write, ("arid", "rid"), {"rid"})
                joined.append(f"    case {tile}: return {{{found}, {ids}}};")
        return "\n".join([
            '#pragma once', '#include "pins.h"', "namespace daedal {",
            "inline Pins bind_pins(Vmodel &model, unsigned tile) {", "  switch (tile) {", *cases,
            "    default: return {};", "  }", "}",
            "inline JoinedPins bind_joined(Vmodel &model, unsigned tile) {", "  (void)model;", "  switch (tile) {",
            *joined, "    default: return {};", "  }", "}",
            "inline LitePins bind_lite(Vmodel &model) {",
            f"  return {{{_pins('control', _LITE, set(_LITE) - set(_LITE_OUT))}}};", "}",
            # A word of some C compilers, so it gets a prefix.
            "inline CData *bind_interrupt(Vmodel &model) { return &model.__SYM__interrupt; }",
            "}  // namespace daedal", "",
        ])  # fmt: skip


def _pins(interface: str, signals: tuple[str, ...], inputs: set[str]) -> str:
    """Pointers to the pins of an interface. Verilator writes two underscores as ``___05F``; inputs are those of
    registers.
    """
    return ", ".join(f"&model.{interface}___05F{signal}{SUFFIX if signal in inputs else ''}" for signal in signals)
