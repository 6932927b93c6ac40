"""``torch.segment_reduce``: sums, means, maxima and minima of rows that follow each other."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.checks import ROW_TYPES
from daedal.compiler.frontends.requests.reductions import ends_of_lengths, ends_of_offsets, segment_request
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import is_integers, is_rows
from daedal.compiler.frontends.torch.operators import arguments_of
from daedal.compiler.frontends.torch.ops.lookups import ALONG_ROWS
from daedal.compiler.frontends.torch.ops.messages import message_of
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.frontends.torch.ops.reductions import (
    KNOWN,
    MODES,
    Reduction,
    arrays_of,
    check_extreme,
    why_no_mode,
)
from daedal.compiler.frontends.torch.ops.tensors import array_of, table_of
from daedal.runtime.operations import EXTREMES
from daedal.runtime.request import Request

_aten = torch.ops.aten

EMPTY = {"sum": 0.0, "mean": math.nan, "max": -math.inf, "min": math.inf}
"""What a segment without rows gives, if it is not said."""


@dataclass(frozen=True)
class SegmentReduce(Reduction):
    """A reduction by segments: ``keys`` are their lengths or (``has_offsets``) where they begin and the last one ends.
    ``reduce`` and ``initial`` are as PyTorch is given them.
    """

    targets = (_aten.segment_reduce.default,)
    line = Line(
        "`segment_reduce` (`sum`, `mean`, `max`, `min`)",
        "a bag for each segment",
        "`lengths`, or `offsets` from 0 on; `initial` none, or 0 for sum and mean",
    )

    has_offsets: bool
    reduce: str
    initial: float | None

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        if writes_out(node):
            return None
        values = arguments_of(node, _aten.segment_reduce.default)
        rows, initial, mode = values.get("data"), values.get("initial"), MODES.get(values["reduce"])
        kinds = [name for name in ("lengths", "offsets", "indices") if values.get(name) is not None]
        if mode is None:
            return why_no_mode(values["reduce"], ("sum", "mean", "max", "min"))
        keys = values[kinds[0]] if len(kinds) == 1 and kinds[0] != "indices" else None
        if not isinstance(rows, fx.Node) or not is_rows(rows) or not is_integers(keys, 1):
            return _REASON
        if values.get("axis") not in ALONG_ROWS:
            return _REASON
        if initial is not None and (mode in EXTREMES or initial != 0 or math.copysign(1, initial) < 0):
            return f"initial must be left out, or 0 for a sum or mean, not {initial!r}"
        message = message_of(node, rows, found, has_weights=mode not in EXTREMES)
        return cls(node.name, message.table, message, keys, mode, kinds == ["offsets"], values["reduce"], initial)

    @property
    def sources(self) -> tuple[object, ...]:
        """Table, indices, weights and keys."""
        return *self.parts, self.keys

    def request(self, table: Tensor, indices: Tensor | None, weights: Tensor | None, keys: Tensor) -> Request:
        """See ``segment_request``."""
        table = table_of(self.name, table, ROW_TYPES)
        count = len(table) if indices is None else len(indices)
        ends = ends_of_offsets if self.has_offsets else ends_of_lengths
        offsets = ends(self.name, array_of(keys), count)
        if self.mode in EXTREMES:
            check_extreme(self.name, self.mode, table)
        empty = EMPTY[self.mode] if self.initial is None else 0.0
        rows, factors = arrays_of(indices, weights)
        return segment_request(
            self.name, table, rows, factors, offsets, self.mode, empty=empty, wraps=self.message.wraps
        )

    def in_torch(self, table: Tensor, indices: Tensor | None, weights: Tensor | None, keys: Tensor) -> Tensor:
        """The result of the operation itself, on the message."""
        rows = self.message.in_torch(table, indices, weights)
        lengths, offsets = (None, keys) if self.has_offsets else (keys, None)
        return torch.segment_reduce(rows, self.reduce, lengths=lengths, offsets=offsets, initial=self.initial)


_REASON = f"it must be of rows of {KNOWN} with 1-D lengths or offsets, along axis 0"
