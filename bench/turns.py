"""What bags in turn give, by the rows of a bag: ``python -m bench.turns``.

A sum over one table is compiled both ways, whatever the compiler would choose (``codegen/interleaving.py``), and both
programs run on the RTL.
"""

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from bench.pages import described, insert
from bench.report import WIDTH, Row, say
from daedal.compiler.frontends.emb_builder import Bag
from daedal.compiler.pipeline import compile_emb
from daedal.compiler.runtime import run_kernel
from daedal.driver.device import Device
from daedal.hw.config import Config
from daedal.measure.document import facts, save
from daedal.measure.table import Column, column, markdown, show

MACHINES = (
    ("ddr3", "ideal"), ("ddr3", "litedram-ddr3-x16"), ("wide", "ideal"), ("wide", "litedram-ddr3-x64"),
)  # fmt: skip
"""Presets and memories."""

COLUMNS = (1, 16, 32)
"""Columns of the table; bags of longer rows are never in turn."""

MEANS = (0.5, 1.0, 1.25, 1.5, 2.0, 3.0)
"""Rows of a bag, on average."""

ROWS, BAGS = 50_000, 1024

PAGE = Path(__file__).resolve().parents[1] / "docs" / "bench.md"
BEGIN = "<!-- turns: made by python -m bench.turns -->"


def bag_lengths(mean: float, bags: int, rng: np.random.Generator) -> np.ndarray:
    """Lengths whose mean is ``mean``: each the next lower or the next higher whole number."""
    more = round(bags * (mean - int(mean)))
    lengths = np.full(bags, int(mean))
    lengths[rng.permutation(bags)[:more]] += 1
    return lengths


def measured(preset: str, memory: str, columns: int, *, bags: int, seed: int) -> Row:
    """Cycles in turn, one after the other, and their quotient, for each of ``MEANS``; "" or what is wrong."""
    config = Config.preset(preset)
    kernels = {turns: compile_emb(Bag("sum", columns, 64, 64).build(), config, interleaves=turns)
               for turns in (True, False)}  # fmt: skip
    row: Row = {"config": preset, "memory": memory, "columns": columns, "cycles": {}, "verdict": ""}
    if kernels[True].program == kernels[False].program:
        return row | {"verdict": "rows are never in turn"}
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((ROWS, columns), np.float32)
    with Device.open("verilator", config, memory=memory) as device:
        for mean in MEANS:
            offsets = np.concatenate([[0], np.cumsum(bag_lengths(mean, bags, rng))])
            buffers = {"table": table, "indices": rng.integers(0, ROWS, offsets[-1]), "offsets": offsets}
            runs = {turns: run_kernel(device, kernel, buffers | {"out": (bags, columns)})
                    for turns, kernel in kernels.items()}  # fmt: skip
            if runs[True].outputs["out"].tobytes() != runs[False].outputs["out"].tobytes():
                row["verdict"] = f"{mean} rows a bag: the results differ"
            cycles = [runs[turns].stats.cycles for turns in (True, False)]
            row["cycles"][str(mean)], row[str(mean)] = cycles, cycles[0] / cycles[1]
    return row


def columns_of() -> tuple[Column, ...]:
    """What the table shows."""
    machine = column("machine", "config"), column("memory", "memory"), column("columns", "columns")
    return *machine, *(column(f"{mean:g}", str(mean), ".2f") for mean in MEANS), column("verdict", "verdict")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
@click.option("--page", is_flag=True, help="Put the table into docs/bench.md; without --quick.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Start of all random data.")
@click.option("--quick", is_flag=True, help="One machine, few bags, only to see that they run.")
def main(json_file: Path | None, page: bool, seed: int, quick: bool) -> None:
    """Run bags in turn and one after the other, and divide the cycles.

    Ends with status 1 if the two results are not the same.
    """
    if page and quick:
        raise click.UsageError("--page is for all machines: leave out --quick")
    machines: Sequence[tuple[str, str]] = MACHINES[:1] if quick else MACHINES
    about = facts([(Config.preset(name), memory) for name, memory in machines], seed=seed, placements=1, quick=quick)
    rows: list[Row] = []
    for name, memory in machines:
        for columns in COLUMNS:
            say(f"turns: {columns} columns, {name} on {memory}")
            row = measured(name, memory, columns, bags=24 if quick else BAGS, seed=seed)
            if row["cycles"]:
                rows.append(row)
    if json_file is not None:
        save(json_file, about, {"turns": rows})
    show("Cycles in turn ÷ one after the other, by mean rows of a bag", columns_of(), rows, width=WIDTH)
    if page:
        text = f"{markdown(columns_of(), rows)}\n\n{described(about)}"
        PAGE.write_text(insert(PAGE.read_text(encoding="utf-8"), BEGIN, text), encoding="utf-8")
    raise SystemExit(any(row["verdict"] for row in rows))


if __name__ == "__main__":
    main(prog_name="python -m bench.turns")
