"""Pictures of a sweep as SVG: bars by machine and number of tiles."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import log10

from daedal.bench.suite import Row

COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860")
WIDTH, LEFT, MOST, BAR, GAP, TOP = 900, 230, 450, 14, 10, 62
"""Of the picture, of the names and of the longest bar; a bar's height, the space between machines and above the first
one; pixels.
"""

DECADES = 4
"""Powers of ten of a logarithmic scale, at most."""


def rates(rows: Sequence[Row]) -> str:
    """Look-ups per second, on a logarithmic scale."""
    known = _known(rows, "lookups_per_s")
    top = max((row["lookups_per_s"] for row in known), default=1.0)

    def length(row: Row) -> float:
        return max(0.01, 1 + log10(row["lookups_per_s"] / top) / DECADES)

    return _bars("Look-ups per second (logarithmic)", known, length, lambda row: rate_text(row["lookups_per_s"]))


def shares(rows: Sequence[Row]) -> str:
    """The share of what the memories' pins can move."""
    known = _known(rows, "share")
    return _bars(
        "Lines moved ÷ lines that the memory could move",
        known,
        lambda row: min(1.0, row["share"]),
        lambda row: f"{row['share']:.3f}, {row['limit']}",
    )


def energies(rows: Sequence[Row]) -> str:
    """Energy of a look-up: a bar from the least to the most."""
    known = _known(rows, "nj_most")
    top = max((row["nj_most"] for row in known), default=1.0)
    return _bars(
        "nJ per look-up: from the least to the most that sources allow",
        known,
        lambda row: row["nj_most"] / top,
        lambda row: f"{row['nj_least']:.1f} to {row['nj_most']:.1f}",
        lambda row: row["nj_least"] / top,
    )


def stalls(rows: Sequence[Row]) -> str:
    """What the longest tile waits for: its largest cause of a stall."""
    known = [row for row in _known(rows, "cycles") if row["stalls"]]

    def worst(row: Row) -> str:
        return str(max(row["stalls"], key=row["stalls"].__getitem__))

    def part(row: Row) -> float:
        return min(1.0, float(row["stalls"][worst(row)] / row["cycles"]))

    return _bars(
        "Largest cause of stalls, share of cycles (units stall side by side)",
        known,
        part,
        lambda row: f"{worst(row).replace('_', ' ')} {part(row):.2f}",
    )


def rate_text(rate: float) -> str:
    """Look-ups per second, short."""
    for size, name in ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s")):
        if rate >= size:
            return f"{rate / size:.3g} {name}"
    return f"{rate:.3g} /s"


def _known(rows: Sequence[Row], figure: str) -> list[Row]:
    return [row for row in rows if row.get(figure)]


def _bars(
    title: str,
    rows: Sequence[Row],
    length: Callable[[Row], float],
    text: Callable[[Row], str],
    begin: Callable[[Row], float] = lambda row: 0.0,
) -> str:
    machines: dict[str, list[Row]] = {}
    for row in rows:
        machines.setdefault(f"{row['memory']}, {row['config']}", []).append(row)
    tiles = sorted({row["tiles"] for row in rows})
    colours = {count: COLOURS[place % len(COLOURS)] for place, count in enumerate(tiles)}
    height = TOP + sum(len(found) * BAR + GAP for found in machines.values()) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12" fill="#222222">',
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="14">{escape(title)}</text>',
        *_legend(colours),
    ]
    y = TOP
    for name, found in machines.items():
        lines.append(f'<text x="{LEFT - 8}" y="{y + BAR - 2}" text-anchor="end">{escape(_short(name))}</text>')
        for row in found:
            first, last = round(MOST * begin(row)), round(MOST * length(row))
            colour = colours[row["tiles"]]
            lines.append(
                f'<rect x="{LEFT + first}" y="{y}" width="{max(2, last - first)}" height="{BAR - 2}" fill="{colour}"/>'
            )
            lines.append(f'<text x="{LEFT + last + 6}" y="{y + BAR - 4}" font-size="11">{escape(text(row))}</text>')
            y += BAR
        y += GAP
    return "\n".join([*lines, "</svg>"]) + "\n"


def _legend(colours: Mapping[int, str]) -> list[str]:
    lines = []
    for place, (count, colour) in enumerate(colours.items()):
        x = LEFT + 100 * place
        lines.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 18}" y="44">{count} {"tiles" if count > 1 else "tile"}</text>')
    return lines


def _short(name: str, most: int = 36) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
