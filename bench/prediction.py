"""What boards would do, as a table in ``docs/boards.md``: ``python -m bench.prediction REPORT.json …``.

Each REPORT is one that ``daedal bitstream`` left. Cycles are those of the core's RTL, in the report's configuration, on
the memory model ``ideal`` with the board's bandwidth, at the highest clock of the report. Everything is an estimate: no
board was measured.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from bench.pages import insert
from bench.report import say
from daedal.compiler.api import compile
from daedal.driver.device import Device
from daedal.driver.record import Stats
from daedal.errors import DaedalError, InvalidConfig, UnknownBoard
from daedal.hw.boards import find_board
from daedal.hw.boards.board import Board, Dram
from daedal.hw.config import Config
from daedal.hw.config_file import described_config
from daedal.measure.table import column, markdown
from daedal.measure.workloads import WORKLOADS, Made

PAGE = Path(__file__).resolve().parents[1] / "docs" / "boards.md"
BEGIN = "<!-- prediction: made by python -m bench.prediction -->"
"""What stands between this line and the next end of figures is replaced."""

SMALL = replace(WORKLOADS["gather"], name="gather-4m", what="rows of a table of 4 MiB, unchanged", tables=(1 << 14,))
"""A gather that fits into the smallest DRAM of a board."""

KNOWN = WORKLOADS | {SMALL.name: SMALL}
"""Name -> workload."""

DEFAULT = ("rm1", "rm2", "rm3", "kaggle", "wide1", SMALL.name)
"""Workloads of the table."""

DRAM_SHARE = 0.89
"""Part of its peak that LiteDRAM moves for bags of rows of 128 bytes and more: docs/memory.md, eight tables."""

LATENCY_NS = 400.0
"""From a read to its first line, ns: some 30 cycles of a controller at 75 MHz."""

# Energies of a 45 nm chip at 0.9 V: M. Horowitz, "Computing's energy problem (and what we can do about it)", ISSCC
# 2014, figure 1.1.9.
ADD_PJ, MULTIPLY_PJ = 0.9, 3.7
"""A binary32 addition and a multiplication, pJ."""
SRAM_PJ_PER_BYTE = 10 / 8
"""A byte out of or into a memory of 8 KiB that is 64 bits wide, pJ."""
DRAM_PJ_PER_BYTE = 2600 / 8
"""A byte from or to DRAM, pJ; the upper end of the range of 1.3 to 2.6 nJ for 64 bits. Texts that quote the figure
agree on the range, but not all on the 64 bits; the paper itself was not at hand.
"""

FPGA_FACTOR = 14
"""Dynamic power of logic in an FPGA for one in a chip: I. Kuon, J. Rose, "Measuring the gap between FPGAs and ASICs",
IEEE Transactions on Computer-Aided Design 26 (2), 2007. Its memories are hard blocks and are taken as the chip's.
"""

MOST_MHZ = 10_000
"""Above this, a clock is a mistake."""

ON_CHIP_PASSES = 4
"""Times that a byte of a row goes into or out of on-chip memory: reorder buffer and vector register, both ways each."""

COLUMNS = (
    column("board, core", "what"), column("workload", "workload"), column("look-ups", "lookups", ",d"),
    column("launches", "launches", "d"), column("cycles", "cycles", ",d"), column("fmax, MHz", "fmax", ".1f"),
    column("M look-ups/s", "rate", ".2f"), column("nJ/look-up", "nj", ".1f"), column("of it DRAM", "nj_dram", ".1f"),
    column("note", "note"),
)  # fmt: skip

Row = dict[str, Any]


class ReportError(click.ClickException):
    """A file that is no report of ``daedal bitstream``, or not one of this version's."""

    exit_code = 2

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}: make it again with daedal bitstream")


@dataclass(frozen=True)
class Report:
    """What a report says of a core on a board: its highest clock, and whether that is one after routing."""

    board: Board
    config: Config
    fmax_mhz: float
    routed: bool


@dataclass(frozen=True)
class Energy:
    """An estimate of the energy of a run in nJ: arithmetic, on-chip memory, DRAM."""

    arithmetic: float
    on_chip: float
    dram: float

    @property
    def total(self) -> float:
        """All of it; without what stands still, clocks and the host link."""
        return self.arithmetic + self.on_chip + self.dram


def energy(stats: Stats, additions: int, multiplications: int, bus_bytes: int) -> Energy:
    """Of the counters of a run: lines moved on the ports, and operations."""
    moved = (stats.lines_read + stats.lines_written) * bus_bytes
    return Energy(
        arithmetic=(additions * ADD_PJ + multiplications * MULTIPLY_PJ) * FPGA_FACTOR / 1000,
        on_chip=moved * SRAM_PJ_PER_BYTE * ON_CHIP_PASSES / 1000,
        dram=moved * DRAM_PJ_PER_BYTE / 1000,
    )


def read_report(path: Path) -> Report:
    """The report in a file; ReportError names what is wrong with it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # the decoder's errors are ValueErrors with line and column
        raise ReportError(path, f"cannot be read ({error})") from error
    if not isinstance(found, dict):
        raise ReportError(path, f"must hold the keys of a report, not {type(found).__name__}")
    for key in ("board", "config", "fmax_mhz", "routed"):
        if key not in found:
            raise ReportError(path, f"must have the key {key!r}")
    fmax, routed = found["fmax_mhz"], found["routed"]
    if not isinstance(fmax, float | int) or isinstance(fmax, bool) or not 0 < fmax < MOST_MHZ:
        raise ReportError(path, f"must have an fmax_mhz from 0 to {MOST_MHZ}, not {fmax!r}")
    if not isinstance(routed, bool):
        raise ReportError(path, f"must have a routed that is true or false, not {routed!r}")
    try:
        return Report(find_board(found["board"]), described_config(found["config"], path), float(fmax), routed)
    except UnknownBoard as error:
        raise ReportError(path, f"names no board ({error})") from error
    except InvalidConfig as error:
        raise ReportError(path, f"has no configuration ({error})") from error


def memory_bytes(board: Board) -> int:
    """Size of the board's memory."""
    memory = board.memory
    if not isinstance(memory, Dram):
        return memory.memory_bytes
    return int(memory.module.nbanks * memory.module.nrows * memory.module.ncols) * memory.data_bits // 8


def lines_per_cycle(board: Board, config: Config, core_hz: float) -> float:
    """Lines that the board's DRAM moves per cycle of the core. ValueError if its memory is not DRAM."""
    if not isinstance(board.memory, Dram):
        raise ValueError(f"{board.name} has no DRAM: its {board.memory.memory_bytes:,} bytes hold no table of these")
    clocks, _, steps = board.memory.rate.partition(":")
    transfers = 1 if steps == clocks else 2 * int(steps) // int(clocks)  # DDR: two for each clock of the memory
    peak = board.memory.data_bits // 8 * transfers * board.clock_hz
    return DRAM_SHARE * peak / (core_hz * config.bus_bytes)


def memory_of(board: Board, config: Config, core_hz: float) -> str:
    """The memory model's text."""
    latency = max(1, round(LATENCY_NS * core_hz / 1e9))
    return f"ideal:latency={latency},lines={lines_per_cycle(board, config, core_hz):.3f}"


def run(workload: str, config: Config, memory: str, size: int) -> tuple[Stats, Made]:
    """What a workload with its first distribution of indices took, on a memory model of so many bytes."""
    made = KNOWN[workload].make(KNOWN[workload].distributions[0], 1, config, None)
    with Device.open("verilator", config=config, memory=memory, memory_bytes=size) as device:
        executable = compile(made.module, made.inputs, device=device)
        executable(*made.inputs)
        return executable.stats, made


def predict(report: Report, workload: str) -> Row:
    """A row of the table."""
    board, config, fmax = report.board, report.config, report.fmax_mhz
    row: Row = {"what": f"`{board.name}`, `{config.name}`", "workload": f"`{workload}`"}
    try:
        stats, made = run(workload, config, memory_of(board, config, fmax * 1e6), memory_bytes(board))
    except (DaedalError, ValueError) as error:
        return {**row, "note": " ".join(str(error).split())}
    lookups = made.lookups
    additions = min(made.flops, lookups * made.workload.dim)  # of one for each element; a weight is what is more
    spent = energy(stats, additions, made.flops - additions, config.bus_bytes)
    return {
        **row, "lookups": lookups, "launches": stats.launches, "cycles": stats.cycles, "fmax": fmax,
        "rate": fmax * lookups / stats.cycles, "nj": spent.total / lookups, "nj_dram": spent.dram / lookups,
        "note": "" if report.routed else "placed only: fmax is estimated",
    }  # fmt: skip


@click.command()
@click.argument("reports", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--workload", "workloads", multiple=True, type=click.Choice(list(KNOWN)), default=DEFAULT,
              show_default=True, help="May be given several times.")  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path, exists=True), default=PAGE, help="Instead of docs/boards.md.")
def main(reports: tuple[Path, ...], workloads: tuple[str, ...], page: Path) -> None:
    """Simulate the core of each report and put the table into docs/boards.md."""
    rows = []
    for report in [read_report(path) for path in reports]:
        for workload in workloads:
            say(f"{report.board.name}, {report.config.name}: {workload}")
            rows.append(predict(report, workload))
    page.write_text(insert(page.read_text(encoding="utf-8"), BEGIN, markdown(COLUMNS, rows)), encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m bench.prediction")
