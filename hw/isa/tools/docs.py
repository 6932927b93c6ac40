"""The reference of all encodings, the pages in ``docs/isa``, generated from ``hw.isa``.

``python -m daedal.hw.isa.tools.docs`` writes them; with ``--check`` it only says whether they are as they would be
written, by exit status 0 or 1.
"""

import enum
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from daedal.hw.config.core import MOST_ADDRESS_BITS
from daedal.hw.isa import address_mapping, checksum, instructions, launch, operations, registers, words
from daedal.hw.isa.instructions import Mode, VectorOp
from daedal.hw.isa.launch import LAUNCH_ALIGNMENT, RECORD_WORDS
from daedal.hw.isa.operations import OPERATIONS, Operation, OperationUnit
from daedal.hw.isa.program import UNIT_FIELDS, WORD_BYTES
from daedal.hw.isa.tools.c_header import enums, structs
from daedal.hw.isa.tools.markdown import constants_section, enum_section, struct_section, table, text
from daedal.hw.isa.words import VALUE_BITS

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "isa"
"""Where the generated pages are."""

INDEX = "index"
"""The page that lists the others."""

_INTRODUCTION = f"""Bits are numbered from the least significant, 0; everything in memory is little endian. Programs,
launch blocks and records are made of words of {WORD_BYTES} bytes and start at a multiple of {LAUNCH_ALIGNMENT} bytes
(but programs that follow their launch blocks); a record has {RECORD_WORDS} words. Arguments have {VALUE_BITS} bits,
addresses and stream registers `Config.address_bits`: {MOST_ADDRESS_BITS} or fewer. What the machine does with all this
is said in [machine.md](../machine/machine.md).
"""


@dataclass(frozen=True)
class _Page:
    """A page: its title, the module whose text and constants it begins and ends with, and the kinds that it lists.

    ``kinds`` None: all kinds of the module. ``about``: what the index says of it.
    """

    title: str
    module: ModuleType
    about: str
    kinds: tuple[type, ...] | None = None
    is_whole: bool = True
    """Whether text and constants of the module are on this page."""


_PAGES: Mapping[str, _Page] = {
    "programs": _Page(
        "Programs",
        words,
        "words, units and their fields",
        is_whole=True,
        kinds=(
            words.Unit,
            words.ProgramWord,
            words.ControlField,
            words.LengthField,
            words.CallbackField,
            words.InstructionField,
        ),
    ),
    "checksum": _Page("The checksum of a program", checksum, "how END's value is made"),
    "operands": _Page(
        "Operands of the access unit",
        words,
        "constants and stream registers as operands",
        is_whole=False,
        kinds=(words.Source, words.LoadIndex, words.Destination, words.Predicate, words.Sense),
    ),
    "levels": _Page(
        "Levels",
        words,
        "loops, loads, checks, counts and the ALU's operations",
        is_whole=False,
        kinds=(
            words.LevelField,
            words.LevelControl,
            words.LoadControl,
            words.AluOp,
            words.AluControl,
            words.CheckKind,
            words.CheckMode,
            words.CheckControl,
            words.CountControl,
        ),
    ),
    "events": _Page(
        "Events and steps",
        words,
        "what the access unit sends, and when",
        is_whole=False,
        kinds=(
            words.EventKind,
            words.EventField,
            words.EventControl,
            words.StepField,
            words.FetchQueue,
            words.StepControl,
        ),
    ),
    "operations": _Page("Operations", operations, "what the execute unit computes: the table of operations"),
    "instructions": _Page(
        "Instructions",
        instructions,
        "how the execute unit is told to",
        kinds=(instructions.OperandKind, Mode, instructions.Operand, instructions.Instruction),
    ),
    "addresses": _Page("Addresses", address_mapping, "mapping classes"),
    "registers": _Page("Registers", registers, "the AXI4-Lite register file"),
    "launch": _Page(
        "Launch blocks and completion records",
        launch,
        "what host and machine exchange in memory",
        kinds=(
            launch.LaunchWord,
            launch.LaunchFlags,
            launch.StoreWindow,
            launch.RecordHead,
            launch.RecordWord,
            launch.Counter,
        ),
    ),
    "faults": _Page(
        "How launches end",
        launch,
        "states, causes of faults, and queues",
        is_whole=False,
        kinds=(launch.State, launch.Cause, launch.EmulatedCause, launch.Queue),
    ),
}


def generate(rows: Mapping[VectorOp, Operation] = OPERATIONS) -> dict[str, str]:
    """The text of each page by the name of its file, with these rows of the table of operations."""
    pages = {name: _page(name, page, rows) for name, page in _PAGES.items()}
    listed = "\n".join(f"- [{page.title}]({name}.md): {page.about}." for name, page in _PAGES.items())
    return {f"{name}.md": page for name, page in {INDEX: _index(listed), **pages}.items()}


def _index(listed: str) -> str:
    return f"# Encodings\n\n{_generated()}\n\n{_INTRODUCTION}\n{listed}\n"


def _generated() -> str:
    return "Generated by `hw/isa/tools/docs.py` from `hw/isa`; do not edit."


def _page(name: str, page: _Page, rows: Mapping[VectorOp, Operation]) -> str:
    parts = [f"# {page.title}\n\n{_generated()} All pages: [index]({INDEX}.md).\n"]
    if page.is_whole:
        parts.append(text(page.module) + "\n")
    if page.module is words and page.is_whole:
        parts.append(_units())
    if page.module is operations:
        parts.append(_operations(rows))
    for kind in _kinds(page):
        parts.append(enum_section(kind, _link) if issubclass(kind, enum.Enum) else struct_section(kind, _link))
    if page.is_whole:
        parts.append(constants_section(page.module))
    whole = "\n".join(part for part in parts if part).rstrip("\n") + "\n"
    return whole.replace(f"]({name}.md#", "](#")


def _kinds(page: _Page) -> Iterable[type]:
    """What the page lists, in its order."""
    return page.kinds if page.kinds is not None else _kinds_of(page.module)


def _kinds_of(module: ModuleType) -> list[type]:
    return [*enums(module), *structs(module)]


def _link(kind: type) -> str:
    """A link to where a kind is explained."""
    if kind is VectorOp:
        return f"[{kind.__name__}](operations.md#the-table)"
    name = next(name for name, page in _PAGES.items() if kind in _kinds(page))
    return f"[{kind.__name__}]({name}.md#{kind.__name__.lower()})"


def write(folder: Path = FOLDER) -> None:
    """Write the pages, in place of those that are there."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, page in generate().items():
        (folder / name).write_text(page, encoding="utf-8")


def check(folder: Path = FOLDER) -> bool:
    """Whether the pages in ``folder`` are what would be generated now."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")} == generate()


def _operations(rows: Mapping[VectorOp, Operation]) -> str:
    """The table of operations, and that of those that reduce."""
    listed = [
        (op.value, f"`{op.name}`", f"`{_escaped(row.formula)}`", _modes(row), row.unit.name, _said(row))
        for op, row in rows.items()
    ]
    reducing = [
        (f"`{op.name}`", f"`{_escaped(row.reduction.formula)}`", row.reduction.neutral)
        for op, row in rows.items()
        if row.reduction
    ]
    return (
        "## The table\n\n"
        + table(("code", "name", "result", "modes", f"[unit](#{OperationUnit.__name__.lower()})", "meaning"), listed)
        + "\n## What reduces\n\n"
        + table(("name", "result in mode REDUCE", "partial results begin with"), reducing)
    )


def _modes(row: Operation) -> str:
    return ", ".join(mode.name for mode in Mode if row.may_have(mode))


def _said(row: Operation) -> str:
    """What the row says besides the formula."""
    said = [row.note]
    if row.b_replaces_c:
        said.append("An operand `b` that is not 0 takes the place of `c`, but in mode REDUCE.")
    if row.takes_a:
        said.append("An empty `c` gives `a`.")
    if row.register_a:
        said.append("`a` is a register.")
    return " ".join(part for part in said if part)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _units() -> str:
    rows = []
    for unit, kind in UNIT_FIELDS.items():
        rows.append((unit.value, unit.name, _link(kind)))
    return "## Units and their fields\n\n" + table(("unit", "name", "fields"), rows)


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare the files with them; the exit status."""
    if arguments == ["--check"]:
        if not check():
            print(f"{FOLDER} must be generated anew: python -m daedal.hw.isa.tools.docs", file=sys.stderr)
            return 1
        return 0
    if arguments:
        print(f"the only option is --check, not {' '.join(arguments)}", file=sys.stderr)
        return 2
    write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
