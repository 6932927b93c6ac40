"""The text of ``docs/results-models.md``: what of other people's models runs on the device."""

from collections.abc import Mapping
from typing import Any

from bench.results.sections import one_line, rows_of
from daedal.bench.report.table import column, markdown
from daedal.bench.suites.published import NAME, WANTED

HEAD = """# Models of other people

Made by `python -m bench.results` from `bench/results/models.json`; do not edit."""

TEXT = """*Measured* on the emulator ([columns](measuring/bench.md#models)), with random parameters and small inputs.
*Fewest* is the longest chain of operations of which each needs the one before."""

COLUMNS = (
    column("model", "workload"),
    column("elements", "elements", ",d"),
    column("on the device", "share", ".3f"),
    column("launches", "launches", "d"),
    column("fewest", "fewest", "d"),
    column("equal", "bit_exact"),
    column("goal", "outcome"),
)


def page(document: Mapping[str, Any]) -> str:
    """How many models reach the goal, and a row for each."""
    rows = rows_of(document, NAME)
    done = [row for row in rows if "share" in row]
    reached = sum(row["outcome"] == "reached" for row in done)
    equal = sum(bool(row["bit_exact"]) for row in done)
    goal = (
        f"{reached} of {len(done)} have {WANTED} of what they gather and pool on the device, in the fewest launches, "
        f"and {equal} give PyTorch's bits. Commit: {document['facts']['revision']}."
    )
    return "\n\n".join([HEAD, f"{one_line(TEXT)} {goal}", markdown(COLUMNS, rows)]) + "\n"
