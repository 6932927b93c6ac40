"""The clock of a unit that is placed and not routed, once the cells of its slowest ways were moved."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.synthesis import cells, tools
from daedal.hw.boards import placement
from daedal.hw.boards.placement.delays import read_delays
from daedal.hw.boards.placement.moves import Outcome, shorten
from daedal.hw.boards.placement.netlist import Placed
from daedal.hw.boards.placement.timing import Timing
from daedal.hw.boards.tools import key

FINISHED = "Program finished normally"
"""nextpnr's last word, behind which its files are whole."""

AGREES = 0.02
"""MHz by which the clock may differ from nextpnr's for the same placement: that has two digits."""


def version() -> str:
    """Changes with what moves cells and with how nextpnr is asked, on which a clock depends."""
    files = [*sorted(Path(placement.__file__).parent.glob("*.py")), Path(__file__), Path(tools.__file__)]
    return key(*(path.read_text(encoding="utf-8") for path in files))


def clock(folder: Path, seed: int, timeout: float) -> dict[str, Any]:
    """Place the netlist ``ring.json``, move cells: ``fmax_mhz``, ``placer_mhz`` before, ``moves``, ``critical_path``.

    nextpnr reads the design with its cells where they are then and says what the wires take: what was expected.

    Raises ToolFailed if a tool fails, or if our times of the placement are not nextpnr's.
    """
    log = _place(folder, seed, timeout)
    placed, delays, moved, again = (folder / f"{name}-{seed}.{suffix}" for name, suffix in (
        ("placed", "json"), ("placed", "sdf"), ("moved", "json"), ("moved", "sdf")))  # fmt: skip
    placer = cells.estimated_clock(log.read_text(encoding="utf-8"))
    try:
        outcome = shorten(placed, delays, moved)
        tools.run(tools.NEXTPNR, tools.reading(moved.name, again.name), folder, f"read-{seed}.log", timeout=timeout)
        wires = read_delays(again).wires
        timing = Timing(Placed(moved), replace(read_delays(delays), wires=wires))
    except ValueError as error:
        raise tools.ToolFailed(f"the placement of {folder.name} from seed {seed}: {error}") from error
    _compare(placer, outcome, timing.longest())
    for path in (placed, delays, moved, again):  # half a gigabyte for the core
        path.unlink()
    return {"fmax_mhz": round(1000 / timing.longest(), 1), "placer_mhz": round(placer, 1), "moves": outcome.moves,
            "critical_path": _described(timing)}  # fmt: skip


def _place(folder: Path, seed: int, timeout: float) -> Path:
    """``placed-SEED.json`` and ``.sdf``, unless an interrupted run left them; nextpnr's log."""
    log, placed, delays = folder / f"place-{seed}-placed.log", f"placed-{seed}.json", f"placed-{seed}.sdf"
    done = log.exists() and FINISHED in log.read_text(encoding="utf-8")
    if not done or not all((folder / name).exists() for name in (placed, delays)):
        options = tools.placing(seed, f"report-{seed}-placed.json", route=False)
        tools.run(tools.NEXTPNR, [*options, "--write", placed, "--sdf", delays], folder, log.name, timeout=timeout)
    return log


def _compare(placer: float, outcome: Outcome, after: float) -> None:
    """ToolFailed if nextpnr says something else of the placement, before or after."""
    for nextpnr, ours in ((placer, 1000 / outcome.before), (1000 / after, 1000 / outcome.after)):
        if abs(nextpnr - ours) > AGREES:
            raise tools.ToolFailed(f"nextpnr says {nextpnr:.2f} MHz of a placement that has {ours:.2f} MHz here")


def _described(timing: Timing) -> str:
    """From where to where the slowest way leads, and its wires' part."""
    slowest = max(timing.order, key=timing.through)
    way = timing.way(slowest)
    first, _ = timing.placed.source(way[0])
    wires = sum(map(timing.wire, way))
    logic = timing.through(slowest) - wires
    return f"{cells.plain(first)} → {cells.plain(way[-1][0])} (logic {logic:.1f} ns, wires {wires:.1f} ns, not routed)"
