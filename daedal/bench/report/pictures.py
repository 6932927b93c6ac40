"""Pictures of results as SVG: a roofline, and the stalls of each run. Needs the package matplotlib."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from daedal.base.files import write_whole
from daedal.bench.limit import lines_per_cycle
from daedal.bench.report.table import Row
from daedal.errors import ToolchainNotFound
from daedal.hw.config.core import PRESETS

LEAST_STALL = 0.01
"""Causes with less than this part of the cycles in every run are left out of the picture."""

_SETTINGS: Any = {"svg.hashsalt": "daedal", "svg.fonttype": "path", "font.size": 9, "figure.autolayout": True}
"""Equal figures give equal text, and no font is asked for."""


def write_pictures(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Write ``roofline.svg`` and ``stalls.svg`` of these rows; ToolchainNotFound if matplotlib is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for name, text in (("roofline.svg", roofline(rows)), ("stalls.svg", stalls(rows))):
        write_whole(folder / name, text.encode())
        found.append(folder / name)
    return found


def roofline(rows: Sequence[Row]) -> str:
    """Operations per cycle by operations per byte moved, under what lanes and memory allow, on logarithmic scales.

    Workloads without arithmetic, and configurations that are no presets, are left out.
    """
    plot, figure, axes = _begin(7, 4.2)
    shown = [row for row in rows if row.get("flops") and row.get("cycles") and row["config"] in PRESETS]
    for config, memory in dict.fromkeys((row["config"], row["memory"]) for row in shown):
        _roof(axes, config, memory)
    markers = "osD^vP*X<>"
    names = list(dict.fromkeys(_label(row) for row in shown))
    for number, name in enumerate(names):
        points = [_point(row) for row in shown if _label(row) == name]
        axes.plot(*zip(*points, strict=True), markers[number % len(markers)], label=name, markersize=5)
    axes.set(xscale="log", yscale="log", xlabel="operations per byte on the pins", ylabel="operations per cycle")
    axes.grid(True, which="both", linewidth=0.3)
    if names:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return _svg(plot, figure)


def _point(row: Row) -> tuple[float, float]:
    moved = (row["lines_read"] + row["lines_written"]) * PRESETS[row["config"]].bus_bytes
    return row["flops"] / moved, row["flops"] / row["cycles"]


def _label(row: Row) -> str:
    stream = "" if row["distribution"] in ("own", "uniform") else f", {row['distribution']}"
    return f"{row['workload']}{stream}, {row['memory']}"


def _roof(axes: Any, config: str, memory: str) -> None:
    """What the lanes do at most (a multiplication and an addition each), and the memory's pins."""
    machine = PRESETS[config]
    most, slope = 2 * machine.lanes, machine.bus_bytes * lines_per_cycle(memory)
    corner = most / slope
    axes.plot([corner / 64, corner, corner * 8], [most / 64, most, most], "-", color="0.4", linewidth=1)
    axes.annotate(f"{config}, {memory}", (corner, most), fontsize=7, ha="left", va="bottom")


def stalls(rows: Sequence[Row]) -> str:
    """For each run a bar of its stalls, in parts of its cycles. Units stall at the same time: bars can exceed 1."""
    shown = [row for row in rows if row.get("stalls") and row.get("cycles")]
    plot, figure, axes = _begin(8, 1.2 + 0.28 * len(shown))
    causes = sorted({cause for row in shown for cause in row["stalls"] if _part(row, cause) >= LEAST_STALL})
    places = list(range(len(shown)))
    left = [0.0] * len(shown)
    colours = plot.colormaps["tab20"]
    for number, cause in enumerate(causes):
        lengths = [_part(row, cause) for row in shown]
        label = cause.replace("_", " ")
        axes.barh(places, lengths, left=left, height=0.7, label=label, color=colours(number))
        left = [start + length for start, length in zip(left, lengths, strict=True)]
    axes.set_yticks(places, [_stall_label(row) for row in shown])
    axes.invert_yaxis()
    axes.set(xlabel="stalled cycles ÷ cycles (units stall side by side)")
    if causes:
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return _svg(plot, figure)


def _stall_label(row: Row) -> str:
    place = f" #{row['placement']}" if row.get("placement") else ""
    width = f" {row['row_bytes']} B" if row.get("suite") == "sweep" else ""
    return f"{_label(row)}{width}{place}"


def _part(row: Row, cause: str) -> float:
    found: Mapping[str, int] = row["stalls"]
    return found.get(cause, 0) / float(row["cycles"])


def timeline(series: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]]) -> str:
    """Panels above each other with one axis of cycles: panel -> line -> cycles and values."""
    plot, figure, panels = _begin(9, 1.7 * max(1, len(series)), max(1, len(series)))
    for axes, (title, lines) in zip(panels if len(series) > 1 else [panels], series.items(), strict=False):
        for name, (cycles, values) in lines.items():
            axes.plot(cycles, values, linewidth=0.8, label=name)
        axes.set_title(title, fontsize=9, loc="left")
        axes.grid(True, linewidth=0.3)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.supxlabel("cycles since the run began", fontsize=8)
    return _svg(plot, figure)


def _begin(width: float, height: float, panels: int = 1) -> tuple[Any, Any, Any]:
    try:
        import matplotlib as plot
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ToolchainNotFound(
            "pictures are drawn by matplotlib, which must be installed: pip install 'daedal[report]'"
        ) from error
    with plot.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height))
        axes = figure.subplots(panels, 1, sharex=True)
    return plot, figure, axes


def _svg(plot: Any, figure: Any) -> str:
    """The figure's text without the date, so that it stays as it is."""
    buffer = io.StringIO()
    with plot.rc_context(_SETTINGS):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    return buffer.getvalue()
