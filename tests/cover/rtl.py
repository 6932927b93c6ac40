"""Counts of lines and branches of verilated models, brought together by the Amaranth source they come from.

Amaranth makes a Verilog module of every elaborated component. Two modules are taken for the same if they come from the
same source line and have the same text but for numbers and signal names: the instances of a component, the same one in
several models, and its variants that differ in nothing but widths. Their counts are added up; variants of another shape
are counted apart. A point that no test reaches is named by module, line of the source, and text of the Verilog.
"""

import hashlib
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
_DECLARATION = re.compile(r"\s*(module|input|output|wire|reg)\b")
_WORD = re.compile(r"[\\$]\S*|\w+")
_KEYWORDS = frozenset(
    {"always", "assign", "begin", "case", "casez", "default", "else", "end", "endcase", "if", "initial", "posedge"}
)
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
    shape
        What tells its variants apart.
    line
        Line within the Verilog of the module, from 0.
    order
        Number among the points of one kind in the line.
    """

    source: str
    shape: str
    line: int
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
    shape: str = ""
    registers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = "\n".join(_shape(line) for line in self.lines)
        self.shape = hashlib.sha256(text.encode()).hexdigest()[:12]
        for number, line in enumerate(self.lines):
            if found := _REGISTER.match(line):
                self.registers[found[2].strip()] = number

    def describe(self, line: int) -> str:
        """The source line of a line of the module, as near as the text knows it, and its Verilog."""
        where = _SOURCE.search(self.lines[line]) or self._assigned(line)
        text = _SOURCE.sub("", self.lines[line]).strip()
        return (f"line {where[2]}: " if where and where[1].endswith(self.source) else "") + text

    def _assigned(self, line: int) -> re.Match[str] | None:
        """The source of the signal that the process around ``line`` assigns."""
        start = line
        while start > 0 and "always" not in self.lines[start]:
            start -= 1
        for inner in self.lines[start + 1 :]:
            target = _TARGET.match(inner)
            if target:
                register = self.registers.get(target[1].strip())
                return _SOURCE.search("\n".join(self.lines[max(register - 2, 0) : register])) if register else None
            if inner.startswith("  end"):
                break
        return None


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
        orders: dict[tuple[int, str], int] = defaultdict(int)
        for line, _, kind, count in sorted(read_points(lines)):
            if line not in by_line:
                continue
            module, number = by_line[line]
            order = orders[line, kind]
            orders[line, kind] += 1
            text = module.lines[number]
            if not module.source or _NOTHING in text or (kind == "block" and "always" not in text):
                continue
            place = Place(module.source, module.shape, number, kind, order)
            self.reached[place] += count
            self.text.setdefault(place, module.describe(number))

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
        for place, count in sorted(self.reached.items(), key=lambda item: (item[0].line, item[0].kind)):
            if place.source == source and not count:
                found[f"{place.kind}: {self.text[place]}"] += 1
        return [text + (f" ({times} times)" if times > 1 else "") for text, times in found.items()]


def _shape(line: str) -> str:
    """A line of Verilog without its names and numbers; of a declaration, only that it is one."""
    text = _SOURCE.sub("", line)
    if _DECLARATION.match(text):
        return "declaration"
    return _WORD.sub(lambda word: word[0] if word[0] in _KEYWORDS else "#", text)


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
