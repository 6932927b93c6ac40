"""The suite ``prediction``: what boards would do, from the reports that ``daedal bitstream`` left.

Cycles are those of the core's RTL, in the report's configuration, on
the memory model ``ideal`` with the board's bandwidth, at the highest clock of the report. Everything is an estimate: no
board was measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from daedal.base.files import parse_json, read_text
from daedal.base.messages import shown
from daedal.bench.report.table import column
from daedal.bench.suite import Order, Row, Say, Suite
from daedal.bench.workloads.made import Made
from daedal.bench.workloads.models import WORKLOADS, Workload
from daedal.compiler.api import compile
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.errors import DaedalError, InvalidConfig, UnknownBoard
from daedal.fpga.boards import find_board
from daedal.fpga.boards.board import Board, Dram
from daedal.fpga.flow.reports import clock_kind
from daedal.hw.config.core import Config
from daedal.hw.config.file import described_config

SMALL = replace(WORKLOADS["gather"], name="gather-4m", what="rows of a table of 4 MiB, unchanged", tables=(1 << 14,))
"""A gather that fits into the smallest DRAM of a board."""

SHOWN = (*(WORKLOADS[name] for name in ("rm1", "rm2", "rm3", "kaggle", "wide1")), SMALL)
"""Workloads of the table."""

DRAM_SHARE = 0.89
"""Part of its peak that LiteDRAM moves for bags of rows of 128 bytes and more: the layer of eight tables on DDR3."""

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
    column("clock", "clock"),
    column("M look-ups/s", "rate", ".2f"), column("nJ/look-up", "nj", ".1f"), column("of it DRAM", "nj_dram", ".1f"),
    column("note", "note"),
)  # fmt: skip


class ReportError(DaedalError):
    """A file that is no report of ``daedal bitstream``, or not one of this version's."""

    status = 2

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
        found = parse_json(read_text(path), "a report")
    except ValueError as error:  # the decoder's errors are ValueErrors with line and column
        raise ReportError(path, f"cannot be read ({error})") from error
    if not isinstance(found, dict):
        raise ReportError(path, f"must hold the keys of a report, not {type(found).__name__}")
    for key in ("board", "config", "fmax_mhz", "routed"):
        if key not in found:
            raise ReportError(path, f"must have the key {key!r}")
    fmax, routed = found["fmax_mhz"], found["routed"]
    if not isinstance(fmax, float | int) or isinstance(fmax, bool) or not 0 < fmax < MOST_MHZ:
        raise ReportError(path, f"must have an fmax_mhz from 0 to {MOST_MHZ}, not {shown(fmax)}")
    if not isinstance(routed, bool):
        raise ReportError(path, f"must have a routed that is true or false, not {shown(routed)}")
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


def simulate(workload: Workload, config: Config, memory: str, size: int) -> tuple[Stats, Made]:
    """What a workload with its first distribution of indices took, on a memory model of so many bytes."""
    made = workload.make(workload.distributions[0], 1, config, None)
    with Device.open("verilator", config=config, memory=memory, memory_bytes=size) as device:
        executable = compile(made.module, made.inputs, device=device)
        executable(*made.inputs)
        return executable.stats, made


def predict(report: Report, workload: Workload) -> Row:
    """A row of the table."""
    board, config, fmax = report.board, report.config, report.fmax_mhz
    memory = memory_of(board, config, fmax * 1e6) if isinstance(board.memory, Dram) else ""
    row: Row = {"what": f"{board.name}, {config.name}", "workload": workload.name, "memory": memory}
    try:
        stats, made = simulate(workload, config, memory_of(board, config, fmax * 1e6), memory_bytes(board))
    except (DaedalError, ValueError) as error:
        return {**row, "note": " ".join(str(error).split())}
    lookups = made.lookups
    additions = min(made.flops, lookups * made.workload.dim)  # of one for each element; a weight is what is more
    spent = energy(stats, additions, made.flops - additions, config.bus_bytes)
    return {
        **row, "lookups": lookups, "launches": stats.launches, "cycles": stats.cycles, "fmax": fmax,
        "rate": fmax * lookups / stats.cycles, "nj": spent.total / lookups, "nj_dram": spent.dram / lookups,
        "clock": clock_kind(report.routed), "note": "",
    }  # fmt: skip


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each report and workload; ReportError, before anything is simulated, if a file is no report."""
    for report in [read_report(path) for path in order.reports]:
        for workload in SHOWN:
            say(f"prediction: {report.board.name}, {report.config.name}, {workload.name}")
            yield predict(report, workload)


SUITE = Suite("prediction", "What boards would do: predicted, no board was measured", COLUMNS, run)
