"""Requests for sums of rows of integers with a scale and a bias."""

from daedal.compiler.frontends.requests.bags import bags_of
from daedal.compiler.frontends.requests.checks import bits_of
from daedal.driver.tables.quantised import QuantisedRows
from daedal.driver.tables.table_sources import Source
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
    buffers, values, _, bags = bags_of(name, indices, offsets, weights, "sum", include_last_offset)
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
