"""Configurations from files: JSON or TOML tables of ``Config`` fields, and those that builds leave."""

import re
import tomllib
from collections.abc import Callable, Collection
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from daedal.base.files import parse_json, read_text
from daedal.base.messages import shown
from daedal.errors import FileError, InvalidConfig
from daedal.hw.config.core import FLAGS, LONGEST_NAME, MAX_LEVELS, PRESETS, Config

BASE = "base"
"""Key of a file that names the preset whose values hold for the fields not given; ``ddr3`` without it."""

HASH = "hash"
"""Key of what a build writes: the configuration's hash."""

MOST_BYTES = 1 << 17
"""Bytes of the largest file: a hundred times what all fields take."""

MOST_DOTS = 4000
"""Dots in a file: a key of so many parts takes TOML's reader a tenth of a second, and the square of them."""

WHAT = "a table of fields"
"""What a file holds."""

_FIELDS = tuple(field.name for field in fields(Config))
_PER_LEVEL = frozenset(name for name, value in asdict(Config()).items() if isinstance(value, tuple))


def find_config(name: str) -> Config:
    """The preset called ``name``, or the configuration in the file of that name.

    Raises InvalidConfig for what is neither, and as :func:`read_config`.
    """
    if name in PRESETS:
        return PRESETS[name]
    if not Path(name).suffix:
        raise InvalidConfig(f"configuration must be one of {', '.join(PRESETS)} or a file, not {shown(name)}")
    return read_config(Path(name))


def read_config(path: Path) -> Config:
    """The configuration in a file with the suffix ``.toml`` or ``.json``; it is called as the file.

    Every key is a field of ``Config``, or ``base``. Per-level fields that are not given are cut to ``levels``. Raises
    InvalidConfig, which names file, field, value and what the value may be.
    """
    table = _read_table(path)
    base = table.pop(BASE, Config().name)
    if not isinstance(base, str) or base not in PRESETS:
        raise InvalidConfig(f"{path}: {BASE} must be one of {', '.join(PRESETS)}, not {shown(base)}")
    values = {**asdict(PRESETS[base]), "name": re.sub(r"[^\w.-]", "_", path.stem)[:LONGEST_NAME]}
    for name, value in table.items():
        if name not in _FIELDS:
            known = ", ".join([BASE, *sorted(_FIELDS)])
            raise InvalidConfig(f"{path}: a field must be one of {known}, not {shown(name)}")
        values[name] = _typed(path, name, value)
    _fit_levels(values, given=table.keys())
    return _made(path, values)


def described_config(table: object, path: Path) -> Config:
    """The configuration that a build has written into ``path``: every field of ``Config``, and the ``hash`` of them.

    Raises InvalidConfig for anything else, such as what another version of Daedal has written.
    """
    if not isinstance(table, dict):
        raise InvalidConfig(f"{path}: config must be a table of fields, not {shown(table)}")
    for names, what in (({*_FIELDS, HASH} - table.keys(), "lacks"), (table.keys() - {*_FIELDS, HASH}, "also has")):
        if names:
            raise InvalidConfig(f"{path}: config must have the fields of Config and {HASH}; it {what} {min(names)!r}")
    config = _made(path, {name: _typed(path, name, table[name]) for name in _FIELDS})
    if table[HASH] != config.hash:
        raise InvalidConfig(f"{path}: {HASH} must be {config.hash}, that of the fields, not {shown(table[HASH])}")
    return config


def _made(path: Path, values: dict[str, Any]) -> Config:
    try:
        return Config(**values)
    except ValueError as error:
        raise InvalidConfig(f"{path}: {error}") from error


def _read_table(path: Path) -> dict[str, Any]:
    readers: dict[str, Callable[[str], object]] = {".toml": _parse_toml, ".json": partial(parse_json, what=WHAT)}
    if path.suffix not in readers:
        raise InvalidConfig(f"a configuration file must end in {' or '.join(readers)}, not {str(path)!r}")
    try:
        text = read_text(path, MOST_BYTES)
    except FileError as error:
        raise InvalidConfig(str(error)) from error
    try:
        table = readers[path.suffix](text)
    except ValueError as error:  # those of both decoders have line and column
        raise InvalidConfig(f"{path} cannot be read: {error}") from error
    if not isinstance(table, dict):
        raise InvalidConfig(f"{path} must hold a table of fields, not {type(table).__name__}")
    return table


def _parse_toml(text: str) -> object:
    """The table that ``text`` is; ValueError if it is no TOML."""
    try:
        if text.count(".") > MOST_DOTS:
            raise RecursionError
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"it must be {WHAT}, not nested so deeply") from None


def _fit_levels(values: dict[str, Any], *, given: Collection[str]) -> None:
    """Cut the base's per-level fields to ``levels`` entries, or repeat their last one, where the file has none.

    Where no level has contexts, no bundles are dealt, unless the file says how many.
    """
    levels = values["levels"]
    for name in _PER_LEVEL - set(given):
        if isinstance(levels, int) and 0 < levels <= MAX_LEVELS:
            values[name] = (values[name] + values[name][-1:] * levels)[:levels]
    if "dealt_bundles" not in given and isinstance(values["contexts"], tuple) and not any(values["contexts"]):
        values["dealt_bundles"] = 0


def _typed(path: Path, name: str, value: Any) -> Any:
    """``value`` as ``Config`` has it: a string, whole number or tuple, so that equal machines have equal hashes."""
    if name == "name":
        return value
    if name in _PER_LEVEL:
        if not isinstance(value, list):
            raise InvalidConfig(f"{path}: {name} must be a list with one entry per level, not {shown(value)}")
        kind = type(getattr(Config(), name)[0])
        return tuple(kind(item) if item in (0, 1) else item for item in value)
    if isinstance(value, bool) and name not in FLAGS:
        raise InvalidConfig(f"{path}: {name} must be a whole number, not {shown(value)}")
    return value
