"""Requests for a pooling of bags, as embedding bags have it."""

import numpy as np

from daedal.compiler.frontends.requests.checks import (
    bits_of,
    check_counts,
    check_lengths,
    element_of,
    width_of,
)
from daedal.driver.tables.table_sources import Source
from daedal.errors import InvalidOffsets, UnsupportedOperation
from daedal.runtime.operations import Bag
from daedal.runtime.request import Array, Request


def bag_request(
    name: str,
    table: Source,
    indices: Array,
    offsets: Array | None,
    weights: Array | None,
    *,
    mode: str = "sum",
    padding: int | None = None,
    include_last_offset: bool = False,
    is_fused: bool = False,
    is_away: bool = False,
    is_wide: bool = False,
) -> Request:
    """The request for a pooling of bags.

    Parameters
    ----------
    name
        The operation's name, for messages.
    table
        Rows of elements that the machine has.
    indices
        2-D: a bag in each row. 1-D: bags that begin at ``offsets``.
    offsets, include_last_offset
        Where bags begin, and whether the end of the last one is among these; otherwise that is the last index.
    weights
        Of the indices' shape: what each row is multiplied with, for mode ``sum``.
    mode, is_fused, is_away, is_wide
        As of :class:`Bag`.
    padding
        The row that is left out, from the end if it is negative.

    Raises UnsupportedOperation for shapes that it cannot take, InvalidOffsets for offsets that do not go with the
    indices. The order of offsets and the values of indices are checked by the machine.
    """
    width, element = width_of(name, table), element_of(name, table)
    buffers, values, ends, bags = bags_of(name, indices, offsets, weights, mode, include_last_offset)
    if mode == "mean":
        check_counts(name, element, indices.size, ends, padded=padding is not None)
    operation = Bag(
        mode,
        width,
        bits_of(indices),
        bits_of(buffers["offsets"]) if "offsets" in buffers else None,
        is_weighted=weights is not None,
        is_fused=weights is not None and padding is None and is_fused,
        padding=_from_start(name, padding, len(table)),
        element=element,
        is_away=is_away,
        is_wide=is_wide,
    )
    return Request(operation, table, buffers, values, bags, (bags, width))


def bags_of(
    name: str, indices: Array, offsets: Array | None, weights: Array | None, mode: str, include_last_offset: bool
) -> tuple[dict[str, Array], dict[str, int], Array | int, int]:
    """The arrays and numbers of a request for bags, where these end (or the length of each), and how many there are.

    Raises UnsupportedOperation and InvalidOffsets for what does not go together.
    """
    buffers, values = {"indices": indices.reshape(-1)}, dict[str, int]()
    ends: Array | int
    if indices.ndim == 2:
        if offsets is not None:
            raise InvalidOffsets(f"{name}: offsets must be None for indices with 2 dimensions: leave them out")
        bags, values["length"] = indices.shape
        ends = values["length"]
    elif indices.ndim == 1:
        buffers["offsets"] = ends = ends_of(name, indices, offsets, include_last_offset)
        bags = len(ends) - 1
    else:
        raise UnsupportedOperation(f"{name}: indices must have 1 or 2 dimensions, not {indices.ndim}")
    if weights is not None:
        check_weights(name, indices, weights, mode)
        buffers["weights"] = weights.reshape(-1)
    check_lengths(name, indices.size, ends)
    return buffers, values, ends, bags


def ends_of(name: str, indices: Array, offsets: Array | None, include_last_offset: bool) -> Array:
    """Offsets, checked, with an end for the last bag."""
    if offsets is None:
        raise InvalidOffsets(f"{name}: offsets must be given for indices with 1 dimension")
    if offsets.ndim != 1:
        raise InvalidOffsets(f"{name}: offsets must have 1 dimension, not {offsets.ndim}")
    if include_last_offset and not offsets.size:
        raise InvalidOffsets(f"{name}: with include_last_offset there must be at least one offset, not 0")
    if offsets.size:
        first, last = int(offsets[0]), int(offsets[-1])
        if first != 0:
            raise InvalidOffsets(f"{name}: the first offset must be 0, not {first}")
        if last > indices.size:
            raise InvalidOffsets(
                f"{name}: the last offset must be at most the number of indices, {indices.size}, not {last}"
            )
    return offsets if include_last_offset else np.append(offsets, offsets.dtype.type(indices.size))


def check_weights(name: str, indices: Array, weights: Array, mode: str) -> None:
    """Raise UnsupportedOperation for weights that do not go with the mode and the indices."""
    if mode != "sum":
        raise UnsupportedOperation(f"{name}: per_sample_weights must go with mode 'sum', not {mode!r}")
    if weights.shape != indices.shape:
        raise UnsupportedOperation(
            f"{name}: per_sample_weights must have the shape of the indices, {indices.shape}, not {weights.shape}"
        )


def _from_start(name: str, padding: int | None, rows: int) -> int | None:
    """The padding index, which counts from the end if it is negative."""
    if padding is None:
        return None
    if not -rows <= padding < rows:
        raise UnsupportedOperation(f"{name}: padding_idx must lie within the table's {rows} rows, not {padding}")
    return padding % rows
