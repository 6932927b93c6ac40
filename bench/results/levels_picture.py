"""The picture of the suite ``levels``: for each workload a bar of its steps, stacked, on a logarithmic scale."""

from collections.abc import Mapping
from html import escape
from math import log

from daedal.bench.suite import Row
from daedal.bench.suites.levels import STEPS

COLOURS = ("#4c72b0", "#dd8452", "#55a868")
LEFT, UNIT, HEIGHT, GAP = 170, 120, 26, 12
"""Widths of the names and of a factor of e, height of a bar and of what is between bars, in pixels."""


def picture(rows: list[Row]) -> str:
    """SVG text: rows with cycles, then the published steps. A step that gains nothing has no part of the bar."""
    measured = {row["workload"]: row for row in rows if row.get("vectorise")}
    bars: dict[str, Mapping[str, float]] = {**measured, "published": STEPS}
    width = LEFT + max(sum(_length(bar[name]) for name in STEPS) for bar in bars.values()) + 80
    height = (len(bars) + 1) * (HEIGHT + GAP)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>']  # fmt: skip
    for number, name in enumerate(STEPS):
        x = LEFT + 110 * number
        lines.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{COLOURS[number]}"/>')
        lines.append(f'<text x="{x + 18}" y="18">{name}</text>')
    for number, (name, bar) in enumerate(bars.items(), start=1):
        lines += _bar(name, [bar[step] for step in STEPS], number * (HEIGHT + GAP))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _length(factor: float) -> int:
    return max(round(UNIT * log(factor)), 0)


def _bar(name: str, factors: list[float], y: int) -> list[str]:
    """One bar, with its factors in it and their product behind it."""
    middle, x, total = y + HEIGHT // 2 + 4, LEFT, 1.0
    lines = [f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(name)}</text>']
    for factor, colour in zip(factors, COLOURS, strict=True):
        length = _length(factor)
        lines.append(f'<rect x="{x}" y="{y}" width="{length}" height="{HEIGHT}" fill="{colour}"/>')
        if length > 30:
            lines.append(
                f'<text x="{x + length // 2}" y="{middle}" fill="white" text-anchor="middle">{factor:.1f}</text>'
            )
        x, total = x + length, total * factor
    return [*lines, f'<text x="{x + 6}" y="{middle}">{total:.1f}×</text>']
