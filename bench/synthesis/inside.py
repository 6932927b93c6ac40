"""Whether a board's system has all of its core: ``python -m bench.synthesis.inside BOARD …``.

The core's flip-flops, block RAMs and multipliers inside of the board's netlist, beside those of the core alone by the
same synthesis. What is missing would have been optimised away.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import click

from bench.pages import insert
from bench.report import WIDTH, say
from daedal.cosim.rtl import TOP, core_verilog
from daedal.errors import BuildFailed, DaedalError
from daedal.files import write_whole
from daedal.hw.boards import find_board, tools
from daedal.hw.boards.bitstream import TIMEOUT, synthesise
from daedal.hw.boards.flows import FLOWS, NETLIST, SOURCE, YOSYS
from daedal.hw.boards.netlist import top_module
from daedal.hw.boards.reports import SYSTEM, unit_of
from daedal.measure.table import column, markdown, show

PAGE = Path(__file__).resolve().parents[2] / "docs" / "boards.md"
BEGIN = "<!-- inside: made by python -m bench.synthesis.inside -->"
"""What stands between this line and the next end of figures is replaced."""

TOLERANCE = 0.05
"""Most by which the two may differ, as a part of the core alone."""

KINDS = {
    "ff": r"TRELLIS_FF|DFF\w*|SB_DFF\w*",
    "bram": r"DP16KD|SDPX?9?B|DPX?9?B|SPX?9?|pROMX?9?|SB_RAM40_4K\w*",
    "dsp": r"MULT(18X18D?|9X9D?|36X36)|SB_MAC16",
}
"""What is counted -> types of cells, of any family."""

COLUMNS = (
    column("board", "board"),
    *(column(f"{name.upper()}, {where}", f"{name}_{where}", ",d") for name in KINDS for where in ("inside", "alone")),
    column("largest difference", "difference", ".1%"),
)

Row = dict[str, Any]


def counts(netlist: Path, *, inside: bool) -> Counter[str]:
    """Cells of each of ``KINDS`` in a netlist; ``inside``: only those of the core in a board's system."""
    found: Counter[str] = Counter()
    for name, cell in top_module(json.loads(netlist.read_text(encoding="utf-8")))["cells"].items():
        if not inside or unit_of(name) != SYSTEM:
            found.update(kind for kind, types in KINDS.items() if re.fullmatch(types, cell["type"]))
    return found


def alone(board: str, folder: Path) -> Path:
    """The netlist of a board's core by itself, unless it is there. Raises BuildFailed."""
    found = find_board(board)
    text, script = core_verilog(found.config), FLOWS[found.flow].script(TOP, SOURCE)
    work = folder / f"core-{tools.key(text, script, tools.version(YOSYS))}"
    work.mkdir(parents=True, exist_ok=True)
    write_whole(work / SOURCE, text.encode())
    write_whole(work / "synthesis.ys", script.encode())
    if (work / NETLIST).exists():
        return work / NETLIST
    if tools.run(YOSYS, ["-q", "synthesis.ys"], work, "synthesis.log", timeout=TIMEOUT):
        (work / NETLIST).unlink(missing_ok=True)
        raise BuildFailed(f"{YOSYS} failed: {tools.telling_lines(work / 'synthesis.log')}")
    return work / NETLIST


def compare(board: str, inside: Counter[str], by_itself: Counter[str]) -> Row:
    """A row of the table."""
    row: Row = {"board": f"`{board}`"}
    for name in KINDS:
        row |= {f"{name}_inside": inside[name], f"{name}_alone": by_itself[name]}
    parts = [abs(inside[name] - by_itself[name]) / max(1, by_itself[name]) for name in KINDS]
    return row | {"difference": max(parts)}


@click.command()
@click.argument("boards", nargs=-1, required=True)
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build"), show_default=True,
              help="Where netlists are kept, in a folder for each board.")  # fmt: skip
@click.option("--write", is_flag=True, help="Put the table into docs/boards.md.")
def main(boards: tuple[str, ...], folder: Path, write: bool) -> None:
    """Count the cells of the core in the systems of BOARDS and alone; status 1 if they differ by more than 5 %."""
    rows = []
    for board in boards:
        say(f"inside: {board}")
        try:
            system, _ = synthesise(board, folder=folder / board)
            core = alone(board, folder / board)
        except DaedalError as error:
            raise click.ClickException(str(error)) from None
        rows.append(compare(board, counts(system / NETLIST, inside=True), counts(core, inside=False)))
    show("The core inside of each board's system, and alone", COLUMNS, rows, width=WIDTH)
    if write:
        page = insert(PAGE.read_text(encoding="utf-8"), BEGIN, markdown(COLUMNS, rows))
        PAGE.write_text(page, encoding="utf-8")
    raise SystemExit(any(row["difference"] > TOLERANCE for row in rows))


if __name__ == "__main__":
    main(prog_name="python -m bench.synthesis.inside")
