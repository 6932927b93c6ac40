"""Text form of programs: one word a line, read and written without loss.

::

    config 0x81ca7515
    level 1 control enable=1 induction=r0 lower=r1 upper=r2
    level 1 load0_base = arg4 + 8
    step 0 fetch_pitch = 256
    instruction 2 code op=add destination=0 a.kind=queue last=1
    control 0 run = 0

Members that are 0 are left out; ``;`` starts a comment; the length and the checksum are made anew.

What no compiler writes has a form too, so that the bytes of any program come back: ``spare=5`` at the end of a line is
the number of an argument that is not added; ``argument=5``, ``spare=5``, ``index=5`` behind the hash of a ``config``
line are what the word CONFIG has beside its value, and ``length.argument=5`` and so on what LENGTH has.
"""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from amaranth.lib import data

from daedal.base.messages import shown
from daedal.errors import ProgramError
from daedal.hw.isa.program import FIELD_STRUCTS, HEAD, UNIT_FIELDS, Program, Word, pack, read_programs
from daedal.hw.isa.words import VALUE_BITS, Unit

_LINE = re.compile(r"(\w+)\s+([0-9]+)\s+(\w+)\s*(.*)")
_VALUE = re.compile(r"=\s*(?:arg([0-9]+)\s*(?:\+\s*)?)?(-?\w+)?$")
_SPARE = re.compile(r"(.*\S)\s+spare=(\w+)")
_HEAD_MEMBERS = tuple(f"{of}{name}" for of in ("", "length.") for name in ("argument", "spare", "index"))

MOST_CHARACTERS = 1000
"""Characters of the longest line without its comment; the longest that ``disassemble`` writes has some 200."""

MOST_DIGITS = 100
"""Characters of the longest number: of 40 bits, with room for zeros in front."""


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
    programs: list[_Started] = [] if config_hash is None else [_Started(config_hash)]
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split(";")[0].strip()
        if not code:
            continue
        try:
            if len(code) > MOST_CHARACTERS:
                raise ProgramError(f"a line must have at most {MOST_CHARACTERS} characters, not {len(code)}")
            if code.split()[0] == "config":
                _start(programs, code, given=config_hash)
                continue
            word = _read_word(code)
        except ProgramError as error:
            raise ProgramError(f"{_place(source, number)}: {shown(code)} cannot be read: {error}") from None
        if not programs:
            break
        programs[-1].body.append(word)
    if not programs:
        what = "the text" if source is None else source
        raise ProgramError(f"{what} must name the configuration: a line `config 0x…` must come first")
    return b"".join(Program(each.config_hash, each.body, each.head).to_bytes() for each in programs)


def disassemble(raw: bytes) -> str:
    """The text of the program in ``raw``, or of several that follow one another.

    ``assemble`` gives the same bytes back. Raises ProgramError for bytes that are no programs, saying why.
    """
    lines = []
    for program in read_programs(raw):
        lines.append(" ".join([f"config {program.config_hash:#010x}", *_head_items(program)]))
        lines += [_write_word(word) for word in program.body]
    return "\n".join(lines) + "\n"


def _place(source: str | None, number: int) -> str:
    return f"line {number}" if source is None else f"{source}:{number}"


@dataclass
class _Started:
    """A program as far as it has been read."""

    config_hash: int
    head: tuple[Word, Word] = HEAD
    body: list[Word] = field(default_factory=list)


def _start(programs: list[_Started], code: str, *, given: int | None) -> None:
    """Begin a program at a ``config`` line; the first may repeat the configuration that is ``given`` anyway."""
    words = code.split()
    if len(words) < 2 or any("=" not in word for word in words[2:]):
        raise ProgramError("a line must be `config HASH`")
    found = _integer(words[1], "a configuration's hash")
    if not 0 <= found < 1 << VALUE_BITS:
        raise ProgramError(f"a configuration's hash must fit {VALUE_BITS} bits, not {found:#x}")
    if given is not None and len(programs) == 1 and not programs[0].body:
        programs.pop()
    programs.append(_Started(found, _read_head(words[2:])))


def _read_head(items: list[str]) -> tuple[Word, Word]:
    """CONFIG and LENGTH with what stands behind the hash."""
    given: dict[str, int] = {}
    for item in items:
        key, _, value = item.partition("=")
        if key not in _HEAD_MEMBERS:
            raise ProgramError(f"a member must be one of {', '.join(_HEAD_MEMBERS)}, not {shown(key)}")
        _put(given, [key], _integer(value, f"member {key}"))
    config, length = (
        _checked(
            Word(each.field, given.get(f"{of}index", 0), 0, given.get(f"{of}argument"), given.get(f"{of}spare", 0))
        )
        for each, of in zip(HEAD, ("", "length."), strict=True)
    )
    return config, length


def _head_items(program: Program) -> list[str]:
    """What stands behind the hash of a program, as :func:`_read_head` reads it."""
    found: list[str] = []
    for word, of in zip(program.head, ("", "length."), strict=True):
        if word.argument is not None:
            found.append(f"{of}argument={word.argument}")
        found += [f"{of}{name}={value}" for name, value in (("spare", word.spare), ("index", word.index)) if value]
    return found


def _checked(word: Word) -> Word:
    """The word, if all of it fits; else ProgramError."""
    if word.spare and word.argument is not None:
        raise ProgramError("spare must be 0 where an argument is added: it is that argument's number")
    word.encode()
    return word


def _integer(text: str, what: str) -> int:
    try:
        if len(text) > MOST_DIGITS:
            raise ValueError
        return int(text, 0)
    except ValueError:
        raise ProgramError(f"{what} must be a number, not {shown(text)}") from None


def _known(kind: type[Enum], name: str, what: str) -> Enum:
    """The member of ``kind`` called ``name``; ProgramError names those there are."""
    if name.upper() not in kind.__members__:
        accepted = ", ".join(member.lower() for member in kind.__members__)
        raise ProgramError(f"{what} must be one of {accepted}, not {shown(name)}")
    return kind[name.upper()]


def _read_word(code: str) -> Word:
    cut = _SPARE.fullmatch(code)
    spare = _integer(cut[2], "spare") if cut else 0
    match = _LINE.fullmatch(cut[1] if cut else code)
    if not match:
        raise ProgramError("a line must be `unit index field …`")
    unit, number, name, rest = match.groups()
    field = _known(UNIT_FIELDS[Unit(_known(Unit, unit, "a unit"))], name, f"a field of unit {unit}")
    index = _integer(number.lstrip("0") or "0", "an index")
    if rest.startswith("="):
        return _checked(replace(_read_number(field, index, rest), spare=spare))
    if field not in FIELD_STRUCTS:
        raise ProgramError(f"field {name} must be given as `= NUMBER` or `= argN + NUMBER`, not {shown(rest)}")
    values: dict[str, Any] = {}
    for item in rest.split():
        key, equals, value = item.partition("=")
        if not equals:
            raise ProgramError(f"a member must be given as `member=value`, not {shown(item)}")
        _put(values, key.split("."), _read_member(FIELD_STRUCTS[field], key.split("."), value))
    return _checked(Word(field, index, pack(FIELD_STRUCTS[field], values), spare=spare))


def _read_number(field: Enum, index: int, rest: str) -> Word:
    match = _VALUE.fullmatch(rest)
    if not match or (match[1] is None and match[2] is None):
        raise ProgramError("a value must be a number, `argN` or `argN + number`")
    value = _integer(match[2] or "0", "a value")
    if not -(1 << (VALUE_BITS - 1)) <= value < 1 << VALUE_BITS:
        raise ProgramError(f"a value must fit {VALUE_BITS} bits, not {shown(value)}")
    return Word(field, index, value % (1 << VALUE_BITS), _argument(match[1]))


def _argument(digits: str | None) -> int | None:
    return None if digits is None else _integer(digits.lstrip("0") or "0", "an argument's number")


def _put(values: dict[str, Any], path: list[str], value: object) -> None:
    for part in path[:-1]:
        values = values.setdefault(part, {})
    if path[-1] in values:
        raise ProgramError(f"a member must be given once, not {'.'.join(path)} twice")
    values[path[-1]] = value


def _member_shape(struct: object, path: list[str]) -> object:
    for part in path:
        if not (isinstance(struct, type) and issubclass(struct, data.Struct)):
            raise ProgramError(f"member {shown('.'.join(path))} must be a name alone: it has no part {shown(part)}")
        known = {str(name): field for name, field in data.Layout.cast(struct)}
        if part not in known:
            raise ProgramError(f"member must be one of {', '.join(known)}, not {shown(part)}")
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
    spare = [f"spare={word.spare}"] if word.spare else []
    if word.field in FIELD_STRUCTS and word.argument is None:
        struct = FIELD_STRUCTS[word.field]
        members = word.members()
        if pack(struct, _nested(members)) == word.value:
            listed = [f"{key}={_show(struct, key, value)}" for key, value in members.items() if value]
            return " ".join([head, *listed, *spare])
    if word.argument is None:
        return " ".join([head, f"= {word.value:#x}" if word.value > 9 else f"= {word.value}", *spare])
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
