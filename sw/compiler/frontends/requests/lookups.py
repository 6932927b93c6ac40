"""Requests for rows that indices name: copied, or summed along the second dimension of the indices."""

from daedal.compiler.frontends.requests.checks import bits_of, copied_as, element_of, width_of, wrapped
from daedal.driver.tables.table_sources import Source
from daedal.runtime.operations import Bag, Lookup
from daedal.runtime.request import Array, Request


def lookup_request(name: str, table: Source, indices: Array, *, wraps: bool = False) -> Request:
    """The request for a gather of rows of any of ``COPIED_TYPES``, of the indices' shape; ``wraps``: negative indices
    count from the end.

    UnsupportedOperation for rows that the machine cannot take.
    """
    width, element = copied_as(name, table)
    flat = indices.reshape(-1)
    if wraps:
        flat = wrapped(flat, len(table))
    shape = (*indices.shape, int(table.shape[1]))
    return Request(Lookup(width, bits_of(flat), element), table, {"indices": flat}, {}, flat.size, shape)


def pooled_request(
    name: str,
    table: Source,
    indices: Array,
    mode: str,
    *,
    block: int | None = None,
    weights: Array | None = None,
    keeps_dim: bool = False,
    wraps: bool = False,
) -> Request:
    """The request for the sum or mean of the rows that each row of 2-D indices names, in blocks of ``block`` rows.
    ``weights``, of the indices' shape, scale them.

    With ``keeps_dim`` the result has 3 dimensions, the second of size 1.
    """
    width = width_of(name, table)
    bags, length = indices.shape
    blocks, element = block if block and length > block else None, element_of(name, table)
    is_weighted = weights is not None
    operation = Bag(mode, width, bits_of(indices), None, is_weighted=is_weighted, block=blocks, element=element)
    flat = indices.reshape(-1)
    if wraps:
        flat = wrapped(flat, len(table))
    shape = (bags, 1, width) if keeps_dim else (bags, width)
    buffers = {"indices": flat} if weights is None else {"indices": flat, "weights": weights.reshape(-1)}
    return Request(operation, table, buffers, {"length": length}, bags, shape)
