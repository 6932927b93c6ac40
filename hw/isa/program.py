"""Programs as values: words with names, packed into the bytes that the machine executes and back."""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from amaranth import Shape
from amaranth.lib import data

from daedal.base.messages import shown
from daedal.errors import ProgramError
from daedal.hw.isa import words
from daedal.hw.isa.checksum import checksum
from daedal.hw.isa.instructions import Instruction
from daedal.hw.isa.registers import REVISION
from daedal.hw.isa.words import ControlField, LevelField, ProgramWord, Unit

WORD_BYTES = 8

UNIT_FIELDS: Mapping[Unit, type[Enum]] = {
    Unit.CONTROL: words.ControlField,
    Unit.LEVEL: words.LevelField,
    Unit.EVENT: words.EventField,
    Unit.STEP: words.StepField,
    Unit.LENGTH: words.LengthField,
    Unit.CALLBACK: words.CallbackField,
    Unit.INSTRUCTION: words.InstructionField,
}
"""The fields of each unit."""

FIELD_STRUCTS: Mapping[Enum, type[data.Struct]] = {
    LevelField.CONTROL: words.LevelControl,
    LevelField.CHECK: words.CheckControl,
    LevelField.COUNT: words.CountControl,
    **{LevelField[f"LOAD{k}"]: words.LoadControl for k in range(4)},
    **{LevelField[f"ALU{k}"]: words.AluControl for k in range(4)},
    words.EventField.CONTROL: words.EventControl,
    words.StepField.CONTROL: words.StepControl,
    words.InstructionField.CODE: Instruction,
}
"""The fields whose value is a packed structure; all others are 40-bit numbers."""


@dataclass(frozen=True)
class Word:
    """One program word. ``value`` is the 40-bit value; ``argument`` the launch argument added to it, or
    None. Where none is added, the machine does not look at the argument's number, which is ``spare``.
    """

    field: Enum
    index: int = 0
    value: int = 0
    argument: int | None = None
    spare: int = 0

    @property
    def unit(self) -> Unit:
        """The unit that the word configures."""
        return next(unit for unit, enum in UNIT_FIELDS.items() if isinstance(self.field, enum))

    @staticmethod
    def packed(field: Enum, index: int = 0, /, **values: Any) -> "Word":
        """A word whose value is the packed structure of ``field``, with these members (the others 0)."""
        return Word(field, index, pack(FIELD_STRUCTS[field], values))

    def members(self) -> dict[str, int]:
        """The members of a packed value by name; nested members as ``outer.inner``."""
        return unpack(FIELD_STRUCTS[self.field], self.value)

    def encode(self) -> int:
        """The 64 bits of this word."""
        return pack(
            ProgramWord,
            {
                "value": self.value % (1 << words.VALUE_BITS),
                "argument": self.spare if self.argument is None else self.argument,
                "substitute": self.argument is not None,
                "unit": self.unit,
                "index": self.index,
                "field": self.field.value,
            },
        )

    @staticmethod
    def decode(bits: int, position: int) -> "Word":
        """The word in these 64 bits; ProgramError names ``position`` if there is no such word."""
        raw = unpack(ProgramWord, bits)
        try:
            field = UNIT_FIELDS[Unit(raw["unit"])](raw["field"])
        except ValueError:
            raise ProgramError(
                f"word {position} of the program must name a unit and field of the machine, "
                f"not unit {raw['unit']} field {raw['field']}"
            ) from None
        number = raw["argument"]
        added, spare = (number, 0) if raw["substitute"] else (None, number)
        return Word(field, raw["index"], raw["value"], added, spare)


def pack(struct: type[data.Struct], values: Mapping[str, Any]) -> int:
    """The bits of ``struct`` with these members; nested structures are given as mappings.

    Raises ProgramError if a member does not exist or its value does not fit.
    """
    result, known = 0, _members(struct)
    for name, value in values.items():
        if name not in known:
            raise ProgramError(f"{struct.__name__} must have a member {shown(name)}; it has {', '.join(known)}")
        offset, width, nested = known[name]
        if nested and isinstance(value, Mapping):
            result |= pack(nested, value) << offset
            continue
        number = int(value.value if isinstance(value, Enum) else value)
        if not 0 <= number < 1 << width:
            raise ProgramError(f"{struct.__name__}.{name} must fit {width} bits, not {shown(number)}")
        result |= number << offset
    return result


def _members(struct: type[data.Struct]) -> dict[str, tuple[int, int, type[data.Struct] | None]]:
    """Offset, width and, if it is one, the structure of each member; kept, for amaranth takes its time."""
    if struct not in _KNOWN_MEMBERS:
        members: dict[str, tuple[int, int, type[data.Struct] | None]] = {}
        for name, field in data.Layout.cast(struct):
            nested = isinstance(field.shape, type) and issubclass(field.shape, data.Struct)
            members[str(name)] = (field.offset, field.width, field.shape if nested else None)
        _KNOWN_MEMBERS[struct] = members  # whole: other threads read it
    return _KNOWN_MEMBERS[struct]


_KNOWN_MEMBERS: dict[object, dict[str, tuple[int, int, type[data.Struct] | None]]] = {}


def unpack(struct: type[data.Struct], bits: int) -> dict[str, int]:
    """The members in these bits by name; nested members as ``outer.inner``."""
    members: dict[str, int] = {}
    for name, (offset, width, nested) in _members(struct).items():
        number = (bits >> offset) & ((1 << width) - 1)
        if nested:
            members |= {f"{name}.{inner}": value for inner, value in unpack(nested, number).items()}
        else:
            members[name] = number
    return members


HEAD = (Word(ControlField.CONFIG), Word(ControlField.LENGTH))
"""The header of a program without its values, as machines want it."""


@dataclass(frozen=True)
class Program:
    """A whole program: its words between the header and END, for the configuration with ``config_hash``.

    ``head``: the header's two words, whose values follow from the others; those of ``HEAD`` but in programs that were
    damaged.
    """

    config_hash: int
    body: tuple[Word, ...]
    head: tuple[Word, Word] = HEAD

    def __init__(self, config_hash: int, body: Iterable[Word], head: tuple[Word, Word] = HEAD) -> None:
        object.__setattr__(self, "config_hash", config_hash)
        object.__setattr__(self, "body", tuple(body))
        object.__setattr__(self, "head", head)

    def to_bytes(self) -> bytes:
        """The bytes that the machine executes."""
        config, length = self.head
        head = [replace(config, value=self.config_hash), replace(length, value=len(self.body) + 3)]
        raw = b"".join(word.encode().to_bytes(WORD_BYTES, "little") for word in (*head, *self.body))
        return raw + end_of(raw)

    @staticmethod
    def from_bytes(raw: bytes) -> "Program":
        """The program in these bytes; ProgramError says what is wrong with them."""
        if len(raw) % WORD_BYTES or len(raw) < 3 * WORD_BYTES:
            raise ProgramError(f"a program must be whole words of {WORD_BYTES} bytes, at least 3, not {len(raw)} bytes")
        listed = [Word.decode(bits, position) for position, bits in enumerate(_words(raw))]
        config, length = listed[:2]
        if config.field is not ControlField.CONFIG or length.field is not ControlField.LENGTH:
            raise ProgramError("a program must start with its configuration and its length: these bytes are no program")
        if length.value != len(listed):
            raise ProgramError(f"the program must have {length.value} words, as it says, not {len(listed)}: truncated?")
        if checksum(_words(raw)):
            if raw[-WORD_BYTES:] == _end(zlib.crc32(raw[:-WORD_BYTES])):
                raise ProgramError(
                    f"the program must be for revision {REVISION} of the programming interface, not 1: compile or "
                    "assemble it again"
                )
            raise ProgramError("the program's checksum does not fit its bytes: it was altered; compile it again")
        return Program(config.value, listed[2:-1], (replace(config, value=0), replace(length, value=0)))


def read_programs(raw: bytes) -> list[Program]:
    """The programs that follow one another in ``raw``, at least one.

    Raises ProgramError as ``Program.from_bytes``; where there are several, it says which one is wrong.
    """
    programs: list[Program] = []
    start = 0
    while start < len(raw) or not programs:
        part = raw[start : start + _said_bytes(raw, start)]
        try:
            programs.append(Program.from_bytes(part))
        except ProgramError as error:
            if start == 0 and len(part) == len(raw):
                raise
            raise ProgramError(f"program {len(programs) + 1}, from byte {start}: {error}") from error
        start += len(part)
    return programs


def _said_bytes(raw: bytes, start: int) -> int:
    """The length that the program at ``start`` says it has, or all that is left if it cannot be that."""
    left = len(raw) - start
    words = left // WORD_BYTES
    if words < 3:
        return left
    second = unpack(ProgramWord, int.from_bytes(raw[start + WORD_BYTES : start + 2 * WORD_BYTES], "little"))
    says_length = (second["unit"], second["field"]) == (Unit.CONTROL.value, ControlField.LENGTH.value)
    return second["value"] * WORD_BYTES if says_length and 3 <= second["value"] <= words else left


def _words(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[at : at + WORD_BYTES], "little") for at in range(0, len(raw), WORD_BYTES)]


def end_of(raw: bytes) -> bytes:
    """The bytes of END behind the other words of a program, with their checksum."""
    return _end(checksum((*_words(raw), Word(ControlField.END).encode())))


def _end(value: int) -> bytes:
    """END's bytes; what is added to its value, below 2**16, is added to the sum."""
    return Word(ControlField.END, value=value).encode().to_bytes(WORD_BYTES, "little")


def struct_width(struct: type[data.Struct]) -> int:
    """Bits of a packed structure."""
    return Shape.cast(struct).width
