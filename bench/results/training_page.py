"""The text of ``docs/results-training.md``: gradients and steps of optimizers."""

from collections.abc import Mapping
from typing import Any

from bench.results.sections import rows_of, section
from bench.results.systems_page import one_line_of
from daedal.bench.report.table import column

HEAD = """# Training

Made by `python -m bench.results` from `bench/results/training.json`; do not edit. [Training](training.md) says what
runs on the device. The figures are of the commit {revision}."""

TEXT = """*Simulated*, `ddr3`: rows of 64 binary32 elements, 1,000 samples of as many rows, so that each row that is
read has some 1.6 of them. *Of lines* is the share of the memory port's lines, which bounds what moves a row at a time;
steps that compute more are bound by the lanes. Steps that are *undoable* keep each row before they change it, so that
a fault leaves the table as it was: `daedal.optim` takes these. *PyTorch* and *FBGEMM* are *measured* on the computer
that made this page: what the same bytes are of a triad's bandwidth in their own step; – where it is not installed or
has no such step."""

COLUMNS = (
    column("step", "workload"), column("memory", "memory"), column("cycles", "cycles", ",.0f"),
    column("cycles a row", "cycles_per_row", ".1f"), column("of lines", "line_share", ".3f"),
    column("main stall", "main_stall"), column("PyTorch, of triad", "torch_share", ".2f"),
    column("FBGEMM, of triad", "fbgemm_share", ".2f"), column("goal", "outcome"),
)  # fmt: skip


def page(results: Mapping[str, Any]) -> str:
    """The text of ``docs/results-training.md``."""
    head = one_line_of(HEAD.format(revision=results["facts"]["revision"]))
    return "\n\n".join([head, section("Steps", TEXT, COLUMNS, rows_of(results, "training"))]) + "\n"
