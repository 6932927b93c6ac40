"""The sweep that chose the presets' sizes: ``python -m bench.presets``.

One field after the other takes other values, all else stays as in the preset. Each of these machines is built and runs
the workloads on a DRAM; the table says how many cycles more or fewer each took than the preset.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from bench.pages import described, insert
from bench.report import WIDTH, Row, say
from daedal.hw.config import PRESETS, Config
from daedal.measure.document import facts, save
from daedal.measure.run import Setting, measure
from daedal.measure.suites import machines
from daedal.measure.table import Column, column, markdown, show
from daedal.measure.workloads import WORKLOADS

SIZES: Mapping[str, Sequence[Mapping[str, int]]] = {
    "ports": ({"ports": 4},),
    "reorder budget": ({"vector_beats": 256, "reorder_beats": 256},),
    "queue of a port": ({"port_requests": 32},),
    "groups by DRAM row": tuple({"row_groups": groups} for groups in (1, 16)),
    "bursts in flight": ({"port_outstanding": 8},),
    "token queue": ({"token_depth": 256},),
    "index look-ahead": ({"lookahead_lines": 64, "lookahead_burst": 16},),
    "write batch": tuple({"write_batch": lines} for lines in (232, 1000)),
}  # fmt: skip
"""What is changed, in the words of the table, and the fields' other values."""

WORKLOAD_NAMES = ("rm1", "kaggle", "wide1", "text", "gather")
"""Workloads that differ most in what they ask of memory: short and long rows, as many writes as reads, one line."""

PAGE = Path(__file__).resolve().parents[1] / "docs" / "memory.md"
BEGIN = "<!-- presets: made by python -m bench.presets -->"


@dataclass(frozen=True)
class Variant:
    """A machine that differs from the preset: what is changed, how it is written in the table, and the machine."""

    size: str
    value: str
    config: Config


def variants(preset: Config, sizes: Sequence[str]) -> Iterator[Variant]:
    """The preset itself and all its neighbours in these sizes; those that are none, or not legal, are left out."""
    yield Variant("the preset", "", preset)
    for size in sizes:
        for fields in SIZES[size]:
            if all(getattr(preset, name) == value for name, value in fields.items()):
                continue
            try:
                config = replace(preset, name=f"{preset.name}-changed", **dict[str, Any](fields))
            except ValueError as error:
                say(f"{size} {fields}: {error}")
                continue
            yield Variant(size, " / ".join(str(value) for value in dict.fromkeys(fields.values())), config)


def measured(variant: Variant, memory: str, workloads: Sequence[str], *, quick: bool, seed: int) -> Row:
    """The cycles of each workload on this machine, and what is wrong, if anything."""
    row: Row = {"size": variant.size, "value": variant.value, "config": asdict(variant.config)}
    wrong = []
    for name in workloads:
        workload = WORKLOADS[name]
        setting = Setting(variant.config, memory, seed=seed, quick=quick)
        run = measure(workload, workload.distributions[0], setting, with_limit=False).row
        row[name] = run.get("cycles")
        if run["verdict"]:
            wrong.append(f"{name}: {run['verdict']}")
    return row | {"verdict": "; ".join(wrong)}


def columns(workloads: Sequence[str]) -> tuple[Column, ...]:
    """What the table shows."""
    shares = (column(name, f"{name} share", "+.1%") for name in workloads)
    return column("size", "size"), column("value", "value"), *shares, column("verdict", "verdict")


def against_preset(rows: Sequence[Row], workloads: Sequence[str]) -> list[Row]:
    """The rows with how many cycles more than the first row, the preset, each took."""
    base = rows[0]
    return [
        row | {f"{name} share": _change(row[name], base[name]) for name in workloads if row[name] and base[name]}
        for row in rows
    ]


def _change(cycles: int, base: int) -> float:
    """How many times more, as it is shown: nothing is not less than nothing."""
    return round(cycles / base - 1, 3) + 0.0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", type=click.Choice(list(PRESETS)), default="ddr3", show_default=True, help="The preset.")
@click.option("--memory", default="litedram-ddr3-x16", show_default=True, help="Memory model, see docs/memory.md.")
@click.option("--size", "sizes", multiple=True, type=click.Choice(list(SIZES)), help="Only this; repeatable.")
@click.option(
    "--workload", "workloads", multiple=True, type=click.Choice(list(WORKLOADS)), help="Only this; repeatable."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
@click.option("--page", is_flag=True, help="Put the table into docs/memory.md; for all sizes and without --quick.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Start of all random data.")
@click.option("--quick", is_flag=True, help="Small workloads, only to see that they run.")
def main(config: str, memory: str, sizes: tuple[str, ...], workloads: tuple[str, ...], json_file: Path | None,
         page: bool, seed: int, quick: bool) -> None:  # fmt: skip
    """Change one size of a preset after the other, and say how many cycles more or fewer workloads take.

    Each machine is compiled first, which takes some minutes. Ends with status 1 if a result is wrong.
    """
    if page and (sizes or workloads or quick):
        raise click.UsageError("--page is for the whole sweep: leave out --size, --workload and --quick")
    try:
        used = machines(Config.preset(config), [memory])
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None
    about = facts(used, seed=seed, placements=1, quick=quick)
    names = workloads or WORKLOAD_NAMES
    rows: list[Row] = []
    for variant in variants(Config.preset(config), sizes or tuple(SIZES)):
        say(f"presets: {variant.size} {variant.value}")
        rows.append(measured(variant, memory, names, quick=quick, seed=seed))
        if json_file is not None:  # what was measured is not lost if the next one fails
            save(json_file, about, {"presets": rows})
    table = against_preset(rows, names)
    show(f"{config} on {memory}", columns(names), table, width=WIDTH)
    if page:
        cycles = ", ".join(f"{name} {rows[0][name]:,}" for name in names)
        text = f"{markdown(columns(names), table)}\n\nCycles of the preset: {cycles}.\n\n{described(about)}"
        PAGE.write_text(insert(PAGE.read_text(encoding="utf-8"), BEGIN, text), encoding="utf-8")
    raise SystemExit(any(row["verdict"] for row in rows))


if __name__ == "__main__":
    main(prog_name="python -m bench.presets")
