"""Text form of programs: one word a line, read and written without loss.

::

    config 0x81ca7515
    level 1 control enable=1 induction=r0 lower=r1 upper=r2
    level 1 load0_base = arg4 + 8
    step 0 fetch_pitch = 256
    instruction 2 code op=add destination=0 a.kind=queue last=1
    control 0 run = 0

Members that are 0 are left out; ``;`` starts a comment; the length and the checksum are made anew.
"""

import re
from enum import Enum
from typing import Any

from amaranth.lib import data

from daedal.errors import ProgramError
from daedal.hw.isa.program import FIELD_STRUCTS, UNIT_FIELDS, Program, Word, pack, read_programs
from daedal.hw.isa.program_words import VALUE_BITS, Unit

_LINE = re.compile(r"(\w+)\s+(\d+)\s+(\w+)\s*(.*)")
_VALUE = re.compile(r"=\s*(?:arg(\d+)\s*(?:\+\s*)?)?(-?\w+)?$")


def assemble(text: str, *, source: str | None = None, config_hash: int | None = None) -> bytes:
    """The bytes of the program in ``text``.

    Every ``config`` line starts a program; the bytes of several programs follow one another.

    Parameters
    ----------
    text
        Lines as above.
    source
        What messages call the text: ``FILE:LINE`` instead of ``line LINE``.
    config_hash
        The configuration of a text that does not name one.

    Raises ProgramError, which names the line, the word that cannot be read, and the words that can stand there.
    """
    programs: list[tuple[int, list[Word]]] = [] if config_hash is None else [(config_hash, [])]
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split(";")[0].strip()
        if not code:
            continue
        try:
            if code.split()[0] == "config":
                _start(programs, code, given=config_hash)
                continue
            word = _read_word(code)
            word.encode()
        except ProgramError as error:
            raise ProgramError(f"{_place(source, number)}: {code!r} cannot be read: {error}") from None
        if not programs:
            break
        programs[-1][1].append(word)
    if not programs:
        what = "the text" if source is None else source
        raise ProgramError(f"{what} must name the configuration: a line `config 0x…` must come first")
    return b"".join(Program(config_hash, body).to_bytes() for config_hash, body in programs)


def disassemble(raw: bytes) -> str:
    """The text of the program in ``raw``, or of several that follow one another.

    ``assemble`` gives the same bytes back. Raises ProgramError for bytes that are no programs, saying why.
    """
    lines = []
    for program in read_programs(raw):
        lines.append(f"config {program.config_hash:#010x}")
        lines += [_write_word(word) for word in program.body]
    return "\n".join(lines) + "\n"


def _place(source: str | None, number: int) -> str:
    return f"line {number}" if source is None else f"{source}:{number}"


def _start(programs: list[tuple[int, list[Word]]], code: str, *, given: int | None) -> None:
    """Begin a program at a ``config`` line; the first may repeat the configuration that is ``given`` anyway."""
    words = code.split()
    if len(words) != 2:
        raise ProgramError("a line must be `config HASH`")
    found = _integer(words[1], "a configuration's hash")
    if not 0 <= found < 1 << 32:
        raise ProgramError(f"a configuration's hash must fit 32 bits, not {found:#x}")
    if given is not None and len(programs) == 1 and not programs[0][1]:
        programs.pop()
    programs.append((found, []))


def _integer(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ProgramError(f"{what} must be a number, not {text!r}") from None


def _known(kind: type[Enum], name: str, what: str) -> Enum:
    """The member of ``kind`` called ``name``; ProgramError names those there are."""
    if name.upper() not in kind.__members__:
        accepted = ", ".join(member.lower() for member in kind.__members__)
        raise ProgramError(f"{what} must be one of {accepted}, not {name!r}")
    return kind[name.upper()]


def _read_word(code: str) -> Word:
    match = _LINE.fullmatch(code)
    if not match:
        raise ProgramError("a line must be `unit index field …`")
    unit, index, name, rest = match.groups()
    field = _known(UNIT_FIELDS[Unit(_known(Unit, unit, "a unit"))], name, f"a field of unit {unit}")
    if rest.startswith("="):
        return _read_number(field, int(index), rest)
    if field not in FIELD_STRUCTS:
        raise ProgramError(f"field {name} must be given as `= NUMBER` or `= argN + NUMBER`, not {rest!r}")
    values: dict[str, Any] = {}
    for item in rest.split():
        key, equals, value = item.partition("=")
        if not equals:
            raise ProgramError(f"a member must be given as `member=value`, not {item!r}")
        _put(values, key.split("."), _read_member(FIELD_STRUCTS[field], key.split("."), value))
    return Word(field, int(index), pack(FIELD_STRUCTS[field], values))


def _read_number(field: Enum, index: int, rest: str) -> Word:
    match = _VALUE.fullmatch(rest)
    if not match or (match[1] is None and match[2] is None):
        raise ProgramError("a value must be a number, `argN` or `argN + number`")
    value = _integer(match[2] or "0", "a value")
    if not -(1 << (VALUE_BITS - 1)) <= value < 1 << VALUE_BITS:
        raise ProgramError(f"a value must fit {VALUE_BITS} bits, not {value}")
    return Word(field, index, value % (1 << VALUE_BITS), None if match[1] is None else int(match[1]))


def _put(values: dict[str, Any], path: list[str], value: object) -> None:
    for part in path[:-1]:
        values = values.setdefault(part, {})
    if path[-1] in values:
        raise ProgramError(f"a member must be given once, not {'.'.join(path)} twice")
    values[path[-1]] = value


def _member_shape(struct: object, path: list[str]) -> object:
    for part in path:
        known = {str(name): field for name, field in data.Layout.cast(struct)}
        if part not in known:
            raise ProgramError(f"member must be one of {', '.join(known)}, not {part!r}")
        struct = known[part].shape
    return struct


def _read_member(struct: object, path: list[str], value: str) -> int:
    shape = _member_shape(struct, path)
    if isinstance(shape, type) and issubclass(shape, Enum) and not value[:1].isdigit():
        return int(_known(shape, value, f"member {'.'.join(path)}").value)
    if isinstance(shape, type) and issubclass(shape, data.Struct):
        inner = ", ".join(f"{'.'.join(path)}.{name}" for name, _ in data.Layout.cast(shape))
        raise ProgramError(f"member {'.'.join(path)} must be given by its parts {inner}")
    return _integer(value, f"member {'.'.join(path)}")


def _write_word(word: Word) -> str:
    head = f"{word.unit.name.lower()} {word.index} {word.field.name.lower()}"
    if word.field in FIELD_STRUCTS and word.argument is None:
        struct = FIELD_STRUCTS[word.field]
        members = word.members()
        if pack(struct, _nested(members)) == word.value:
            shown = [f"{key}={_show(struct, key, value)}" for key, value in members.items() if value]
            return " ".join([head, *shown])
    if word.argument is None:
        return f"{head} = {word.value:#x}" if word.value > 9 else f"{head} = {word.value}"
    return f"{head} = arg{word.argument}" + (f" + {word.value:#x}" if word.value else "")


def _nested(members: dict[str, int]) -> dict[str, object]:
    nested: dict[str, object] = {}
    for key, value in members.items():
        _put(nested, key.split("."), value)
    return nested


def _show(struct: object, key: str, value: int) -> str:
    shape = _member_shape(struct, key.split("."))
    if isinstance(shape, type) and issubclass(shape, Enum):
        names = {member.value: name for name, member in shape.__members__.items()}
        return names[value].lower() if value in names else str(value)
    return str(value)
