"""What ``daedal report`` does: one traced run, and the page of it."""

import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from daedal.bench.report import html, pictures
from daedal.bench.report.document import facts
from daedal.bench.report.table import COLUMNS, Row
from daedal.bench.report.timeline import Line, read_timeline
from daedal.bench.run import Run, Setting, measure
from daedal.bench.workloads.measured import Model
from daedal.errors import DaedalError

EXECUTE = ("length", "callback", "instruction")
"""First words of the lines of a program that are for the execute unit; the others are for the access unit."""

SHOWN = tuple(column for column in COLUMNS if column.key not in ("torch_share", "fbgemm_share"))


def report(workload: Model, distribution: str, setting: Setting, others: Sequence[Row] = ()) -> tuple[str, Run]:
    """Run a workload, with a waveform if its target has one; the page, and the run.

    ``others`` are rows of a bench, for the table and the pictures. Raises DaedalError if the run broke.
    """
    if setting.target != "verilator":
        run = measure(workload, distribution, setting)
        if "cycles" not in run.row:
            raise DaedalError(f"{workload.name} did not run: {run.row['verdict']}")
        return page_of(run, setting, {}, others), run
    with tempfile.TemporaryDirectory(prefix="daedal-") as folder:
        wave = Path(folder) / "run.vcd"
        run = measure(workload, distribution, setting, wave=str(wave))
        if "cycles" not in run.row:
            raise DaedalError(f"{workload.name} did not run: {run.row['verdict']}")
        panels = read_timeline(wave, setting.config, run.first_cycle, run.last_cycle - run.first_cycle)
    return page_of(run, setting, panels, others), run


def shortened(workload: Model, batch: int) -> Model:
    """The workload with at most so many bags over each table, or lookups: a waveform of all of it would be huge."""
    return workload.shortened(batch)


def page_of(run: Run, setting: Setting, panels: dict[str, dict[str, Line]], others: Sequence[Row]) -> str:
    """The page: this run first, then the rows of a bench if there are any."""
    row, workload = run.row, run.made.workload
    rows = [*others] or [row]
    access, execute = units(run.asm)
    sections = {
        "The run": html.table(SHOWN, [row]) + _what(run) + _verdict(row),
        "Stalled cycles by cause": html.pairs(
            {
                cause.replace("_", " "): f"{count:,} ({100 * count / row['cycles']:.1f} %)"
                for cause, count in _stalls(row)
            }
        ),
        **_over_time(panels),
        **({"Results of the bench": html.table(COLUMNS, rows)} if others else {}),
        "Roofline": html.figure(pictures.roofline(rows), "roofline", "Lines: what lanes and memory pins allow."),
        "Stalls": html.figure(pictures.stalls(rows), "stalls", "Units stall side by side: bars can exceed 1."),
        "Program of the access unit": html.text(access),
        "Program of the execute unit": html.text(execute),
        "What the figures depend on": html.pairs(_facts(setting)),
    }
    return html.page(
        f"Daedal: {workload.name}, {row['distribution']}, {setting.config.name}, {setting.memory}", sections
    )


def _over_time(panels: dict[str, dict[str, Line]]) -> dict[str, str]:
    """Queues and ports over time, if there was a waveform."""
    if not panels:
        return {}
    caption = "Means over some cycles each, from the waveform of this run."
    return {"Queues and ports over time": html.figure(pictures.timeline(panels), "timeline", caption)}


def _limit(row: Row) -> dict[str, str]:
    """The limit of its lines; of a prediction instead what that was checked by."""
    if row.get("predicted"):
        return {"predicted by target model": row["checked"] or "unchecked on this machine"}
    return {"least cycles for these lines": f"{row['limit_cycles']:,} ({row['window']})"}


def _what(run: Run) -> str:
    row, made = run.row, run.made
    return html.pairs(
        {
            "operation": f"{made.workload.what}, {made.workload.dim} columns",
            "lookups": f"{made.lookups:,} (rows read: {row['rows']:,})",
            "bags": f"{made.bags:,}",
            "lines read, written": f"{row['lines_read']:,}, {row['lines_written']:,}",
            **_limit(row),
            "cycles": f"{row['cycles']:,}",
        }
    )


def _verdict(row: Row) -> str:
    wrong = row["verdict"]
    return f'<p class="wrong">{escape(wrong)}</p>' if wrong else "<p>Equal to PyTorch, bit for bit.</p>"


def _stalls(row: Row) -> list[tuple[str, int]]:
    return sorted(row["stalls"].items(), key=lambda item: -item[1])


def _facts(setting: Setting) -> dict[str, object]:
    machines = [(setting.config, setting.memory)]
    found = facts(machines, seed=setting.seed, placements=1, quick=setting.quick)
    shown: dict[str, object] = {"placement": setting.placement}
    for name, value in found.items():
        if name not in ("quick", "placements"):
            shown[name] = (
                ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, dict) else value
            )
    return shown


def units(asm: str) -> tuple[str, str]:
    """The lines of a program for the access unit and those for the execute unit."""
    lines = asm.splitlines()
    execute = [line for line in lines if line.split(" ")[0] in EXECUTE]
    access = [line for line in lines if line.split(" ")[0] not in EXECUTE]
    return "\n".join(access), "\n".join(execute)
