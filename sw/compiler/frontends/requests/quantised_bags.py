"""Requests for sums of rows of integers with a scale and a bias."""

from daedal.compiler.frontends.requests.bags import check_weights, ends_of
from daedal.compiler.frontends.requests.checks import bits_of, check_lengths
from daedal.driver.tables.quantised import QuantisedRows
from daedal.driver.tables.table_sources import Source
from daedal.errors import InvalidOffsets, UnsupportedOperation
from daedal.runtime.operations import Bag
from daedal.runtime.request import Array, Request


def quantised_request(
    name: str,
    table: Source,
    form: QuantisedRows,
    indices: Array,
    offsets: Array | None,
    weights: Array | None,
    *,
    include_last_offset: bool = False,
) -> Request:
    """The request for the weighted sums of bags of rows that are as ``form`` says; ``bag_request`` has the rest.

    Raises UnsupportedOperation and InvalidOffsets as that does.
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
        check_weights(name, indices, weights, "sum")
        buffers["weights"] = weights.reshape(-1)
    check_lengths(name, indices.size, ends)
    operation = Bag(
        "sum",
        form.dim,
        bits_of(indices),
        bits_of(buffers["offsets"]) if "offsets" in buffers else None,
        is_weighted=weights is not None,
        bits=form.bits,
        words=form.words,
    )
    return Request(operation, table, buffers, values, bags, (bags, form.dim), form=form)
