"""One HTML page of a run, with everything in it: nothing is loaded from anywhere."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from daedal.bench.report.table import Column, Row

STYLE = """
body { font-family: sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; font-size: 0.9em; }
th, td { border: 1px solid #bbb; padding: 0.25em 0.6em; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f4f4f4; padding: 1em; overflow-x: auto; font-size: 0.85em; }
figure { margin: 1em 0; } svg { max-width: 100%; height: auto; }
.wrong { color: #b00; font-weight: bold; }
"""

_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_NUMBER = ' class="number"'
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_IDENTIFIER = re.compile(r'(\bid="|href="#|url\(#)')


def inline(svg: str, prefix: str) -> str:
    """A picture to stand in a page: without head and metadata, its names apart from those of others."""
    body = _METADATA.sub("", _PROLOGUE.sub("", svg, count=1))
    return _IDENTIFIER.sub(lambda match: f"{match[1]}{prefix}-", body)


def table(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Rows as an HTML table."""
    head = "".join(f"<th>{escape(entry.heading)}</th>" for entry in columns)
    lines = [
        "".join(f"<td{_NUMBER if entry.form else ''}>{escape(entry.text(row))}</td>" for entry in columns)
        for row in rows
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def pairs(values: Mapping[str, Any]) -> str:
    """Names and values as an HTML table."""
    lines = "\n".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in values.items()
    )
    return f"<table>\n<tbody>\n{lines}\n</tbody>\n</table>"


def figure(svg: str, prefix: str, caption: str) -> str:
    """A picture with a caption."""
    return f"<figure>\n{inline(svg, prefix)}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def text(content: str) -> str:
    """Text as it is."""
    return f"<pre>{escape(content)}</pre>"


def page(title: str, sections: Mapping[str, str]) -> str:
    """The whole page: heading -> HTML of a section."""
    parts = [f"<h2>{escape(heading)}</h2>\n{content}" for heading, content in sections.items()]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )
