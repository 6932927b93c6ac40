"""The picture of a plan: a bar for each tile, with a part for each piece, in the colour of its table."""

from collections.abc import Sequence
from html import escape

COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974", "#64b5cd")
"""Of the tables that take most; all others are grey."""

REST = "#d0d0d0"
LEFT, WIDTH, HEIGHT, GAP, TOP = 90, 640, 18, 5, 34
"""Pixels: the tiles' names, the longest bar, a bar's height, what is between bars, the text above."""


def picture_of(title: str, cycles: Sequence[int], pieces: Sequence[tuple[int, str, float, str]]) -> str:
    """SVG text, from the cycles of each tile, and tile, table, share of the tile's work, and text of each piece."""
    work: dict[str, float] = {}
    for _, table, amount, _ in pieces:
        work[table] = work.get(table, 0.0) + amount
    largest = sorted(work, key=lambda table: (-work[table], table))[: len(COLOURS)]
    colour = dict(zip(largest, COLOURS, strict=False))
    unit = WIDTH / max(1, *cycles)
    mean = LEFT + unit * sum(cycles) / len(cycles)
    bottom = TOP + len(cycles) * (HEIGHT + GAP)
    lines = [f'<text x="8" y="18">{escape(title)}</text>']
    for tile, total in enumerate(cycles):
        y = TOP + tile * (HEIGHT + GAP)
        lines.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">tile {tile}</text>')
        mine = [piece for piece in pieces if piece[0] == tile]
        whole, x = sum(piece[2] for piece in mine) or 1.0, float(LEFT)
        for _, table, amount, where in mine:
            length = unit * total * amount / whole
            lines.append(
                f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{HEIGHT}" fill="{colour.get(table, REST)}" '
                f'stroke="white" stroke-width="0.5"><title>{escape(f"{table}, {where}")}</title></rect>'
            )
            x += length
        lines.append(f'<text x="{x + 6:.1f}" y="{y + 13}">{total:,}</text>')
    lines.append(f'<line x1="{mean:.1f}" y1="{TOP - 4}" x2="{mean:.1f}" y2="{bottom}" stroke="black"/>')
    for number, table in enumerate([*largest, *(["other tables"] if len(work) > len(largest) else [])]):
        y = bottom + 10 + 18 * number
        lines.append(f'<rect x="{LEFT}" y="{y}" width="12" height="12" fill="{colour.get(table, REST)}"/>')
        lines.append(f'<text x="{LEFT + 18}" y="{y + 11}">{escape(table)}</text>')
    height = bottom + 30 + 18 * (len(largest) + 1)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 110}" height="{height}" '
    ground = f'<rect width="{LEFT + WIDTH + 110}" height="{height}" fill="white"/>'
    return "\n".join([head + 'font-family="sans-serif" font-size="12">', ground, *lines, "</svg>"]) + "\n"
