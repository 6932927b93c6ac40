"""Imports point one way: no circles, no forwarded names, and between packages only the arrows of docs/architecture.md.

Every import counts: those of types only, and those inside of functions too.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TREES = sorted(path.name for path in (ROOT / "daedal").iterdir() if (path / "__init__.py").is_file())
"""The packages of daedal, by links and folders."""
FACADE, COMMANDS = "daedal", ("bench", "cli")
"""The public names, and the packages that use them as a user does."""
BASE = "base"
"""A package that all may use, with the modules beside the packages."""
OF_CLI = ("daedal.__main__", "daedal.requirements")
"""Those of them that are parts of the command."""


class Import(NamedTuple):
    """``module`` imports ``name`` of ``source``; ``name`` is empty where that is a module as a whole."""

    module: str
    source: str
    name: str


@cache
def modules() -> Mapping[str, ast.Module]:
    """Every module of daedal by name, parsed."""
    found = {}
    tops = (ROOT / "daedal").glob("*.py")
    for path in [*tops, *(path for tree in TREES for path in (ROOT / "daedal" / tree).rglob("*.py"))]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    return found


@cache
def imports() -> tuple[Import, ...]:
    """Every import of a module of daedal by another one."""
    return tuple(each for name, tree in modules().items() for each in _imports_of(name, tree) if each.source != name)


def _imports_of(module: str, tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(module, each.name, "") for each in node.names if each.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module in modules():
            assert node.level == 0, f"{module} must import by the whole name, not relatively"
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield Import(module, whole, "") if whole in modules() else Import(module, node.module, each.name)


def package_of(module: str) -> str:
    """The package of daedal that a module is in, ``BASE`` for what is in none, ``FACADE`` for the public names."""
    parts = module.split(".")
    if len(parts) == 1:
        return FACADE
    if parts[1] in TREES:
        return parts[1]
    return "cli" if module in OF_CLI else BASE


@cache
def pictured() -> Mapping[str, tuple[str, ...]]:
    """What each package imports, as the first table of the architecture page has it."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = re.search(r"(?:^\|.*\n)+", page, re.MULTILINE)
    assert table is not None
    _, _, *rows = table[0].splitlines()
    cells = [row.strip("|").split("|") for row in rows]
    return {
        name: tuple(re.findall(r"`([\w.]+)`", last))
        for first, *_, last in cells
        for name in re.findall(r"`(?:daedal/)?(\w+)`", first)
    }


def circle(arrows: Iterable[tuple[str, str]]) -> list[str]:
    """One circle of these arrows, empty if there is none."""
    graph: dict[str, set[str]] = {}
    for start, end in arrows:
        graph.setdefault(start, set()).add(end)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other() -> None:
    assert circle((each.module, each.source) for each in imports()) == []


def test_no_packages_import_each_other() -> None:
    arrows = {(package_of(each.module), package_of(each.source)) for each in imports()}
    assert circle((start, end) for start, end in arrows if start != end) == []


def test_the_page_shows_every_package() -> None:
    assert sorted(pictured()) == TREES


@pytest.mark.parametrize("package", TREES)
def test_arrows_are_those_of_the_page(package: str) -> None:
    shown, seen = pictured()[package], set[str]()
    for each in imports():
        target = package_of(each.source)
        if package_of(each.module) != package or target in (package, BASE, FACADE):
            continue
        way = f"{each.source.removeprefix('daedal.')}."
        arrow = next((name for name in shown if way.startswith(f"{name}.")), None)
        assert arrow, f"{each.module} imports {each.source}, but docs/architecture.md shows {package} -> {shown} only"
        seen.add(arrow)
    assert set(shown) == seen, "the page must show no arrow that is not there"


def test_the_base_imports_nothing_else() -> None:
    assert [each for each in imports() if package_of(each.module) == BASE != package_of(each.source)] == []


def test_only_commands_use_the_public_names() -> None:
    assert [each for each in imports() if each.source == FACADE and package_of(each.module) not in COMMANDS] == []


@pytest.mark.parametrize("package", ["cosim", "fpga", "driver", "runtime", "compiler"])
def test_the_hardware_knows_none_of_those_around_it(package: str) -> None:
    assert [each for each in imports() if package_of(each.module) == "hw" and package_of(each.source) == package] == []


def test_names_come_from_where_they_are_defined() -> None:
    forwarded = [each for each in imports() if each.name and each.name not in _defined(each.source)]
    assert [each for each in forwarded if each.source != FACADE] == []


def test_modules_are_not_asked_for_names_of_others() -> None:
    for module, tree in modules().items():
        known = {each.source.rpartition(".")[2]: each.source for each in _imports_of(module, tree) if not each.name}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
                source = known[node.value.id]
                is_there = node.attr in _defined(source) or f"{source}.{node.attr}" in modules() or source == FACADE
                assert is_there or node.attr.startswith("__"), f"{module} takes {node.attr} from {source}"


@cache
def _defined(module: str) -> frozenset[str]:
    """Names that a module defines itself."""
    tree = modules()[module]
    made = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return frozenset([*made, *stored])
