"""The registers of the bundles at the event unit."""

from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM

UNSETTLED = 10
"""Entries behind the free ones that may still be wanted: by steps on their way, and by a fault of one of these."""


def bundle_entries(config: Config) -> int:
    """Entries of the store: enough for a bundle per cycle, unless all levels are serial."""
    return 16 if config.is_serial else 32


def entry_bits(config: Config) -> int:
    """Bits of an entry's number."""
    return exact_log2(bundle_entries(config))


class BundleStore(wiring.Component):
    """Keeps registers in the order in which bundles come; entries are used again in that order.

    So they need not go through all stages of the event unit.

    Members
    -------
    write, registers : ``In(1)``, ``In(ArrayLayout(address_bits, registers))``
        A bundle comes. The first one goes to entry 0.
    entry, kept : ``In(entry_bits(config))``, ``Out`` like ``registers``
        What an entry keeps, a cycle later.
    """

    def __init__(self, config: Config) -> None:
        registers = data.ArrayLayout(config.address_bits, config.registers)
        super().__init__(
            {
                "write": In(1),
                "registers": In(registers),
                "entry": In(entry_bits(config)),
                "kept": Out(registers),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        depth = bundle_entries(self._config)
        m.submodules.bundles = bundles = memory.Memory(
            shape=len(self.registers.as_value()), depth=depth, init=[], attrs=BLOCK_RAM
        )
        write, read = bundles.write_port(), bundles.read_port(domain="sync")
        tail = Signal(range(depth))
        with m.If(self.write):
            m.d.sync += tail.eq(tail + 1)
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(tail),
            write.data.eq(self.registers),
            read.addr.eq(self.entry),
            Cat(self.kept).eq(read.data),
        ]
        return m
