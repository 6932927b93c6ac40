"""Requests for numbers made of rows that are looked up in several tables."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from daedal.compiler.frontends.requests.checks import bits_of, width_of, wrapped
from daedal.driver.tables.table_sources import Source
from daedal.errors import UnsupportedOperation
from daedal.runtime.operations import Score
from daedal.runtime.request import LONGEST_BAG, Array, Request


class Entries(NamedTuple):
    """Indices; their dimensions are those of the result that ``axes`` says, the others are for all alike. ``wraps``:
    negative ones count from the end.
    """

    indices: Array
    axes: Sequence[int | None]
    wraps: bool


def score_request(
    name: str, tables: Mapping[str, Source], lists: Sequence[Entries], reduction: str, expression: str, *,
    keeps_dim: bool,
) -> Request:  # fmt: skip
    """The request for ``reduction`` (``sum``, ``mean``, or ``root`` of the sum of squares) of ``expression`` for each
    entry of the lists; with ``keeps_dim`` the result has a last dimension of size 1.

    A list that is for all along the last dimension alike has its rows fetched once for these. UnsupportedOperation for
    rows that the machine cannot take.
    """
    names, sources = list(tables), list(tables.values())
    widths = {width_of(name, table) for table in sources}
    if len(widths) != 1:
        raise UnsupportedOperation(f"{name}: rows must have one width, not {sorted(widths)}")
    arrays: list[Array] = []
    for number, each in enumerate(lists):
        table = next(int(token.split(".")[0]) for token in _rows(expression) if token.endswith(f".{number}"))
        flat = wrapped(each.indices.reshape(-1), len(sources[table])) if each.wraps else each.indices
        arrays.append(flat.reshape([1 if axis is None else each.indices.shape[axis] for axis in each.axes]))
    try:
        whole = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise UnsupportedOperation(f"{name}: shapes of indices must fit each other, not {shapes}") from None
    lead = list(whole)
    while lead and lead[-1] == 1:  # no dimension to repeat along
        lead.pop()
    arrays = [array.reshape(array.shape[: len(lead)]) for array in arrays]
    inner = lead[-1] if lead else 1
    if inner >= LONGEST_BAG:
        raise UnsupportedOperation(f"{name}: there must be less than {LONGEST_BAG} scores a row, not {inner}")
    outer = [n for n, array in enumerate(arrays) if lead and inner > 1 and array.shape[-1] == 1]
    order = [*outer, *(n for n in range(len(arrays)) if n not in outer)]
    buffers = {}
    for position, number in enumerate(order):
        wanted = [*lead[:-1], 1] if number in outer else lead
        buffers[f"indices{position or ''}"] = np.ascontiguousarray(np.broadcast_to(arrays[number], wanted)).reshape(-1)
    tokens = expression.split()
    for place, token in enumerate(tokens):
        if token in _rows(expression):
            table_number, _, entries = token.partition(".")
            tokens[place] = f"{table_number}.{order.index(int(entries))}"
    bits = tuple(bits_of(array) for array in buffers.values())
    is_root = reduction == "root"
    how = "squares" if is_root else reduction
    operation = Score(how, " ".join(tokens), widths.pop(), len(tables), bits, len(outer))
    rows = int(np.prod(whole, dtype=np.int64))
    others = tuple(zip(names[1:], sources[1:], strict=True))
    result = (*whole, 1) if keeps_dim else tuple(whole)
    finish = _take_roots if is_root else None  # of few numbers, and the machine has one unit for roots
    return Request(operation, sources[0], buffers, {"length": inner}, rows, result, others=others, finish=finish)


def _take_roots(sums: Array) -> None:
    np.sqrt(sums, out=sums)


def _rows(expression: str) -> list[str]:
    """The tokens that are rows."""
    return [token for token in expression.split() if token[0].isdigit()]
