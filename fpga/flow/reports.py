"""What the tools' logs and reports say about a board's design."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daedal.fpga.flow.flows import FLIP_FLOPS, IDLE, LOGIC, REPORT, SOURCE, Flow

_USED = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s+\d+%", re.MULTILINE)
_ESTIMATE = re.compile(r"Max frequency for clock\s+'([^']*)':\s+([0-9.]+) MHz \(\w+ at ([0-9.]+) MHz\)")

CORE_DEPTH, UNITS_SHOWN = 4, 5
"""Parts of a cell's name that tell its unit, as in ``daedal_core.tile.core.access``; units that a message names."""

SYSTEM = "system"
"""What is not of the core, among the units."""

BETWEEN = "core: between units"
"""What joins the core's units, and is in none."""


def make(description: dict[str, Any], flow: Flow, work: Path, run: str, *, routed: bool) -> dict[str, Any]:
    """The report on a placed or routed design.

    ``lut``, ``ff``, ``bram``, ``dsp``: what it takes, with ``available`` and ``units`` (LUTs by unit, largest first).
    ``clocks``: domain -> ``mhz`` (reached) and ``wanted_mhz``. ``clock_mhz`` and ``fmax_mhz``: the core's. ``closed``:
    every clock reaches what is wanted. ``limits``: the slowest path of each domain. ``routed``: clocks are after
    routing; otherwise an estimate. ``config``: the core's fields and hash.
    """
    log = (work / run / "nextpnr.log").read_text(encoding="utf-8", errors="replace")
    used = packed(work / run / REPORT) if routed else utilisation(log)
    domains = clock_domains((work / SOURCE).read_text(encoding="utf-8"))
    clocks, limits = read_clocks(work / run / REPORT, domains) if routed else (estimates(log, domains), {})
    core = next((name for name in ("core", "sys") if name in clocks), min(clocks))
    totals = {name: sum(used.get(cell, (0, 0))[0] for cell in cells) for name, cells in flow.resources.items()}
    return {
        "schema": 1,
        "board": description["board"],
        "config": description["config"],
        "clock_mhz": description["core_hz"] / 1e6,
        "fmax_mhz": clocks[core]["mhz"],
        "closed": all(clock["mhz"] >= clock["wanted_mhz"] for clock in clocks.values()),
        "clocks": clocks,
        "limits": limits,
        "ff": len((work / FLIP_FLOPS).read_text(encoding="utf-8").split()),
        **totals,
        "lut": totals["lut"] - idle(work / run / IDLE),
        "available": {name: sum(used.get(cell, (0, 0))[1] for cell in cells) for name, cells in flow.resources.items()},
        "units": units(work / LOGIC),
        "routed": routed,
    }


def clock_kind(routed: bool) -> str:
    """What tables and messages call a clock: routed, or nextpnr's estimate of the placement before that."""
    return "routed" if routed else "estimated before routing"


def idle(path: Path) -> int:
    """The logic cells that do nothing, which a flow's ``spread`` put in."""
    return int(path.read_text()) if path.exists() else 0


def utilisation(log: str) -> dict[str, tuple[int, int]]:
    """Type of cell -> (used, available), from nextpnr's log."""
    return {name: (int(used), int(available)) for name, used, available in _USED.findall(log)}


def packed(path: Path) -> dict[str, tuple[int, int]]:
    """Type of cell -> (used, available), from nextpnr's report."""
    found = json.loads(path.read_text(encoding="utf-8"))["utilization"]
    return {name: (count["used"], count["available"]) for name, count in found.items()}


def overfull(log: Path) -> dict[str, tuple[int, int]]:
    """The types of cells of which the design has more than the part."""
    found = utilisation(log.read_text(encoding="utf-8", errors="replace"))
    return {name: (used, available) for name, (used, available) in found.items() if used > available}


def clock_domains(verilog: str) -> dict[str, str]:
    """Signal -> the clock domain that it drives, as LiteX writes it; ``sys`` if it drives several."""
    found: dict[str, str] = {}
    for name, source in re.findall(r"^assign (\w+)_clk = (\w+);", verilog, re.MULTILINE):
        found[source] = "sys" if source in found else name
    return found


def domain(net: str, domains: Mapping[str, str]) -> str:
    """The clock domain of a clock's net, such as ``$glbnet$core_clk``; a net in the core is of the core's domain."""
    name = re.sub(r"^\$glbnet\$|\$(TRELLIS_IO_IN|SB_IO_IN(_\$glb_clk)?)$", "", net).removesuffix("_IBUF_O")
    if name.startswith("daedal_core"):
        return "core"
    return domains.get(name, name.rpartition(".")[2].removesuffix("_clk"))


def read_clocks(path: Path, domains: Mapping[str, str]) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """From nextpnr's report: domain -> clocks reached and wanted, MHz; domain -> its slowest path."""
    found = json.loads(path.read_text(encoding="utf-8"))
    clocks = {
        domain(net, domains): {"mhz": round(clock["achieved"], 2), "wanted_mhz": round(clock["constraint"], 2)}
        for net, clock in found["fmax"].items()
    }
    limits = {}
    for each in found["critical_paths"]:
        net = each["from"].split()[-1]
        if "async" not in net and net == each["to"].split()[-1] and each["path"]:
            first, last = each["path"][0]["from"]["cell"], each["path"][-1]["to"]["cell"]
            delay = sum(step["delay"] for step in each["path"])
            limits[domain(net, domains)] = f"{plain(first)} → {plain(last)} ({delay:.1f} ns)"
    return clocks, limits


def estimates(log: str, domains: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Clocks that nextpnr estimates after placement, from its log."""
    return {
        domain(net, domains): {"mhz": float(mhz), "wanted_mhz": float(wanted)}
        for net, mhz, wanted in _ESTIMATE.findall(log)
    }


def plain(cell: str) -> str:
    """A cell's name as the source has it."""
    return re.sub(r"_(TRELLIS_FF|LUT4|CCU2C|DP16KD|MULT18X18D|SB_\w+|DFF\w*|LUT\d|ALU)_.*", "", cell)


def units(cells: Path) -> dict[str, int]:
    """Unit -> its logic cells, largest first: the core's units by name, all else as ``system``."""
    names = (line.partition("/")[2] for line in cells.read_text(encoding="utf-8").splitlines())
    return dict(Counter(unit_of(name) for name in names).most_common())


def unit_of(cell: str) -> str:
    """The unit of a cell, a unit of the core or of its control by name; else ``BETWEEN`` or ``system``."""
    parts = cell.split(".")
    if not parts[0].startswith("daedal_core") or len(parts) < CORE_DEPTH:
        return SYSTEM
    if len(parts) == CORE_DEPTH:  # a signal of the core or the control itself
        return BETWEEN
    return f"{parts[CORE_DEPTH - 2]}: {parts[CORE_DEPTH - 1]}"


def large_message(description: dict[str, Any], over: dict[str, tuple[int, int]], cells: Path) -> str:
    """What to say of a design that the part has no room for."""
    needs = ", ".join(f"{used} {name} of {available}" for name, (used, available) in over.items())
    largest = ", ".join(f"{unit} ({count})" for unit, count in list(units(cells).items())[:UNITS_SHOWN])
    return (
        f"configuration {description['config']['name']} does not fit on {description['board']}: it needs {needs}; the "
        f"largest units are {largest}. Give --config a smaller one: fewer levels, loads, registers, lanes or ports"
    )


def slow_message(report: dict[str, Any]) -> str:
    """What to say of a design that is too slow for its clocks."""
    slow = {name: clock for name, clock in report["clocks"].items() if clock["mhz"] < clock["wanted_mhz"]}
    parts = [
        f"clock {name} reaches {clock['mhz']} MHz of {clock['wanted_mhz']} ({clock_kind(report['routed'])})"
        + (f", limited by {report['limits'][name]}" if name in report["limits"] else "")
        for name, clock in slow.items()
    ]
    return (
        f"{report['board']} does not close: {'; '.join(parts)}. Lower the core's clock with --core-mhz, give --seed "
        "another value, or --config a smaller core"
    )
