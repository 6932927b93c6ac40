"""What a host sees of a machine, address by address: the registers, launch blocks and completion records."""

import csv
import io
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from enum import Enum

from amaranth.lib import data

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import RECORD_WORDS, Counter, LaunchWord, RecordHead, RecordWord
from daedal.hw.isa.program import WORD_BYTES
from daedal.hw.isa.registers import ACCESS, Control, Register, Status, SystemRegister
from daedal.hw.isa.tools.markdown import texts

REGISTER_BITS = 32
WORD_BITS = 8 * WORD_BYTES

REGISTER_STRUCTS = {Register.CONTROL: Control, Register.STATUS: Status}
"""The registers that have fields."""


@dataclass(frozen=True)
class Entry:
    """A register, a word in memory, or a field of one (``bits`` says which bits).

    ``area`` is ``system register`` (page 0 of several tiles), ``register``, ``launch block`` or ``completion record``;
    ``offset`` counts bytes from the start of that area; ``access`` says what the host does with it.
    """

    area: str
    name: str
    offset: str
    width: int
    bits: str
    access: str
    meaning: str


def memory_map(config: Config, *, is_system: bool = False) -> list[Entry]:
    """All entries of a machine, or of a system and each of its tiles, areas in the order above, by address."""
    return [*(_system_registers() if is_system else ()), *_registers(), *_launch_block(config), *_record(config)]


def memory_map_csv(config: Config, *, is_system: bool = False) -> str:
    """The entries as CSV, with a line of headings."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(field.name for field in fields(Entry))
    writer.writerows(astuple(entry) for entry in memory_map(config, is_system=is_system))
    return out.getvalue()


def _system_registers() -> Iterator[Entry]:
    meanings = texts(SystemRegister)
    for register in SystemRegister:
        meaning = meanings[register.name]
        yield _whole("system register", register.name, int(register.value), REGISTER_BITS, "read", meaning)


def _registers() -> Iterator[Entry]:
    meanings = texts(Register)
    for register in Register:
        access, meaning = ACCESS[register], meanings[register.name]
        yield _whole("register", register.name, int(register.value), REGISTER_BITS, access, meaning)
        if register in REGISTER_STRUCTS:
            yield from _fields("register", register.name, int(register.value), access, REGISTER_STRUCTS[register])


def _launch_block(config: Config) -> Iterator[Entry]:
    for name, number, meaning in _words(LaunchWord, LaunchWord.ARGUMENTS, "ARGUMENT", config.arguments):
        yield _whole("launch block", name, number * WORD_BYTES, WORD_BITS, "write", meaning)


def _record(config: Config) -> Iterator[Entry]:
    area = "completion record"
    counters = texts(Counter)
    for name, number, meaning in _words(RecordWord, RecordWord.REGISTER0, "REGISTER", config.registers):
        if number < RecordWord.COUNTERS.value:
            yield _whole(area, name, number * WORD_BYTES, WORD_BITS, "read", meaning)
        if number == RecordWord.HEAD.value:
            yield from _fields(area, name, 0, "read", RecordHead)
    for counter in Counter:
        number = RecordWord.COUNTERS.value + counter.value
        if number >= RECORD_WORDS:
            raise ValueError(f"a record of {RECORD_WORDS} words must have room for counter {counter.name}")
        yield _whole(area, counter.name, number * WORD_BYTES, WORD_BITS, "read", counters[counter.name])


def _words(kind: type[Enum], repeated: Enum, name: str, count: int) -> Iterator[tuple[str, int, str]]:
    """Name, number and meaning of the words of ``kind``; ``repeated`` stands for ``count`` words ``name`` 0…"""
    meanings = texts(kind)
    for word in kind:
        for k in range(count if word is repeated else 1):
            yield f"{name}{k}" if word is repeated else word.name, word.value + k, meanings[word.name]


def _fields(area: str, name: str, offset: int, access: str, struct: type[data.Struct]) -> Iterator[Entry]:
    meanings = texts(struct)
    for key, field in data.Layout.cast(struct):
        last = field.offset + field.width - 1
        bits = str(last) if field.width == 1 else f"{last}:{field.offset}"
        yield Entry(area, f"{name}.{key}", f"0x{offset:02x}", field.width, bits, access, meanings[str(key)])


def _whole(area: str, name: str, offset: int, width: int, access: str, meaning: str) -> Entry:
    return Entry(area, name, f"0x{offset:02x}", width, f"{width - 1}:0", access, meaning)
