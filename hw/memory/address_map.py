"""The mapping classes (``hw/isa/address_mapping.py``) as Amaranth expressions."""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Const, Value
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import CLASSES, COPIED, granule_bytes, memory_bits, place_bits


def memory_value(address: Value, config: Config) -> Value:
    """The memory address of a program's address, below its class, which stays where it is."""
    return _mapped(address, config, memory_bits)


def program_value(address: Value, config: Config) -> Value:
    """The program's address of what ``memory_value`` gives."""
    return _mapped(address, config, place_bits)


def memory_line(line: Value, config: Config) -> Value:
    """``memory_value`` of a line's number."""
    below = exact_log2(config.bus_bytes)
    return memory_value(Cat(Const(0, below), line), config)[below:]


def port_of(address: Value, config: Config) -> Value:
    """The read port of a memory address: low bits of its bank."""
    page = exact_log2(config.page_bytes)
    return address[page : page + exact_log2(config.ports)]


def is_copied(address: Value, config: Config) -> Value:
    """Whether each port has a copy of what is at this address."""
    return address[config.place_bits :] == COPIED


def at_port(line: Value, port: Value, config: Config) -> Value:
    """A memory line's number with this ``port_of``."""
    first = exact_log2(config.page_bytes) - exact_log2(config.bus_bytes)
    return Cat(line[:first], port, line[first + exact_log2(config.ports) :])


def banks_of_port(config: Config, port: int) -> range:
    """The banks whose addresses have this ``port_of``."""
    return range(port, config.banks, config.ports)


def row_of(address: Value, config: Config) -> Value:
    """The DRAM row of a memory address, and in the low bits which of its port's banks (none if each has one)."""
    return address[exact_log2(config.page_bytes) + exact_log2(config.ports) : config.place_bits]


def burst_mask(mapping: Value, config: Config, most: int) -> Value:
    """Lines of the longest burst inside of a granule of this class, at most ``most`` (a power of two), less 1."""
    lines = [min(most, granule_bytes(c, config) // config.bus_bytes) for c in range(CLASSES)]
    longer = [[c for c in range(CLASSES) if lines[c] > 1 << bit] for bit in range(exact_log2(most))]
    return Cat(_is_any(mapping, classes) for classes in longer)


def line_class(line: Value, config: Config) -> Value:
    """The mapping class of a line's number (an address without the bits inside of a line)."""
    return line[config.place_bits - exact_log2(config.bus_bytes) :]


def _mapped(address: Value, config: Config, table: Callable[[int, Config], tuple[int, ...]]) -> Value:
    place, mapping = address[: config.place_bits], address[config.place_bits :]
    masks = [table(c, config) for c in range(CLASSES)]
    bits = [_bit(place, mapping, [masks[c][bit] for c in range(CLASSES)]) for bit in _moved(masks)]
    first = _moved(masks).start
    return Cat(place[:first], *bits, place[first + len(bits) :], mapping)


def _moved(masks: list[tuple[int, ...]]) -> range:
    """The bits that are not the same in all classes."""
    moved = [bit for bit in range(len(masks[0])) if any(of[bit] != 1 << bit for of in masks)]
    return range(moved[0], moved[-1] + 1) if moved else range(0)


def _bit(place: Value, mapping: Value, masks: list[int]) -> Value:
    """A bit that is the XOR of those in ``masks[class]``; bits that the same classes use go together."""
    users: dict[tuple[int, ...], int] = {}
    for bit in range(len(place)):
        classes = tuple(c for c in range(CLASSES) if masks[c] >> bit & 1)
        users[classes] = users.get(classes, 0) | 1 << bit
    return reduce(xor, [_xor(place, mask) & _is_any(mapping, classes) for classes, mask in users.items() if classes])


def _xor(place: Value, mask: int) -> Value:
    if mask & (mask - 1) == 0:
        return place[mask.bit_length() - 1]
    return (place & Const(mask, len(place))).xor()


def _is_any(mapping: Value, classes: Iterable[int]) -> Value:
    listed = list(classes)
    return Const(1, 1) if len(listed) == CLASSES else mapping.matches(*listed) if listed else Const(0, 1)
