"""Requests for maxima, minima and products of rows by destination, as TensorFlow has them."""

from dataclasses import replace

import numpy as np

from daedal.compiler.frontends.requests.checks import element_of
from daedal.compiler.frontends.requests.orders import looked_up
from daedal.compiler.frontends.requests.reductions import destination_request
from daedal.driver.tables.table_sources import Source
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.elements import LANE
from daedal.runtime.request import Array, Request

_NAMES = {"max": "maximum", "min": "minimum"}


def extreme_request(
    name: str,
    table: Source,
    indices: Array | None,
    keys: Array,
    rows: int,
    mode: str,
    *,
    empty: float,
    is_bounded: bool = False,
) -> Request:
    """The request for a maximum, minimum (mode ``max``, ``min``) or product (``prod``) of rows into ``rows`` rows, as
    ``destination_request`` has it; those that nothing goes to are ``empty``.

    A product is of one row after the other, from 1. Which of two zeros an extreme is, or what it makes of NaN, depends
    on how TensorFlow computes it, so rows with such are refused; with ``is_bounded``, of what begins with the largest
    or lowest number there is, those with infinities too. UnsupportedOperation for these, and for others than float32.
    """
    if element_of(name, table) != LANE:
        raise UnsupportedOperation(f"{name}: the table must be of {LANE.dtype} for mode {mode}: convert it")
    if mode in _NAMES:
        _check_rows(name, looked_up(table, indices), _NAMES[mode], is_bounded=is_bounded)
    return replace(destination_request(name, table, indices, None, keys, rows, mode), empty=empty)


def _check_rows(name: str, rows: Array, what: str, *, is_bounded: bool) -> None:
    if is_bounded and not np.isfinite(rows).all():
        raise UnsupportedOperation(f"{name}: rows must be finite for a {what} that begins with a finite number")
    if np.isnan(rows).any():
        raise UnsupportedOperation(
            f"{name}: rows must be free of NaN for a {what}: what TensorFlow makes of it depends on the width"
        )
    signs = np.signbit(rows)[rows == 0]
    if signs.any() and not signs.all():
        raise UnsupportedOperation(
            f"{name}: rows must not have +0.0 and -0.0 for a {what}: which one TensorFlow takes depends on the width"
        )
