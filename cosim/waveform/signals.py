"""The signals of a design and the names of their values, read from its Verilog."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_MODULE = re.compile(r"^module \\?(\S+?) ?\((.*)\);", re.DOTALL)
_NUMBER = re.compile(r"\$\d+")
_ATTRIBUTE = re.compile(r'^\s*\(\* enum_(base_type|value_[01]+) = "([^"]*)" \*\)')
_DECLARATION = re.compile(r"^\s*(?:wire|reg)\s+(?:signed\s+)?(?:\[(\d+):0\]\s+)?\\?([^\s;,]+)\s*[;=]")
_PORT = re.compile(r"^\s*(?:input|output|inout)\s")


@dataclass(frozen=True)
class Names:
    """The names of a signal's values: ``width`` bits, value -> name, under the name of the enumeration."""

    kind: str
    width: int
    values: tuple[tuple[int, str], ...]


@dataclass
class Signals:
    """All signals of a design.

    Attributes
    ----------
    widths
        Path of a module (``daedal_core.tile.core.access``) -> name of a signal in it -> its bits.
    names
        Path and name of a signal whose values have names -> these names.
    ports
        Path of a module -> the names of its ports.
    """

    widths: dict[str, dict[str, int]] = field(default_factory=dict)
    names: dict[tuple[str, str], Names] = field(default_factory=dict)
    ports: dict[str, frozenset[str]] = field(default_factory=dict)

    def own(self, path: str) -> dict[str, str]:
        """The signals of a module by the names that they have in the hardware's source.

        Where a unit and a part of it both have a ``valid``, Amaranth calls one of them ``valid$12``, not always
        that of the part. A port of the module goes before others, and of these the one without a number.
        """
        found: dict[str, str] = {}
        ranks: dict[str, int] = {}
        for name in self.widths.get(path, {}):
            plain = plain_name(name)
            parts = name.split("__")
            is_port = any("__".join(parts[: end + 1]) in self.ports[path] for end in range(len(parts)))
            rank = 2 * is_port + (name == plain)
            if rank > ranks.get(plain, 0):
                found[plain], ranks[plain] = name, rank
        return found

    def enumerations(self) -> Mapping[str, Names]:
        """Every enumeration once, under a name of its own."""
        found: dict[str, Names] = {}
        for names in self.names.values():
            label, number = names.kind, 1
            while found.get(label, names) != names:
                number += 1
                label = f"{names.kind}_{number}"
            found[label] = names
        return found


def plain_name(name: str) -> str:
    """``name`` without the numbers that make it unique in its module."""
    return _NUMBER.sub("", name)


def read_signals(verilog: str) -> Signals:
    """The signals in Verilog as :func:`traced_verilog` gives it; nameless ones are left out."""
    signals, module = Signals(), ""
    attributes: dict[str, str] = {}
    for line in _statements(verilog):
        if match := _MODULE.match(line):
            module = match[1].replace("__", ".")
            signals.widths[module] = {}
            signals.ports[module] = frozenset(port.strip(" \n\\") for port in match[2].split(","))
        elif match := _ATTRIBUTE.match(line):
            attributes[match[1]] = match[2]
        elif match := _DECLARATION.match(line):
            width, name = int(match[1] or 0) + 1, match[2]
            if not name.startswith("_"):
                signals.widths[module][name] = width
                if attributes:
                    signals.names[module, name] = _names(attributes, width)
            attributes = {}
        elif not _PORT.match(line) and "(*" not in line:
            attributes = {}
    return signals


def _statements(verilog: str) -> Iterator[str]:
    """The lines of the text, with a module's head, which can have several, in one."""
    head = ""
    for line in verilog.splitlines():
        if head or line.startswith("module "):
            head = f"{head}\n{line}" if head else line
            if head.endswith(");"):
                yield head
                head = ""
        else:
            yield line


def _names(attributes: Mapping[str, str], width: int) -> Names:
    values = {int(key.removeprefix("value_"), 2): text for key, text in attributes.items() if key != "base_type"}
    return Names(attributes["base_type"], width, tuple(sorted(values.items())))
