"""The C++ view of the encodings: a header generated from ``hw.isa`` and ``hw.config``.

Enums become namespaces of 64-bit constants (``limit`` is one more than the largest), packed structures
become structs with ``decode`` and ``encode``, ``Config`` a struct that ``config_values`` fills at run time,
so one library serves every configuration.
``python -m daedal.hw.isa.tools.c_header`` prints the header.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import ModuleType

from amaranth import Shape
from amaranth.lib import data

from daedal.hw.config import core as config_module
from daedal.hw.config.core import MAX_LEVELS, Config
from daedal.hw.isa import (
    address_mapping,
    checksum,
    elements,
    instructions,
    launch,
    operations,
    program,
    registers,
    words,
)
from daedal.hw.isa.elements import Element
from daedal.hw.isa.instructions import Mode, VectorOp
from daedal.hw.isa.operations import OPERATIONS, Operation

_MODULES = (
    elements,
    config_module,
    words,
    checksum,
    program,
    instructions,
    operations,
    address_mapping,
    registers,
    launch,
)
_KEYWORDS = frozenset({"register", "signed", "unsigned", "operator", "default", "switch", "union", "and", "or", "not"})
_DERIVED = ("hash", "place_bits", "vl_max", "context_count", "context_beats", "rotating_registers", "rotating_scalars",
            "octets", "has_affine")  # fmt: skip
_TABLES = {"memory_bits": address_mapping.class_table, "granules": address_mapping.granules}
"""Arrays of the C++ ``Config`` behind its other members, as long as the default configuration's, which no other's are
longer than."""


def generate(table: Mapping[VectorOp, Operation] = OPERATIONS) -> str:
    """The text of the header ``encodings.h``, with this table of operations; the same for every configuration."""
    parts = [
        "// Generated from hw/isa and hw/config/core.py by hw/isa/tools/c_header.py; not to be edited.",
        "#pragma once",
    ]
    parts += ["#include <cstdint>", "", "namespace daedal {", ""]
    known: dict[str, int | tuple[int, ...]] = {}  # modules import constants from each other
    for module in _MODULES:
        new = {name: value for name, value in _constants(module) if name not in known}
        known |= new
        parts += [_constant(name, value) for name, value in new.items()]
        parts += [_enum(kind) for kind in enums(module)]
        parts += [_struct(struct) for struct in structs(module)]
    parts += [_known_fields(), _operations(table), _config(), "}  // namespace daedal", ""]
    return "\n".join(parts)


def config_values(config: Config) -> list[int]:
    """The members of the C++ ``Config`` in order, each a signed 64-bit integer; tuples padded with 0."""
    values: list[int] = []
    for name in _config_names():
        value = getattr(config, name)
        if isinstance(value, tuple):
            values += [int(item) for item in value] + [0] * (MAX_LEVELS - len(value))
        else:
            values.append(int(value))
    for table in _TABLES.values():
        entries = table(config)
        values += [*entries, *[0] * (len(table(Config())) - len(entries))]
    return values


def enums(module: ModuleType) -> Iterator[type[enum.Enum]]:
    """The enums that ``module`` defines, in order."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, enum.Enum) and value.__module__ == module.__name__:
            yield value


def structs(module: ModuleType) -> Iterator[type[data.Struct]]:
    """The packed structures that ``module`` defines, in order."""
    for value in vars(module).values():
        if isinstance(value, type(data.Struct)) and value.__module__ == module.__name__:
            yield value


def members(struct: type[data.Struct], prefix: str = "", offset: int = 0) -> Iterator[tuple[str, int, int]]:
    """Name (nested ones as ``outer_inner``), lowest bit and width of each member of a packed structure."""
    for name, field in data.Layout.cast(struct):
        if isinstance(field.shape, type(data.Struct)):
            yield from members(field.shape, f"{prefix}{name}_", offset + field.offset)
        else:
            yield f"{prefix}{name}", offset + field.offset, field.width


def _constants(module: ModuleType) -> Iterator[tuple[str, int | tuple[int, ...]]]:
    """Numbers, tuples of numbers or of members of enums, and of an element its bytes, as ``LANE_BYTES``."""
    for name, value in vars(module).items():
        if isinstance(value, Element):
            yield f"{name}_BYTES", value.bytes
        if type(value) is tuple and value and all(isinstance(item, enum.Enum) for item in value):
            value = tuple(item.value for item in value)
        is_tuple = type(value) is tuple and all(type(item) is int for item in value)
        if name.isupper() and not name.startswith("_") and (type(value) is int or is_tuple):
            yield name, value


def _constant(name: str, value: int | tuple[int, ...]) -> str:
    if isinstance(value, tuple):
        return f"constexpr std::uint64_t {name}[] = {{{', '.join(map(hex, value))}}};"
    return f"constexpr std::uint64_t {name} = {value:#x};"


def _enum(kind: type[enum.Enum]) -> str:
    lines = [f"namespace {kind.__name__} {{"]
    lines += ["  " + _constant(member.name, member.value) for member in kind]
    lines += [f"  constexpr std::uint64_t limit = {max(member.value for member in kind) + 1};"]
    lines += ["  constexpr bool known(std::uint64_t value) {", "    switch (value) {"]
    lines += [f"      case {member.name}:" for member in kind]
    lines += ["        return true;", "      default:", "        return false;", "    }", "  }", "}"]
    return "\n".join(lines)


def _struct(struct: type[data.Struct]) -> str:
    listed = [(_identifier(name), offset, width) for name, offset, width in members(struct)]
    width = data.Layout.cast(struct).size
    lines = [f"struct {struct.__name__} {{", f"  static constexpr unsigned width = {width};"]
    lines += [f"  std::uint64_t {name};" for name, _, _ in listed]
    taken = ", ".join(f"(bits >> {offset}) & {(1 << size) - 1:#x}" for _, offset, size in listed)
    given = " | ".join(f"({name} & {(1 << size) - 1:#x}) << {offset}" for name, offset, size in listed)
    lines += [f"  static constexpr {struct.__name__} decode(std::uint64_t bits) {{ return {{{taken}}}; }}"]
    lines += [f"  constexpr std::uint64_t encode() const {{ return {given}; }}", "};"]
    return "\n".join(lines)


def _identifier(name: str) -> str:
    return f"{name}_" if name in _KEYWORDS else name


def _known_fields() -> str:
    lines = ["constexpr bool known_field(std::uint64_t unit, std::uint64_t field) {", "  switch (unit) {"]
    for unit, kind in program.UNIT_FIELDS.items():
        lines += [f"    case Unit::{unit.name}:", f"      return {kind.__name__}::known(field);"]
    return "\n".join([*lines, "    default:", "      return false;", "  }", "}"])


def _operations(table: Mapping[VectorOp, Operation]) -> str:
    """The rows of the table of operations by code, but for what they compute."""
    flags = ("b_replaces_c", "register_a", "pops_count", "takes_a", "stores", "rounds", "takes_head")
    lines = [
        "struct Operation {",
        "  bool known, uses_b, uses_c;",
        *(f"  bool {name};" for name in flags),
        f"  bool may_have[{len(Mode)}];  // by mode",
        "  std::uint64_t unit;",
        "};",
        f"constexpr Operation OPERATIONS[{1 << Shape.cast(VectorOp).width}] = {{",
    ]
    rows, names = {op.value: row for op, row in table.items()}, {op.value: op.name for op in table}
    for code in range(1 << Shape.cast(VectorOp).width):
        row = rows.get(code)
        if row is None:
            lines.append("  {},")
            continue
        said = [True, "b" in row.operands, "c" in row.operands, *(getattr(row, name) for name in flags)]
        flagged, modes = (", ".join(map(_bool, bits)) for bits in (said, map(row.may_have, Mode)))
        lines.append(f"  {{{flagged}, {{{modes}}}, OperationUnit::{row.unit.name}}},  // {names[code]}")
    return "\n".join([*lines, "};"])


def _bool(value: bool) -> str:
    return str(value).lower()


def _config_names() -> list[str]:
    return [field.name for field in fields(Config) if field.name != "name"] + list(_DERIVED)


def _config() -> str:
    default = Config()
    lines = ["struct Config {"]
    for name in _config_names():
        array = f"[{MAX_LEVELS}]" if isinstance(getattr(default, name), tuple) else ""
        lines.append(f"  std::int64_t {name}{array};")
    lines += [f"  std::int64_t {name}[{len(table(default))}];" for name, table in _TABLES.items()]
    return "\n".join([*lines, "};"])


if __name__ == "__main__":
    print(generate(), end="")
