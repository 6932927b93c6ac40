"""A sweep's table, its page and its JSON document."""

from collections.abc import Mapping, Sequence
from typing import Any

from daedal.bench.explore import pictures
from daedal.bench.explore.energy import CHIP, bit_of
from daedal.bench.explore.subject import Work
from daedal.bench.report import html
from daedal.bench.report.table import Column, column
from daedal.bench.suite import Row
from daedal.version import __version__

SCHEMA = 1
"""Version of the JSON document's form."""

COLUMNS: tuple[Column, ...] = (
    column("memory", "memory"), column("configuration", "config"), column("tiles", "tiles", "d"),
    column("look-ups/s", "rate"), column("of limit", "share", ".3f"), column("one call, µs", "call_us", ".1f"),
    column("nJ/look-up", "nj"), column("tile's MB", "tile_mb"), column("LUT", "lut", ",d"),
    column("what limits", "said"),
)  # fmt: skip

HOW = """Cycles are predicted by the target model, not counted: what was compared with the RTL is said below, all else
is unchecked. Calls are queued behind each other; the host's part of a model takes no time here. A tile is a core
with a channel of its own, which is taken to be as large as the tables on it need. Tables have their full size and
places, so which rows share a page of the DRAM is as it would be; their contents are left out, as no figure depends on
them. The core runs at its memory's clock: for an FPGA look at what the boards reach."""

LIMIT = """Of limit: lines read and written ÷ those that the pins of all tiles' channels could move in the time of the
longest tile, refresh taken off. One call: from the doorbell to the last write, alone. Tile's MB: tables and copies on
the fullest tile. LUT: landed sizes of the core (of four inputs, without controller), times tiles; a dash where none
was landed. Operations that a machine leaves to PyTorch are not counted."""


def shown(row: Row) -> Row:
    """A row with the texts of its table."""
    if row["note"]:
        return {**row, "said": row["note"]}
    nj = f"{row['nj_least']:.1f}–{row['nj_most']:.1f}" if row["nj_most"] else ""
    held = f"{row['tile_bytes'] / 1e6:,.1f}"
    return {**row, "rate": pictures.rate_text(row["lookups_per_s"]), "nj": nj, "tile_mb": held, "said": row["why"]}


def verdict(rows: Sequence[Row]) -> str:
    """The answer in a few lines: the fastest machine, and what limits how many of them."""
    known = [row for row in rows if not row["note"]]
    if not known:
        return "No machine of the sweep gave a figure."
    best = max(known, key=lambda row: float(row["lookups_per_s"]))
    limits: dict[str, int] = {}
    for row in known:
        limits[row["limit"]] = limits.get(row["limit"], 0) + 1
    counts = ", ".join(f"{limit} ({count})" for limit, count in sorted(limits.items(), key=lambda item: -item[1]))
    return (
        f"Most look-ups: {pictures.rate_text(best['lookups_per_s'])} on {best['tiles']} × {best['config']}, "
        f"{best['memory']}; there {best['why']}.\nWhat limits, by number of machines: {counts}."
    )


def document(name: str, work: Work, rows: Sequence[Row], settings: Mapping[str, str]) -> dict[str, Any]:
    """The JSON document."""
    return {
        "schema": SCHEMA, "daedal": __version__, "subject": name, "predicted": True, "tables": work.tables,
        "lookups": work.lookups, "table_bytes": work.table_bytes, "memories": dict(settings),
        "energy": _sources(rows), "rows": list(rows),
    }  # fmt: skip


def page(name: str, work: Work, rows: Sequence[Row], settings: Mapping[str, str]) -> str:
    """The HTML page, with everything in it."""
    texts = [shown(row) for row in rows]
    checked = {f"{row['config']}, {row['memory']}": row.get("checked") or "unchecked" for row in rows}
    about = {
        "tables": f"{work.tables:,}, {work.table_bytes:,} bytes of parameters",
        "look-ups of a call": f"{work.lookups:,}",
    }
    sections = {
        "The answer": html.text(verdict(rows)) + html.pairs(about),
        "All machines": html.table(COLUMNS, texts) + html.text(HOW) + html.text(LIMIT),
        "Look-ups per second": html.figure(pictures.rates(rows), "rates", "More is better."),
        "Share of the limit": html.figure(pictures.shares(rows), "shares", "Beside each bar: what limits."),
        "Stalls": html.figure(pictures.stalls(rows), "stalls", "Of the longest tile."),
        "Energy": html.figure(pictures.energies(rows), "energy", CHIP) + html.pairs(_sources(rows)),
        "Memories": html.pairs(settings),
        "What predictions were checked by": html.pairs(checked),
    }
    return html.page(f"Daedal: {name} on many machines", sections)


def _sources(rows: Sequence[Row]) -> dict[str, str]:
    """Memory -> what a bit of it takes, and where that is from."""
    found = {}
    for memory in dict.fromkeys(str(row["memory"]) for row in rows):
        bit = bit_of(memory)
        found[memory] = f"{bit.least:g} to {bit.most:g} pJ a bit: {bit.source}" if bit else "no figure"
    return found
