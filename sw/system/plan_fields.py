"""The fields of a plan's file, checked: each function raises ValueError for what is no such field."""

from collections.abc import Mapping
from typing import Any

from daedal.base.messages import shown


def object_of(value: object, what: str) -> dict[str, Any]:
    """An object of JSON."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be an object, not {shown(value)}")
    return value


def list_of(fields: Mapping[str, Any], name: str) -> list[Any]:
    """The list of this name."""
    value = fields.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, not {shown(value)}")
    return value


def text_of(fields: Mapping[str, Any], name: str) -> str:
    """The text of this name."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, not {shown(value)}")
    return value


def number_of(fields: Mapping[str, Any], name: str, least: int) -> int:
    """The whole number of this name, not below ``least``."""
    value = fields.get(name)
    if type(value) is not int or not least <= value < 1 << 63:
        raise ValueError(f"{name} must be a whole number from {least} on, not {shown(value)}")
    return value


def range_of(fields: Mapping[str, Any], name: str) -> tuple[int, int]:
    """The two numbers of this name: a first one, and the one behind the last."""
    value = list_of(fields, name)
    if len(value) != 2 or not all(type(each) is int and each >= 0 for each in value):
        raise ValueError(f"{name} must be a first and the one behind the last, not {shown(value)}")
    return value[0], value[1]
