"""A counterexample as a waveform: a VCD file with everything that has a name, one nanosecond for each cycle."""

import re
from collections.abc import Sequence
from pathlib import Path

from vcd import VCDWriter

from tests.formal.sat.unroll import Unrolled


def write_waveform(run: Unrolled, file: Path) -> None:
    """What ``run`` found last, by the names of inputs, outputs and registers; what does not matter is ``x``."""
    words = _words(run)
    with file.open("w", encoding="ascii") as stream, VCDWriter(stream, timescale="1 ns", date="") as writer:
        variables = {}
        for name, bits in words.items():
            *scopes, last = name.split(".")
            variables[name] = writer.register_var(".".join(["top", *scopes]), last, "wire", size=len(bits))
        for cycle in range(len(run)):
            for name, bits in words.items():
                value = "".join("x" if bit is None else str(bit[cycle]) for bit in reversed(bits))
                writer.change(variables[name], cycle, value)
        writer.close(len(run))


def _words(run: Unrolled) -> dict[str, Sequence[Sequence[int] | None]]:
    """Bits that are called like elements of a word, put together: the lowest first, and each in all cycles."""
    netlist, values = run.netlist, run.example()
    literals = [*netlist.inputs.items(), *netlist.outputs.items(), *((n, x) for x, n in netlist.names.items())]
    found: dict[str, dict[int, Sequence[int] | None]] = {}
    for name, literal in literals:
        match = re.fullmatch(r"(.*)\[(\d+)\]", name)
        word, place = (match[1], int(match[2])) if match else (name, 0)
        found.setdefault(word, {})[place] = values(literal)
    return {word: [bits.get(place) for place in range(max(bits) + 1)] for word, bits in found.items()}
