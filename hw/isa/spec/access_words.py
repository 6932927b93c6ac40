"""The words of a program as the units hold them when a nest runs, for the reference interpreter."""

from collections.abc import Iterator, Sequence
from enum import Enum

from daedal.hw.config.core import Config
from daedal.hw.isa.program import FIELD_STRUCTS, Program, unpack
from daedal.hw.isa.words import VALUE_BITS, ControlField, EventField, EventKind, LevelField, Unit, event_index

Held = dict[tuple[Unit, int, Enum], int]


class Constants:
    """The words of one index of one unit; a word never written is 0, a step never written 1."""

    def __init__(self, held: Held, unit: Unit, index: int) -> None:
        self._held, self._unit, self._index = held, unit, index
        self._members: dict[Enum, dict[str, int]] = {}

    def __getitem__(self, field: Enum) -> int:
        return self._held.get((self._unit, self._index, field), 1 if field is LevelField.STEP else 0)

    def members(self, field: Enum) -> dict[str, int]:
        """The members of a packed word."""
        if field not in self._members:
            self._members[field] = unpack(FIELD_STRUCTS[field], self[field])
        return self._members[field]


class NestWords:
    """All words that hold while one nest runs."""

    def __init__(self, held: Held) -> None:
        self._held = dict(held)
        self._constants: dict[tuple[Unit, int], Constants] = {}

    def _of(self, unit: Unit, index: int) -> Constants:
        return self._constants.setdefault((unit, index), Constants(self._held, unit, index))

    def level(self, level: int) -> Constants:
        """The words of a level."""
        return self._of(Unit.LEVEL, level)

    def step(self, step: int) -> Constants:
        """The words of a step."""
        return self._of(Unit.STEP, step)

    def event(self, level: int, kind: EventKind) -> dict[str, int]:
        """The members of an event's word."""
        return self._of(Unit.EVENT, event_index(level, kind)).members(EventField.CONTROL)


def nests(program: Program, arguments: Sequence[int], config: Config) -> Iterator[NestWords]:
    """The words held at each RUN, launch arguments added; numbers have as many bits as a register."""
    held: Held = {}
    for word in program.body:
        if word.field is ControlField.RUN:
            yield NestWords(held)
            held = {key: value for key, value in held.items() if not _cleared(key)}
        else:
            value = word.value + (0 if word.argument is None else arguments[word.argument])
            number = word.unit in (Unit.LEVEL, Unit.STEP) and word.field not in FIELD_STRUCTS
            held[word.unit, word.index, word.field] = value % (1 << (config.address_bits if number else VALUE_BITS))


def _cleared(key: tuple[Unit, int, Enum]) -> bool:
    unit, _, field = key
    is_level = isinstance(field, LevelField) and (field in FIELD_STRUCTS or field is LevelField.STEP)
    return unit is Unit.EVENT or is_level
