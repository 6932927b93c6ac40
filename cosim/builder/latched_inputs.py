"""Verilog whose inputs are registers with a clock of their own, for fast simulation.

Verilator evaluates what depends on inputs once more with every change of any input or clock. Behind registers it is
evaluated once, with all the rest, and the harness says when.
"""

import re

CLOCK = "pins_clk"
"""The input that takes the others over, rising edge."""

SUFFIX = "_pin"
"""What the names of the registers' inputs end in; the registers have the names that the inputs had."""

DIRECT = ("clk", "rst")
"""Inputs that stay as they are: the clock, and a reset that goes through a register already."""

_INPUT = re.compile(r"^  input ((?:\[\d+:0\] )?)(\w+);\n  wire \1\2;$", re.MULTILINE)


def latch_inputs(verilog: str, top: str) -> str:
    """``verilog`` with a register at every input of the module ``top`` but those of ``DIRECT``.

    The text must be as Yosys writes it: the names of the ports in the module's head, then ``input`` and ``wire`` of
    each, one after the other.
    """
    start = verilog.index(f"module {top}(")
    end = verilog.index("\nendmodule", start)
    head = verilog.index(");", start)
    ports, body = verilog[start:head], verilog[head:end]
    latched: list[str] = []

    def latch(match: re.Match[str]) -> str:
        width, name = match.groups()
        if name in DIRECT:
            return match[0]
        latched.append(name)
        return (
            f"  input {width}{name}{SUFFIX};\n  reg {width}{name};\n"
            f"  /* verilator coverage_off */ always @(posedge {CLOCK}) {name} <= {name}{SUFFIX};"
            " /* verilator coverage_on */"
        )

    body = _INPUT.sub(latch, body)
    pins = {name: f"{name}{SUFFIX}" for name in latched}
    ports = re.sub(r"\w+", lambda match: pins.get(match[0], match[0]), ports)
    return f"{verilog[:start]}{ports}, {CLOCK}{body[:2]}\n  input {CLOCK};{body[2:]}{verilog[end:]}"
