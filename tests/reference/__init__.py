"""The numeric contract in C (``numerics.c``), compiled on demand: the oracle of all tests of results."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from daedal.cosim.builder.library import build_library, read_sources

MODES = ("sum", "mean", "max")
"""In the order of ``enum mode``."""

Array = np.ndarray[Any, Any]


class _Bags(ctypes.Structure):
    _fields_ = [
        ("table", ctypes.c_void_p), ("rows", ctypes.c_int64), ("dim", ctypes.c_int64),
        ("indices", ctypes.c_void_p), ("count", ctypes.c_int64), ("offsets", ctypes.c_void_p),
        ("bags", ctypes.c_int64), ("weights", ctypes.c_void_p), ("padding", ctypes.c_int64),
        ("mode", ctypes.c_int32), ("rounding", ctypes.c_int32), ("out", ctypes.c_void_p),
    ]  # fmt: skip


@cache
def _library() -> ctypes.CDLL:
    files = read_sources(Path(__file__).parent, "numerics.c")
    files["numerics.cpp"] = 'extern "C" {\n#include "numerics.c"\n}\n'
    library = ctypes.CDLL(str(build_library("reference", files, flags=("-fno-tree-vectorize",))))
    library.embedding_bag.argtypes = [ctypes.POINTER(_Bags)]
    library.embedding_bag.restype = ctypes.c_int64
    return library


def bag_limits(offsets: Array, count: int, include_last_offset: bool = False) -> Array:
    """Start of each bag and, last, the end of the last one, int64."""
    starts = np.asarray(offsets, dtype=np.int64)
    return starts if include_last_offset else np.append(starts, count)


def embedding_bag(
    table: Array,
    indices: Array,
    offsets: Array,
    *,
    mode: str = "sum",
    weights: Array | None = None,
    padding: int | None = None,
    include_last_offset: bool = False,
    contiguous: bool = True,
) -> Array:
    """What ``F.embedding_bag`` gives for a binary32 ``table`` of shape (rows, dim), as (bags, dim).

    ``contiguous=False`` gives the rules for a table that was not contiguous. IndexError gives the position of
    an index out of range.
    """
    table = np.ascontiguousarray(table, dtype=np.float32)
    indices = np.ascontiguousarray(indices, dtype=np.int64)
    limits = np.ascontiguousarray(bag_limits(offsets, len(indices), include_last_offset))
    bags = len(limits) - 1
    out = np.empty((bags, table.shape[1]), dtype=np.float32)
    if weights is not None:
        weights = np.ascontiguousarray(weights, dtype=np.float32)
    wrapped = -1 if padding is None else padding % len(table)
    values = _Bags(
        table.ctypes.data, *table.shape, indices.ctypes.data, len(indices), limits.ctypes.data, bags,
        None if weights is None else weights.ctypes.data, wrapped, MODES.index(mode),
        int(padding is not None or not contiguous), out.ctypes.data,
    )  # fmt: skip
    if wrong := _library().embedding_bag(ctypes.byref(values)):
        raise IndexError(f"index {indices[wrong - 1]} at position {wrong - 1} must be a row of {len(table)}")
    return out


def same_bits(a: Array, b: Array) -> bool:
    """Whether two binary32 arrays agree in every bit, but for the payload and sign of NaNs."""
    a, b = np.asarray(a, dtype=np.float32), np.asarray(b, dtype=np.float32)
    equal = (a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))
    return a.shape == b.shape and bool(equal.all())
