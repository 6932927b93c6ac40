"""Counts of lines and branches of verilated models, brought together by the Amaranth source they come from.

Amaranth makes a Verilog module of every elaborated component. What comes from one source file is one statement if it
has the same text but for numbers and nameless signals, assigns the same signal, and is the n-th such in its module: so
it is one in the instances of a component, in several models, and in variants that differ in widths or numbers of units.
Their counts are added up. A statement that no test reaches is named by line of the source and text of the Verilog.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_POINT = re.compile(r"C '(.*)' (\d+)$")
_SOURCE = re.compile(r'\(\* src = "([^"]*?):(\d+)" \*\) ?')
_MODULE = re.compile(r"^module (\S+?) ?\(")
_TARGET = re.compile(r"^\s*(\\\S+ |[A-Za-z_]\w*)(?:\[[^\]]*\])?\s+(?:<)?=")
_REGISTER = re.compile(r"^\s*(\\\S+ |[A-Za-z_]\w*)\s*<= (\\\S+ );")
_CONSTANT = re.compile(r"\d+'[hbd][0-9a-fxz?]+")
_NAMELESS = re.compile(r"[\\_]*\$\S*")
_CLOCK = re.compile(r"\b\w*clk\b")
_MARKS = re.compile(r"[\d\s\\.\[\]_:]+")
_NOTHING = "dump_module"
"""Part of the name of a condition that the Verilog writer makes up and that is never true."""

BRANCHES = frozenset({"if", "elsif", "else", "cond_then", "cond_else", "case"})
"""Kinds of points that are branches; a case counts as a line as well."""

_LINES = frozenset({"block", "case", "if", "else", "elsif"})


@dataclass(frozen=True)
class Place:
    """A point of a component: which one it is, and where.

    Attributes
    ----------
    source
        File of the component, from the top of the tree.
    target
        What its process assigns; empty for an assignment by itself.
    text
        Its Verilog, without numbers and nameless signals.
    order
        Number among the points of a module that are alike in all this.
    """

    source: str
    target: str
    text: str
    kind: str
    order: int

    @property
    def is_branch(self) -> bool:
        """Whether it counts as a branch."""
        return self.kind in BRANCHES

    @property
    def is_line(self) -> bool:
        """Whether it counts as a line."""
        return self.kind in _LINES and self.kind != "else"


@dataclass
class Module:
    """A module of a Verilog text: where it starts, its lines, and what it comes from."""

    source: str
    first: int
    lines: list[str]
    registers: dict[str, int] = field(default_factory=dict)
    statements: dict[int, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, line in enumerate(self.lines):
            if found := _REGISTER.match(line):
                self.registers[found[2].strip()] = number

    def statement(self, line: int) -> tuple[str, str]:
        """What the process around a line assigns, and the line's text, as in all variants."""
        if line not in self.statements:
            text = _plain(self.lines[line])
            self.statements[line] = ("" if text.startswith("assign") else self._target(line)), text
        return self.statements[line]

    def _target(self, line: int) -> str:
        found = self._assignment(line)
        if found is None:
            return ""
        register = self.registers.get(found)
        target = _TARGET.match(self.lines[register]) if register is not None else None
        return _plain(target[1] if target else found)

    def _assignment(self, line: int) -> str | None:
        """The name that the process around ``line`` assigns first."""
        start = line
        while start > 0 and "always" not in self.lines[start]:
            start -= 1
        for inner in self.lines[start + 1 :]:
            if target := _TARGET.match(inner):
                return target[1].strip()
            if inner.startswith("  end"):
                break
        return None

    def describe(self, line: int) -> str:
        """The source line of a line of the module, as near as the text knows it, and its Verilog."""
        where = _SOURCE.search(self.lines[line]) or self._assigned(line)
        text = _SOURCE.sub("", self.lines[line]).strip()
        return (f"line {where[2]}: " if where and where[1].endswith(self.source) else "") + text

    def _assigned(self, line: int) -> re.Match[str] | None:
        """The source of the signal that the process around ``line`` assigns."""
        register = self.registers.get(self._assignment(line) or "")
        return None if register is None else _SOURCE.search("\n".join(self.lines[max(register - 2, 0) : register]))


@dataclass
class Counts:
    """The counts of all points so far, and a description of each."""

    root: Path
    reached: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    text: dict[Place, str] = field(default_factory=dict)

    def add_folder(self, folder: Path) -> None:
        """Add all the counts in a folder."""
        by_model: dict[str, list[Path]] = defaultdict(list)
        for path in sorted(folder.glob("*.dat")):
            by_model[path.name.partition("-")[0]].append(path)
        for model, paths in by_model.items():
            modules = read_modules((folder / f"{model}.v").read_text(encoding="utf-8"), self.root)
            for path in paths:
                self._add(modules, path.read_text(encoding="utf-8").splitlines())

    def _add(self, modules: list[Module], lines: Iterable[str]) -> None:
        by_line = {module.first + n: (module, n) for module in modules for n in range(len(module.lines))}
        orders: dict[tuple[int, str, str, str], int] = defaultdict(int)
        for line, _, kind, count in sorted(read_points(lines)):
            if line not in by_line:
                continue
            module, number = by_line[line]
            text = module.lines[number]
            if not module.source or _NOTHING in text or (kind == "block" and "always" not in text):
                continue
            statement = module.statement(number)
            order = orders[module.first, *statement, kind]
            orders[module.first, *statement, kind] += 1
            place = Place(module.source, *statement, kind, order)
            self.reached[place] += count
            if place not in self.text:
                self.text[place] = module.describe(number)

    def sources(self) -> list[str]:
        """The files that there are points of."""
        return sorted({place.source for place in self.reached})

    def share(self, source: str | None = None, *, branches: bool) -> tuple[int, int]:
        """Points reached and points there are, of a file or of all, either branches or lines."""
        own = [
            count > 0
            for place, count in self.reached.items()
            if (source is None or place.source == source) and (place.is_branch if branches else place.is_line)
        ]
        return sum(own), len(own)

    def missing(self, source: str) -> list[str]:
        """The points of a file that nothing reaches: how often, which kind, where."""
        found: dict[str, int] = defaultdict(int)
        for place, count in sorted(self.reached.items(), key=lambda item: (self.text[item[0]], item[0].kind)):
            if place.source == source and not count:
                found[f"{place.kind}: {self.text[place]}"] += 1
        return [text + (f" ({times} times)" if times > 1 else "") for text, times in found.items()]


def _plain(text: str) -> str:
    """Verilog without numbers, nameless signals, names of clocks, and what tells fields from names."""
    text = _NAMELESS.sub("#", _CONSTANT.sub("#", _SOURCE.sub("", text)))
    return _MARKS.sub("", _CLOCK.sub("clock", text))


def read_points(lines: Iterable[str]) -> Iterator[tuple[int, int, str, int]]:
    """Line, column, kind and count of the points in a file of counts, those of instances added up."""
    found: dict[tuple[int, int, str], int] = defaultdict(int)
    for line in lines:
        if point := _POINT.match(line):
            parts = dict(part.split("\2", 1) for part in point[1].split("\1")[1:])
            found[int(parts["l"]), int(parts["n"]), parts["o"]] += int(point[2])
    for (number, column, kind), count in found.items():
        yield number, column, kind, count


def read_modules(text: str, root: Path) -> list[Module]:
    """The modules of a Verilog text; one that comes from no source of the project has an empty one."""
    modules: list[Module] = []
    source, start = "", None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if start is None and (found := _SOURCE.match(line)):
            source = found[1]
        elif start is None and _MODULE.match(line):
            start = number
        elif start is not None and line.startswith("endmodule"):
            modules.append(Module(_within(source, root), start + 1, lines[start : number + 1]))
            source, start = "", None
    return modules


def _within(source: str, root: Path) -> str:
    """The path of a source from the top of the tree, its links followed; empty if it is not the project's hardware."""
    path = Path(source).resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root / "hw") else ""
