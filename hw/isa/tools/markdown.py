"""Encodings as Markdown: docstrings, enums, packed structures, constants."""

import ast
import enum
import inspect
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from types import ModuleType

from amaranth.lib import data

from daedal.hw.isa import registers
from daedal.hw.isa.program import FIELD_STRUCTS
from daedal.hw.isa.tools.c_header import members

Link = Callable[[type], str]
"""A link to where a kind is explained."""


def text(thing: object) -> str:
    """A docstring as Markdown."""
    return inspect.cleandoc(thing.__doc__ or "").replace("``", "`")


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines) + "\n"


def _bits(offset: int, width: int) -> str:
    return str(offset) if width == 1 else f"{offset + width - 1}:{offset}"


def struct_section(struct: type[data.Struct], link: Link) -> str:
    """A packed structure: its docstring and its members."""
    own = texts(struct)
    rows = [
        [_bits(offset, width), f"`{name}`", kind, *[own.get(name, "")] * bool(own)]
        for name, offset, width, kind in _described(struct, link)
    ]
    size = data.Layout.cast(struct).size
    listed = table([f"bits of {size}", "member", "type"] + ["meaning"] * bool(own), rows)
    return f"## {struct.__name__}\n\n{text(struct)}\n\n{listed}"


def _described(struct: type[data.Struct], link: Link) -> Iterator[tuple[str, int, int, str]]:
    shapes, nested = dict(_shapes(struct)), _nested(struct)
    for name, offset, width in members(struct):
        shape = shapes[name]
        kind = link(shape) if isinstance(shape, type) and issubclass(shape, enum.Enum) else f"{width} bit"
        yield name.replace("_", ".", 1) if name in nested else name, offset, width, kind


def _shapes(struct: type[data.Struct], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, field in data.Layout.cast(struct):
        if isinstance(field.shape, type(data.Struct)):
            yield from _shapes(field.shape, f"{prefix}{name}_")
        else:
            yield f"{prefix}{name}", field.shape


def _nested(struct: type[data.Struct]) -> set[str]:
    return {name for name, _ in _shapes(struct)} - {str(name) for name, _ in data.Layout.cast(struct)}


def enum_section(kind: type[enum.Enum], link: Link) -> str:
    """An enum: its docstring and its members, with what fields hold and what registers allow."""
    own = texts(kind)
    fields = any(member in FIELD_STRUCTS for member in kind)
    is_register = kind is registers.Register
    heads = ["value", "name"] + ["holds"] * fields + ["access"] * is_register + ["meaning"] * bool(own)
    base = hex if is_register else str
    rows = []
    for member in kind:
        struct = FIELD_STRUCTS.get(member)
        holds = link(struct) if struct else "a number"
        rows.append(
            [
                base(member.value),
                f"`{member.name}`",
                *[holds] * fields,
                *([registers.ACCESS[registers.Register(member)]] if is_register else []),
                *[own.get(member.name, "")] * bool(own),
            ]
        )
    return f"## {kind.__name__}\n\n{text(kind)}\n\n" + table(heads, rows)


def texts(thing: type | ModuleType) -> dict[str, str]:
    """The text below each assignment or annotation in the source of a class or module, by the name."""
    tree = ast.parse(inspect.getsource(thing))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else tree.body
    found: dict[str, str] = {}
    for above, below in pairwise(body):
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            name, text = _target(above), below.value.value
            if isinstance(name, ast.Name) and isinstance(text, str):
                found[name.id] = " ".join(inspect.cleandoc(text).replace("``", "`").split())
    return found


def _target(statement: ast.stmt) -> ast.expr | None:
    """What an assignment or annotation names, or None for another statement."""
    if isinstance(statement, ast.AnnAssign):
        return statement.target
    return statement.targets[0] if isinstance(statement, ast.Assign) else None


def constants_section(module: ModuleType) -> str:
    """The numbers that a module defines; nothing if there are none."""
    own = texts(module)
    source = inspect.getsource(module)
    rows = [
        (f"`{name}`", hex(value) if value > 0xFFFF else value, own.get(name, ""))
        for name, value in vars(module).items()
        if name.isupper() and type(value) is int and f"\n{name} = " in source
    ]
    if not rows:
        return ""
    title = f"## Constants of `{module.__name__.partition('.')[2]}`\n\n"
    return title + table(("name", "value", "meaning"), rows)
