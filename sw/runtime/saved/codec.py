"""Plain data as JSON and back: dataclasses, tuples, mappings and single values, as their type hints say.

A dataclass is an object with its fields, and its name under ``is``; a mapping is a list of pairs. What is read is held
against the hints, so that nothing of another form gets in.
"""

import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from daedal.base.messages import shown
from daedal.hw.isa.elements import ELEMENTS, FLOATS8, QUANTISED, Element

_NAME = "is"
_ELEMENTS = {element.name: element for element in (*ELEMENTS, *QUANTISED, *FLOATS8)}


def encode(value: Any) -> Any:
    """``value`` as what JSON has; TypeError for what is none of the above."""
    if isinstance(value, Element):
        return {_NAME: "type", "name": value.name}
    if is_dataclass(value) and not isinstance(value, type):
        return {_NAME: type(value).__name__} | {each.name: encode(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return [[encode(key), encode(each)] for key, each in value.items()]
    if isinstance(value, tuple | list | set | frozenset):
        return [encode(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a file cannot hold {shown(value)}")


def decode(hint: Any, value: Any, where: str = "it") -> Any:
    """The value of this type that JSON has as ``value``; ValueError for anything else, with the path to it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _of_union(arguments, value, where)
    if hint is Element:
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in _ELEMENTS:
            raise _wrong(where, "an element type", value)
        return _ELEMENTS[name]
    if is_dataclass(hint):
        return _of_class(hint, value, where)
    if origin is tuple:
        return _of_tuple(arguments, value, where)
    if origin in (dict, Mapping):
        key, each = arguments
        pairs = _list(value, where)
        if any(not isinstance(pair, list) or len(pair) != 2 for pair in pairs):
            raise _wrong(where, "a list of pairs", value)
        return {decode(key, a, f"{where} key"): decode(each, b, f"{where}[{shown(a)}]") for a, b in pairs}
    if origin in (Collection, Sequence, set, frozenset, list):
        found = tuple(decode(arguments[0], each, where) for each in _list(value, where))
        return set(found) if origin is set else found
    return _single(hint, value, where)


def _of_union(hints: Sequence[Any], value: Any, where: str) -> Any:
    if value is None and type(None) in hints:
        return None
    if isinstance(value, dict):
        named = [each for each in hints if is_dataclass(each) and _name_of(each) == value.get(_NAME)]
        if len(named) != 1:
            raise _wrong(where, f"one of {', '.join(_name_of(each) for each in hints)}", value.get(_NAME))
        return decode(named[0], value, where)
    if any(each is type(value) for each in hints):
        return value
    others = [each for each in hints if get_origin(each) is not None]
    if len(others) == 1:
        return decode(others[0], value, where)
    raise _wrong(where, f"one of {', '.join(_name_of(each) for each in hints)}", value)


def _of_class(hint: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict) or value.get(_NAME) != hint.__name__:
        raise _wrong(where, f"a {hint.__name__}", value)
    wanted = _hints(hint)
    if value.keys() - {_NAME} != wanted.keys():
        odd = ", ".join(sorted((value.keys() - {_NAME}) ^ wanted.keys()))
        raise ValueError(f"{where} must have the fields of {hint.__name__}, but not so: {odd}")
    return hint(**{name: decode(each, value[name], f"{where}.{name}") for name, each in wanted.items()})


def _of_tuple(hints: Sequence[Any], value: Any, where: str) -> tuple[Any, ...]:
    given = _list(value, where)
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(decode(hints[0], each, f"{where}[{number}]") for number, each in enumerate(given))
    if len(given) != len(hints):
        raise _wrong(where, f"a list of {len(hints)}", value)
    return tuple(decode(hint, each, where) for hint, each in zip(hints, given, strict=True))


def _single(hint: Any, value: Any, where: str) -> Any:
    wanted = type(None) if hint is None else hint
    if wanted in (bool, int, float, str, type(None)) and type(value) is wanted:
        return value
    if hint is float and type(value) is int:
        return float(value)
    raise _wrong(where, _name_of(hint), value)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(where, "a list", value)
    return value


def _name_of(hint: Any) -> str:
    return str(getattr(hint, "__name__", hint))


def _wrong(where: str, wanted: str, value: Any) -> ValueError:
    return ValueError(f"{where} must be {wanted}, not {shown(value)}")


@cache
def _hints(hint: type) -> dict[str, Any]:
    found = get_type_hints(hint)
    return {each.name: found[each.name] for each in fields(hint)}
