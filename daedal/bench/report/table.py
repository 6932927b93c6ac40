"""Rows of results as a table on the screen or in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daedal.base.messages import shown

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, the name of its value in a row, and how the value is written."""

    heading: str
    key: str
    form: str = ""

    def text(self, row: Row) -> str:
        """The value in ``row``, or a dash if there is none; ValueError for another where ``form`` wants a number."""
        value = row.get(self.key)
        if value is None or value == "":
            return "–"
        try:
            if isinstance(value, Mapping):
                return stalls_text(value, row["cycles"])
            return format(value, self.form) if self.form else str(value)
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            what = f"a number to be written as {self.form}" if self.form else "counts of a row with cycles"
            raise ValueError(f"{self.key} must be {what}, not {shown(value)}") from error


def column(heading: str, key: str, form: str = "") -> Column:
    """A column; with a ``form`` (of :func:`format`), a number's."""
    return Column(heading, key, form)


COLUMNS = (
    column("workload", "workload"), column("distribution", "distribution"), column("memory", "memory"),
    column("place", "placement"), column("cycles", "cycles", ",d"), column("of limit", "limit_share", ".3f"),
    column("in order", "limit_in_order_share", ".3f"),
    column("of lanes", "lane_share", ".3f"), column("pins", "line_share", ".3f"),
    column("useful", "useful_share", ".3f"), column("rows only", "row_share", ".3f"),
    column("stalls, % of cycles", "stalls"), column("PyTorch", "torch_share", ".2f"),
    column("FBGEMM", "fbgemm_share", ".2f"), column("equal", "bit_exact"), column("data", "data"),
)  # fmt: skip
"""Those of a workload."""

KNOWN_COLUMNS = (
    column("memory", "memory"), column("row bytes", "row_bytes", "d"), column("cycles", "cycles", ",d"),
    column("share, %", "share", ".1f"), column("reference, %", "reference", ".1f"),
    column("more by", "difference", "+.1f"), column("best way", "window"), column("verdict", "verdict"),
)  # fmt: skip
"""Those of traffic whose best figure is known."""

SHOWN_STALLS = 3
"""Causes that a table names, those with the most cycles."""


def stalls_text(stalls: Mapping[str, int], cycles: int) -> str:
    """The largest causes, with their cycles as a part of all."""
    largest = sorted(stalls, key=lambda cause: -stalls[cause])[:SHOWN_STALLS]
    return ", ".join(f"{cause.replace('_', ' ')} {100 * stalls[cause] / cycles:.0f}" for cause in largest) or "–"


MEANS = (
    "cycles", "limit_share", "limit_in_order_share", "line_share", "useful_share", "row_share", "torch_share",
    "fbgemm_share",
)  # fmt: skip
"""Figures of which placements have a mean."""


def with_means(rows: Sequence[Row]) -> list[Row]:
    """The rows, and behind those that differ in nothing but placement their mean; others have no placement."""
    found: list[Row] = []
    for position, row in enumerate(rows):
        found.append(row)
        same = [other for other in rows if "placement" in row and _kind(other) == _kind(row)]
        if len(same) > 1 and all(_kind(later) != _kind(row) for later in rows[position + 1 :]):
            found.append(mean_of(same))
    return found


def mean_of(rows: Sequence[Row]) -> Row:
    """One row for several that differ in placement; figures that one of them lacks are left out."""
    row = {
        key: value for key, value in rows[0].items() if key in ("workload", "distribution", "memory", "config", "data")
    }
    for key in MEANS:
        if all(other.get(key) is not None for other in rows):
            row[key] = sum(other[key] for other in rows) / len(rows)
    if "cycles" in row:
        row["cycles"] = round(row["cycles"])
    return {**row, "placement": "mean", "bit_exact": all(other.get("bit_exact", False) for other in rows)}


def _kind(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(key) for key in ("workload", "distribution", "memory", "config", "row_bytes"))


def markdown(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """A table in Markdown."""
    lines = [[entry.heading for entry in columns], ["--:" if entry.form else "---" for entry in columns]]
    lines += [[entry.text(row).replace("|", "\\|") for entry in columns] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(title: str, columns: Sequence[Column], rows: Iterable[Row], *, width: int, aside: bool = False) -> None:
    """Print a table; ``width`` columns where there is no terminal to fit; ``aside`` on the standard error."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for entry in columns:
        table.add_column(entry.heading, justify="right" if entry.form else "left", overflow="fold")
    for row in rows:
        table.add_row(*(entry.text(row) for entry in columns))
    Console(width=None if Console(stderr=aside).is_terminal else width, stderr=aside).print(table)
