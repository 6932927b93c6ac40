"""Mapping classes: a bijection in every superblock, and what they are said to be in Python, NumPy, RTL and emulator."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config.core import MAX_BURST, PRESETS, SMALLEST_GRANULE, Config
from daedal.hw.isa.address_mapping import (
    CLASSES,
    COPIED,
    HASHED,
    PLAIN,
    class_of,
    copies,
    granule_bytes,
    in_class,
    memory_address,
    memory_addresses,
    place_of,
)
from daedal.hw.memory.address_map import (
    banks_of_port,
    burst_mask,
    line_class,
    memory_line,
    memory_value,
    port_of,
    program_value,
)
from tests.reference.mapping import granule, memory_place

SHAPES = {
    **PRESETS,
    "two banks": replace(Config(), ports=2, banks=2, page_bytes=512),
    "one bank": replace(Config(), ports=1, banks=1, page_bytes=64),
    "sixteen banks": replace(Config(), ports=4, banks=16, page_bytes=1024),
    "32 bits": replace(Config(), address_bits=32),
    "page of a granule": replace(Config(), ports=1, banks=8, page_bytes=64),
}
SUPERBLOCKS = (0, 1, 6, 0x155)
each_shape = pytest.mark.parametrize("config", SHAPES.values(), ids=SHAPES)
each_class = pytest.mark.parametrize("mapping", range(CLASSES))


def _random_addresses(config: Config, count: int = 400) -> Iterator[int]:
    rng = np.random.default_rng(3)
    for _ in range(count):
        yield int(rng.integers(1 << config.address_bits)) >> int(rng.integers(3)) * 7
    for mapping in range(CLASSES):
        yield in_class(0, mapping, config)
        yield in_class((1 << config.place_bits) - 1, mapping, config)


def _expected(address: int, config: Config) -> int:
    """The memory address of a program's address, by the reference."""
    return memory_place(address % (1 << config.place_bits), address >> config.place_bits, config)


BY_HAND = {
    ("ddr3", 1): {6: 0x1000, 7: 0x2000, 8: 0x800, 9: 0x1040, 10: 0x2080, 11: 0x900, 12: 0x1200, 13: 0x2400, 14: 0x4800,
                  15: 0x9000, 16: 0x12000, 36: 0x10_0000_1000},
    ("ddr3", 4): {6: 0x40, 7: 0x80, 8: 0x100, 9: 0x1000, 10: 0x2000, 11: 0x800, 12: 0x1200, 13: 0x2400, 14: 0x4800},
    ("ddr3", 6): {6: 0x40, 10: 0x400, 11: 0x800, 12: 0x1000, 13: 0x2000, 14: 0x4800, 15: 0x9000, 17: 0x20800},
    ("ddr3", 7): {11: 0x800, 14: 0x4000},
    ("wide", 1): {6: 0x8000, 7: 0x2000, 8: 0x4000, 9: 0x8040, 12: 0x8200, 13: 0x2400, 15: 0x9000, 16: 0x12000},
    ("two banks", 1): {6: 0x200, 7: 0x240, 8: 0x280, 9: 0x300, 10: 0x600, 11: 0xA00},
    ("sixteen banks", 2): {6: 0x40, 7: 0x800, 8: 0x1000, 9: 0x2000, 10: 0x400, 11: 0x880, 12: 0x1100, 13: 0x2200,
                           14: 0x4400},
    ("page of a granule", 1): {5: 0x20, 6: 0x40, 7: 0x80, 8: 0x100, 9: 0x240, 12: 0x1040},
}  # fmt: skip
"""Of a shape and a class: where single bits of a place go, worked out with pencil and paper."""


@pytest.mark.parametrize(("shape", "mapping"), BY_HAND)
def test_single_bits_by_hand(shape: str, mapping: int) -> None:
    """Every bit of a memory address is the XOR of bits of the place, so these say what a class is."""
    config, bits = SHAPES[shape], BY_HAND[shape, mapping]
    for bit, expected in bits.items():
        assert memory_address(in_class(1 << bit, mapping, config), config) == expected, bit
        assert memory_place(1 << bit, mapping, config) == expected, f"the reference at {bit}"


@each_shape
@each_class
def test_what_a_class_is_said_to_be(config: Config, mapping: int) -> None:
    """Every granule of some superblocks, and addresses from everywhere."""
    assert granule_bytes(mapping, config) == granule(mapping, config)
    size = config.superblock_bytes
    for number in (*SUPERBLOCKS, (1 << config.place_bits) // size - 1):
        for place in range(number * size, (number + 1) * size, min(64, config.page_bytes)):
            assert memory_address(in_class(place, mapping, config), config) == memory_place(place, mapping, config)
    for address in _random_addresses(config, 100):
        assert memory_address(address, config) == _expected(address, config)


@each_shape
@each_class
def test_a_bijection_in_every_superblock(config: Config, mapping: int) -> None:
    size = config.superblock_bytes
    for number in (*SUPERBLOCKS, (1 << config.place_bits) // size - 1):
        start = number * size
        mapped = [memory_address(in_class(place, mapping, config), config) for place in range(start, start + size, 8)]
        assert sorted(mapped) == list(range(start, start + size, 8))


@each_shape
@each_class
def test_a_granule_stays_together_in_one_bank(config: Config, mapping: int) -> None:
    granule = granule_bytes(mapping, config)
    for place in (0, 5 * granule, config.superblock_bytes - granule, 0x123 * config.superblock_bytes + granule):
        start = memory_address(in_class(place, mapping, config), config)
        assert start % granule == 0
        for offset in (1, granule // 2, granule - 1):
            assert memory_address(in_class(place + offset, mapping, config), config) == start + offset


@each_shape
@pytest.mark.parametrize("mapping", HASHED)
def test_rows_at_any_power_of_two_take_all_banks_in_turn(config: Config, mapping: int) -> None:
    pitch, first = granule_bytes(mapping, config), 1 << (config.place_bits - 1)
    while pitch < 1 << 24:
        rows = [memory_address(in_class(first + n * pitch, mapping, config), config) for n in range(4 * config.banks)]
        banks = [row // config.page_bytes % config.banks for row in rows]
        for turn in range(0, len(banks), config.banks):
            assert sorted(banks[turn : turn + config.banks]) == list(range(config.banks)), f"pitch {pitch}"
        pitch *= 2


@pytest.mark.parametrize("mapping", [PLAIN, COPIED])
def test_addresses_that_are_not_hashed_are_those_of_memory(mapping: int) -> None:
    for config in SHAPES.values():
        for place in (0, 4096, 0x12345678, (1 << config.place_bits) - 1):
            assert memory_address(in_class(place, mapping, config), config) == place


@each_shape
@each_class
def test_each_port_has_a_copy(config: Config, mapping: int) -> None:
    place = 0x155 * config.superblock_bytes + 12
    banks = [(place + copy) // config.page_bytes % config.banks for copy in copies(mapping, config)]
    if mapping == COPIED:
        assert sorted(bank % config.ports for bank in banks) == list(range(config.ports))
    else:
        assert banks == [0]


@each_shape
@each_class
def test_numpy(config: Config, mapping: int) -> None:
    places = np.array([place_of(address, config) for address in _random_addresses(config)], np.uint64)
    expected = [memory_place(int(place), mapping, config) for place in places]
    assert memory_addresses(places, mapping, config).tolist() == expected


@each_shape
def test_the_emulator(config: Config) -> None:
    with EmulatorTarget(config, 1 << 16) as target:
        for address in _random_addresses(config):
            assert target.memory_address(address) == _expected(address, config)


class _Maps(wiring.Component):
    """All expressions of ``address_map`` for one address."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.line_bytes = config.bus_bytes
        line = range((1 << config.address_bits) // config.bus_bytes)
        super().__init__(
            {
                "address": In(config.address_bits),
                "memory": Out(config.address_bits),
                "back": Out(config.address_bits),
                "port": Out(range(config.ports)),
                "line": In(line),
                "mapped_line": Out(line),
                "mask": Out(range(MAX_BURST)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        most = min(MAX_BURST, self._config.page_bytes // self._config.bus_bytes)
        m.d.comb += [
            self.memory.eq(memory_value(self.address, self._config)),
            self.back.eq(program_value(self.memory, self._config)),
            self.port.eq(port_of(self.memory, self._config)),
            self.mapped_line.eq(memory_line(self.line, self._config)),
            self.mask.eq(burst_mask(line_class(self.line, self._config), self._config, most)),
        ]
        unused = Signal()
        m.d.sync += unused.eq(1)
        return m


@each_shape
def test_rtl(config: Config) -> None:
    dut, checked = _Maps(config), []

    async def bench(ctx) -> None:
        for address in _random_addresses(config, 150):
            ctx.set(dut.address, address)
            ctx.set(dut.line, address // config.bus_bytes)
            memory = _expected(address, config)
            assert place_of(address, config) + (class_of(address, config) << config.place_bits) == address
            assert ctx.get(dut.memory) == in_class(memory, class_of(address, config), config)
            assert ctx.get(dut.back) == address, "not the inverse"
            assert ctx.get(dut.port) == memory // config.page_bytes % config.ports
            bank = memory // config.page_bytes % config.banks
            serving = [port for port in range(config.ports) if bank in banks_of_port(config, port)]
            assert serving == [ctx.get(dut.port)]
            mapped = in_class(memory, class_of(address, config), config) // config.bus_bytes
            assert ctx.get(dut.mapped_line) == mapped
            lines = granule_bytes(class_of(address, config), config) // config.bus_bytes
            assert ctx.get(dut.mask) == min(MAX_BURST, lines) - 1
            checked.append(address)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(checked) == 150 + 2 * CLASSES


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"mapping must be from 0 to 7, not 8"):
        in_class(0, 8, Config())
    with pytest.raises(ValueError, match=r"mapping must be from 0 to 7, not -1"):
        granule_bytes(-1, Config())
    with pytest.raises(ValueError, match=r"place must be from 0 to 0x1fffffffff, not 0x2000000000"):
        in_class(1 << 37, 1, Config())


def test_classes_have_the_granules_that_rows_want() -> None:
    assert [granule_bytes(c, Config()) for c in range(CLASSES)] == [2048, 64, 128, 256, 512, 1024, 2048, 2048]
    assert all(granule_bytes(c, config) >= max(SMALLEST_GRANULE, config.bus_bytes)
               for config in SHAPES.values() for c in range(CLASSES))  # fmt: skip
