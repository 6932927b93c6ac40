"""The README's picture: how near each workload comes to what its memory can do."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

SHOWN = {"ideal": "#4c72b0", "litedram-ddr3-x16": "#dd8452", "litedram-ddr3-x64": "#55a868"}
"""Memory -> the colour of its bars."""

WIDTH, LEFT, MOST, BAR, GAP, TOP = 660, 150, 440, 13, 10, 62
"""Of the picture, of the names, and of a share of 1; a bar's height, the space behind a workload's bars, and above the
first one; pixels.
"""


def picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """SVG text: a bar for each memory of each workload with uniform indices, or its own. It has a ground of its own."""
    shares: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["distribution"] != "zipf" and row["memory"] in SHOWN and row.get("limit_share"):
            shares.setdefault(row["workload"], {})[row["memory"]] = row["limit_share"]
    height = TOP + len(shares) * (len(SHOWN) * BAR + GAP) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#222222">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        '<text x="12" y="20" font-size="14">Cycles that memory needs at least ÷ cycles taken (simulated)</text>',
    ]
    for number, (memory, colour) in enumerate(SHOWN.items()):
        x = LEFT + 150 * number
        lines.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 18}" y="44">{memory}</text>')
    for number, (workload, found) in enumerate(shares.items()):
        y = TOP + number * (len(SHOWN) * BAR + GAP)
        lines.append(f'<text x="{LEFT - 8}" y="{y + BAR + 4}" text-anchor="end">{escape(workload)}</text>')
        for place, (memory, colour) in enumerate(SHOWN.items()):
            if memory in found:
                lines += _bar(found[memory], y + place * BAR, colour)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _bar(share: float, y: int, colour: str) -> list[str]:
    length = round(MOST * share)
    return [
        f'<rect x="{LEFT}" y="{y}" width="{length}" height="{BAR - 1}" fill="{colour}"/>',
        f'<text x="{LEFT + length + 6}" y="{y + BAR - 3}" font-size="11">{share:.3f}</text>',
    ]
