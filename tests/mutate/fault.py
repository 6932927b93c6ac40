"""What a planted fault is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutate.operators.site import Site

SLOW = "-o timeout=1800"
"""For a suite whose tests build the whole core: more time than tests have otherwise."""

NEUTRAL = "neutral"
"""Kind of a change that must make no difference to any test."""


class FaultDoesNotApply(Exception):
    """The text that a fault replaces is not in its file, or not as often as it must be."""


@dataclass(frozen=True)
class Edit:
    """A text of a file that is replaced by another.

    Attributes
    ----------
    file
        Path from the top of the tree.
    old, new
        The text, and what it becomes.
    nth
        Which one of several, counted from 0; None if there must be one.
    """

    file: str
    old: str
    new: str
    nth: int | None = None

    def apply(self, text: str) -> str:
        """The file's text with the edit made; FaultDoesNotApply if ``old`` is not there once (or ``nth`` times)."""
        parts = text.split(self.old)
        found = len(parts) - 1
        if found < 1 or (self.nth is None and found > 1) or (self.nth or 0) >= found:
            raise FaultDoesNotApply(f"{self.file} must have {self.old!r} once, or name which one by nth; found {found}")
        place = (self.nth or 0) + 1
        return self.old.join(parts[:place]) + self.new + self.old.join(parts[place:])


@dataclass(frozen=True)
class SiteEdit:
    """What an operator does at a place of a file."""

    file: str
    site: Site

    def apply(self, text: str) -> str:
        """The file's text with the operator applied."""
        raw = text.encode()
        return (raw[: self.site.start] + self.site.new.encode() + raw[self.site.end :]).decode()


@dataclass(frozen=True)
class Fault:
    """A fault to plant, alone, in a copy of the tree.

    Attributes
    ----------
    id
        ``area/name``.
    kind
        What sort of mistake it is; ``neutral`` for a change that all suites must survive.
    about
        The fault in one line.
    edits
        What is changed; most faults are one edit, one in the RTL's netlist is none.
    suites
        Arguments of pytest, one run each, nearest and quickest first.
    environment
        Variables that pytest gets, for a plugin that makes the change.
    options
        Further arguments of pytest, before a suite's.
    """

    id: str
    kind: str
    about: str
    edits: tuple[Edit | SiteEdit, ...]
    suites: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    @property
    def area(self) -> str:
        """The area, which is the part of the id before the slash."""
        return self.id.partition("/")[0]

    @property
    def files(self) -> list[str]:
        """The files that it changes."""
        return list(dict.fromkeys(edit.file for edit in self.edits))

    @property
    def is_neutral(self) -> bool:
        """Whether no test may notice it."""
        return self.kind == NEUTRAL

    def texts(self, tree: Path) -> dict[str, str]:
        """The changed text of each of its files in ``tree``; FaultDoesNotApply if an edit has no place."""
        changed: dict[str, str] = {}
        for edit in self.edits:
            before = changed.get(edit.file) or (tree / edit.file).read_text(encoding="utf-8")
            changed[edit.file] = edit.apply(before)
        return changed


def plant(
    id_: str, kind: str, file: str, old: str, new: str, about: str, *suites: str, nth: int | None = None
) -> Fault:
    """A fault of one edit."""
    return Fault(id_, kind, about, (Edit(file, old, new, nth),), suites)
