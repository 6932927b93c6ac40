"""The registers of the bundles at the event unit."""

from amaranth.hdl import Cat, Elaboratable, Module
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM

UNSETTLED = 10
"""Entries behind the free ones that may still be wanted: by steps on their way, and by a fault of one of these."""


def bundle_entries(config: Config) -> int:
    """Entries of the store: those of bundles to be dealt, or enough for a bundle per cycle, unless all levels are
    serial.
    """
    return config.dealt_bundles or (16 if config.is_serial else 32)


def entry_bits(config: Config) -> int:
    """Bits of an entry's number."""
    return exact_log2(bundle_entries(config))


class BundleStore(wiring.Component):
    """Keeps registers by entry, so that they need not go through all stages of the event unit.

    Members
    -------
    write, write_entry, registers : ``In(1)``, ``In``, ``In(ArrayLayout(address_bits, registers))``
        A bundle comes, for this entry.
    entry, kept : ``In(entry_bits(config))``, ``Out`` like ``registers``
        What an entry keeps, a cycle later.
    """

    def __init__(self, config: Config) -> None:
        registers = data.ArrayLayout(config.address_bits, config.registers)
        super().__init__(
            {
                "write": In(1),
                "write_entry": In(entry_bits(config)),
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
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_entry),
            write.data.eq(self.registers),
            read.addr.eq(self.entry),
            Cat(self.kept).eq(read.data),
        ]
        return m
