"""The values of a plan that somebody made by hand, checked: InvalidSystem says which is wrong."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from daedal.base.messages import shown
from daedal.errors import InvalidSystem

_LEAST = {"rows": 0, "dim": 1, "bags": 1, "lookups": 0, "tile": 0}
"""Whole numbers of tables and pieces, and the least of each."""


def check_parts(what: str, values: object, kind: Any) -> None:
    """A tuple of tables, or of pieces."""
    if not isinstance(values, tuple) or not all(isinstance(each, kind) for each in values):
        raise InvalidSystem(f"{what} of a plan must be a tuple of {kind.__name__}, not {shown(values)}")
    for each in values:
        for field in fields(each):
            _check(field.name, getattr(each, field.name), field.type)


def _check(name: str, value: object, kind: object) -> None:
    if kind is str:
        check_text(name, value)
    elif kind == tuple[int, int]:
        if not (isinstance(value, Sequence) and len(value) == 2 and all(type(each) is int for each in value)):
            raise InvalidSystem(f"{name} must be a first and the one behind the last, not {shown(value)}")
    elif kind is int or value is not None:
        check_number(name, value, _LEAST[name])


def check_text(name: str, value: object) -> None:
    """A text."""
    if not isinstance(value, str):
        raise InvalidSystem(f"{name} must be a text, not {shown(value)}")


def check_number(name: str, value: object, least: int, most: int | None = None) -> None:
    """A whole number from the least on, up to the most if there is one."""
    if type(value) is not int or value < least or (most is not None and value > most):
        way = "on" if most is None else f"to {most}"
        raise InvalidSystem(f"{name} must be a whole number from {least} {way}, not {shown(value)}")


def check_numbers(name: str, values: object, count: int) -> None:
    """So many whole numbers."""
    if not isinstance(values, tuple) or len(values) != count or not all(type(n) is int and n >= 0 for n in values):
        raise InvalidSystem(f"{name} must be {count} whole numbers, not {shown(values)}")
