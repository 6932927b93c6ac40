"""Checks of what a run gives to an operation, whichever it is, and forms in which the machine takes it."""

import numpy as np

from daedal.driver.tables.table_sources import STAND_INS, Source, array_type, dtype_name
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY16, BINARY32, ELEMENTS, FLOATS8, LENGTH_ELEMENTS, Element
from daedal.hw.isa.words import PITCH_BITS
from daedal.runtime.request import LONGEST_BAG, Array, exact_counts

LONGEST_ROW = (1 << PITCH_BITS) - 64
"""Bytes of the longest row of a table, which takes whole lines of memory, of up to 64 bytes."""

ROW_TYPES = {element.dtype: element for element in ELEMENTS}
"""Type of a table, as NumPy and PyTorch call it -> what its rows are made of, for all that computes with them."""

_FLOATS8 = {element.dtype: element for element in FLOATS8}

COPIED_TYPES = frozenset(
    [*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "bool", *STAND_INS]
    + [f"float{bits}" for bits in (16, 32, 64)]
    + [f"complex{bits}" for bits in (64, 128)]
)
"""Types of tables whose rows are copied, byte by byte."""


def most_scored(config: Config) -> int:
    """The most elements of a row that a machine adds up to one number; 0 if it has no place for that."""
    return config.vl_max if config.scalars else 0


def computed_types(config: Config) -> frozenset[str]:
    """The types of rows that a machine computes with, as PyTorch calls them."""
    return frozenset(LENGTH_ELEMENTS[field].dtype for field in config.length_fields)


class LeftToFramework(UnsupportedOperation):
    """An operation that the framework does in every executable."""


def width_of(name: str, table: Source) -> int:
    """Elements of a row of a 2-D table; LeftToFramework for none, UnsupportedOperation for too many."""
    return _width(name, table, element_of(name, table).bytes)


def copied_as(name: str, table: Source) -> tuple[int, Element]:
    """How many elements of which length are copied of a row of a 2-D table, whatever it is of; LeftToFramework for
    none, UnsupportedOperation for too many.

    Words, but halves of them if the row is one short: no fewer bytes are stored than a half has. A row of an odd number
    of bytes has one more behind it.
    """
    size = array_type(dtype_name(table)).itemsize
    row_bytes = _width(name, table, size) * size
    element = BINARY16 if -row_bytes % BINARY32.bytes == BINARY16.bytes else BINARY32
    return -(-row_bytes // element.bytes), element


def _width(name: str, table: Source, size: int) -> int:
    width, most = int(table.shape[1]), LONGEST_ROW // size
    if width < 1:
        raise LeftToFramework(f"{name}: rows of the table must have at least one element, not 0")
    if width > most:
        raise UnsupportedOperation(
            f"{name}: rows of the table must have at most {most} elements, not {width}: take some columns at a time"
        )
    return width


def element_of(name: str, table: Source) -> Element:
    """What the rows of a table are made of; UnsupportedOperation for what the machine does not have."""
    found = dtype_name(table)
    if found in _FLOATS8:
        return _FLOATS8[found]
    if found not in ROW_TYPES:
        raise UnsupportedOperation(f"{name}: the table must be of {' or '.join(ROW_TYPES)}, not {found}: convert it")
    return ROW_TYPES[found]


def bits_of(integers: Array) -> int:
    """Bits of each of these integers."""
    return integers.dtype.itemsize * 8


def wrapped(indices: Array, rows: int) -> Array:
    """Indices of which negative ones count from the end; those out of range stay so."""
    if not indices.size or indices.min() >= 0:
        return indices
    is_from_end = (indices < 0) & (indices >= -rows)
    return np.where(is_from_end, indices + indices.dtype.type(rows), indices)


def check_lengths(name: str, count: int, ends: Array | int) -> None:
    """Raise UnsupportedOperation for bags, of ``count`` rows in all, that the machine cannot count; ``ends`` is where
    they begin and the last one ends, or the length of all.
    """
    if count < LONGEST_BAG:
        return
    longest = ends if isinstance(ends, int) else int(np.diff(ends).max()) if len(ends) > 1 else 0
    if longest >= LONGEST_BAG:
        raise UnsupportedOperation(f"{name}: a bag must have fewer than {LONGEST_BAG} rows, not {longest}")


def check_counts(name: str, element: Element, count: int, ends: Array | int, *, padded: bool = False) -> None:
    """Raise UnsupportedOperation for means, of ``count`` rows in all, that PyTorch divides by another number than that
    of their rows: one that has the type of their elements. ``padded``: some may have fewer.
    """
    most = exact_counts(element)
    if count <= most:
        return
    lengths = np.array([ends]) if isinstance(ends, int) else np.diff(ends)
    lengths = lengths[lengths > most]
    # What is left without the zeros at the end is the significand.
    others = lengths if padded else lengths[lengths // (lengths & -lengths) >= most]
    if others.size:
        raise UnsupportedOperation(
            f"{name}: a mean must be of at most {most} rows of torch.{element.dtype}, or of a number that is one, not "
            f"of {others[0]}: PyTorch rounds the number"
        )
