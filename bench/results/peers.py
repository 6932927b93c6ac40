"""The table beside another engine that fetches rows by indices: its figures, and the sweep's of the same rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from daedal.base.files import read_json
from daedal.bench.report.table import Column, Row, column

PATH = Path(__file__).with_name("peers.json")
SCHEMA = 1

OURS, CEILING = "Daedal, sums of 32 rows", "their limit"


def read(path: Path = PATH) -> dict[str, Any]:
    """The other engine's figures. ValueError if the file is of another form."""
    found = read_json(path, "figures of another engine")
    texts = ("peer", "figures", "conditions")
    good = (
        isinstance(found, dict) and found.get("schema") == SCHEMA and all(isinstance(found.get(n), str) for n in texts)
    )
    if not good or not _is_table(found.get("settings"), found.get("rows")):
        raise ValueError(
            f"{path} must have schema {SCHEMA}, {', '.join(texts)}, settings and rows: take it from git again"
        )
    document: dict[str, Any] = found
    return document


def _is_table(settings: object, rows: object) -> bool:
    """Whether each row has bytes and a share, or none, for each setting."""
    if not isinstance(settings, list) or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return False
    return all(
        isinstance(row.get("row_bytes"), int)
        and isinstance(row.get("shares"), list)
        and len(row["shares"]) == len(settings)
        and all(share is None or isinstance(share, float) for share in row["shares"])
        for row in rows
    )


def text(peer: Mapping[str, Any]) -> str:
    """What its figures are, and what ours beside them are."""
    return (
        "*Simulated*: bytes of looked-up rows ÷ what the bus can move. "
        f"{peer['peer']}: {peer['figures']}; {peer['conditions']}. "
        f"{OURS} ([widths of rows](#widths-of-rows)): memory `ideal` of 100 cycles, int64 indices that "
        "are read over the same bus and checked, results stored; their limit is the share that rows can have of all "
        "that the operation moves."
    )


def table(peer: Mapping[str, Any], sweep: Sequence[Row]) -> tuple[tuple[Column, ...], list[Row]]:
    """Columns and rows; ``sweep`` has ours."""
    ours = {
        row["row_bytes"]: row
        for row in sweep
        if (row["workload"], row["memory"], row["distribution"], row["placement"]) == ("sum", "ideal", "uniform", 0)
    }
    shown = (
        column("row bytes", "row_bytes", "d"),
        *(column(name, name, ".3f") for name in peer["settings"]),
        column(OURS, "ours", ".3f"),
        column(CEILING, "limit", ".3f"),
    )
    rows: list[Row] = []
    for row in peer["rows"]:
        own = ours[row["row_bytes"]]
        limit = own["row_share"] / own["limit_share"]
        figures = dict(zip(peer["settings"], row["shares"], strict=True))
        rows.append({"row_bytes": row["row_bytes"], **figures, "ours": own["row_share"], "limit": limit})
    return shown, rows
