"""What the pages of results are made of."""

from collections.abc import Mapping, Sequence
from typing import Any

from daedal.bench.report.table import Column, Row, markdown


def rows_of(document: Mapping[str, Any], suite: str) -> list[Row]:
    """The rows of a suite in a landed document; none if it has no such suite."""
    found: list[Row] = document["results"].get(suite, [])
    return found


def section(title: str, text: str, shown: Sequence[Column], rows: Sequence[Row]) -> str:
    """A heading, a text and a table."""
    return f"## {title}\n\n{one_line(text)}\n\n{markdown(shown, rows)}"


def one_line(text: str) -> str:
    """A paragraph as Markdown has it here."""
    return " ".join(text.split())
