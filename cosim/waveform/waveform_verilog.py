"""Verilog with names that waveform viewers can deal with."""

import re

_ESCAPED = re.compile(r"\\(\S+) ")
_SEPARATOR = re.compile(r"\.|\[")
_PLAIN = re.compile(r"[A-Za-z_][\w$]*")


def traced_verilog(text: str) -> str:
    """``text`` with other names inside: the same design for a model that writes waveforms.

    Amaranth calls the fields of a signal ``word.unit`` and ``registers[0]``. Viewers take the dot for a step into a
    submodule and the bracket for a bit, so these become ``word__unit`` and ``registers__0``, as Amaranth itself
    calls the members of interfaces. Nameless intermediate results (``$123``) become ``_$123``: Verilator leaves names
    with an underscore in front out of the waveform.
    """
    taken = set(_PLAIN.findall(text))
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        old = match[1]
        if old not in names:
            new = _SEPARATOR.sub("__", old).replace("]", "")
            new = f"_{new}" if new.startswith("$") else new
            names[old] = old if new in taken else new
            taken.add(names[old])
        return f"\\{names[old]} "

    return _ESCAPED.sub(rename, text)
