"""Gathers as copies: rows of any type, which go through the machine as words, or halves of words.

No fewer bytes are stored than a half has, so the copy of a row of an odd number of bytes has padding behind it, as the
row has on the device; the host leaves that out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.driver.tables.table_sources import Source, array_of, is_tensor
from daedal.hw.isa.elements import Element
from daedal.runtime.request import Array, Request
from daedal.runtime.tensors import empty_like, result_of


def made_of(table: Source, element: Element) -> Array:
    """The rows of a table, in its own memory if they follow each other there and are whole elements of this length."""
    array = np.ascontiguousarray(array_of(table))
    rows, row_bytes = len(array), array.shape[1] * array.itemsize
    raw = array.reshape(-1).view(np.uint8).reshape(rows, row_bytes)
    behind = -row_bytes % element.bytes
    whole: Array = (np.pad(raw, ((0, 0), (0, behind))) if behind else raw).view(element.array)
    return whole


class CopiedRows:
    """The result of a gather.

    Parameters
    ----------
    request
        The gather, whose operation is a ``Lookup``.
    """

    def __init__(self, request: Request) -> None:
        self._shape, self._dtype, self._table = request.shape, request.dtype, request.table
        self.rows = request.rows, request.operation.width
        """Shape of what the machine writes, in elements of the operation."""
        stripped, written = empty_like(request.shape, request.dtype, request.table), self.rows[0] * self.rows[1]
        self._stripped = stripped if stripped.nbytes != written * request.operation.element.bytes else None

    @property
    def is_whole(self) -> bool:
        """Whether the machine writes nothing but the rows."""
        return self._stripped is None

    def filled(self, outputs: Mapping[str, NDArray[Any]]) -> None:
        """The launch has ended well."""
        if self._stripped is None or not self._stripped.size:
            return
        if is_tensor(self._stripped):
            import torch

            rows = torch.from_numpy(outputs["out"]).view(torch.uint8)
            target = self._stripped.view(torch.uint8).reshape(len(rows), -1)
            target.copy_(rows[:, : target.shape[1]])
        else:
            raw = outputs["out"].view(np.uint8)
            flat = self._stripped.reshape(len(raw), -1).view(np.uint8)
            flat[...] = raw[:, : flat.shape[1]]

    def result(self, out: Array) -> Any:
        """What has the rows when the launch has ended well; ``out`` is what the machine writes."""
        return result_of(out, self._shape, self._dtype, self._table) if self._stripped is None else self._stripped
