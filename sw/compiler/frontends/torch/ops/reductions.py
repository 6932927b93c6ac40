"""Sums, means and maxima of rows by destination, as graph convolutions have them."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.requests.checks import ROW_TYPES
from daedal.compiler.frontends.requests.reductions import destination_request, heads_apart
from daedal.compiler.frontends.torch.changes import may_change
from daedal.compiler.frontends.torch.effects import writes_out
from daedal.compiler.frontends.torch.examples import example_of, is_any_rows, is_integers, is_rows
from daedal.compiler.frontends.torch.operators import Overload, arguments_of, calls
from daedal.compiler.frontends.torch.ops.lookups import is_first
from daedal.compiler.frontends.torch.ops.messages import Message, message_of
from daedal.compiler.frontends.torch.ops.operation import Line, Operation
from daedal.compiler.frontends.torch.ops.tensors import array_of, column_of, flat_rows, numbers_of, table_of
from daedal.errors import UnsupportedOperation
from daedal.runtime.operations import EXTREMES
from daedal.runtime.request import Array, Request

_aten = torch.ops.aten

_ZEROS = (_aten.zeros.default, _aten.new_zeros.default, _aten.zeros_like.default)

MODES = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min", "max": "max", "min": "min"}
"""PyTorch's names of reductions, and the modes of bags that do the same."""

KNOWN = " or ".join(f"torch.{dtype}" for dtype in ROW_TYPES)
"""Types of rows, for messages."""

SORTED = "destinations that are not in order are sorted on the host, stably"


@dataclass(frozen=True)
class Reduction(Operation):
    """A reduction of ``message`` by ``keys``, in this mode of bags."""

    remark = SORTED
    adds_rows = True
    can_share = True

    message: Message
    keys: object
    mode: str

    @property
    def absorbed(self) -> tuple[fx.Node, ...]:
        """What made the message."""
        return self.message.nodes

    @property
    def parts(self) -> tuple[object, object, object]:
        """Table, indices and weights of the message, which are sources."""
        return self.message.table, self.message.indices, self.message.weights


def arrays_of(indices: Tensor | None, weights: Tensor | None) -> tuple[Array | None, Array | None]:
    """Indices and weights of a message."""
    return None if indices is None else array_of(indices), None if weights is None else numbers_of(weights)


@dataclass(frozen=True)
class ByDestination(Reduction):
    """A reduction onto ``base``: zeros, of the result's shape.

    ``keys`` are the destination of each row, as 1-D, 2-D, or (``is_column``) one column. ``in_place``: the result lies
    in memory as the base does. ``options`` are those of PyTorch's method.
    """

    plain: ClassVar[Overload]
    changing: ClassVar[Overload]
    """The operator that gives a new tensor, and the one that changes ``base``."""
    rows: ClassVar[str]
    """What PyTorch calls the rows."""
    rounds_sums_to: ClassVar[frozenset[torch.dtype]] = frozenset()
    """Types of destinations with which sums of 16-bit elements are rounded behind each addition."""

    base: object
    is_column: bool
    in_place: bool
    options: Mapping[str, Any]

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        if writes_out(node):
            return None
        values = cls._arguments(node)
        in_place = calls(node, cls.changing)
        base, rows, mode = values.get("input"), values.get(cls.rows), MODES.get(values.get("reduce", "sum"))
        reason = cls._reason(values, mode) or _reason(node, base, values, rows, in_place=in_place)
        if reason is not None or mode is None or not isinstance(rows, fx.Node):
            return reason
        message = message_of(node, rows, found, has_weights=mode not in EXTREMES)
        column = _column(values["index"], rows)
        options = {name: values[name] for name in values.keys() & {"reduce", "include_self"}}
        return cls(
            node.name,
            message.table,
            message,
            values["index"] if column is None else column,
            mode,
            base,
            column is not None,
            in_place,
            options,
        )

    @classmethod
    def _arguments(cls, node: fx.Node) -> dict[str, Any]:
        """The arguments of a call: ``input``, ``dim``, ``index``, the rows and options."""
        return arguments_of(node, cls.plain)

    @classmethod
    def _reason(cls, values: Mapping[str, Any], mode: str | None) -> str | None:
        """Why PyTorch does it with these arguments."""
        return None

    @property
    def sources(self) -> tuple[object, ...]:
        """Base, table, indices, weights and keys."""
        return self.base, *self.parts, self.keys

    def request(
        self, base: Tensor, table: Tensor, indices: Tensor | None, weights: Tensor | None, keys: Tensor
    ) -> Request:
        """See ``destination_request``."""
        inner, rows_of_table = table.shape[1:], table
        table = table_of(self.name, flat_rows(self.name, table), ROW_TYPES)
        if self.is_column:
            keys = keys.reshape(len(keys))
        elif keys.dim() > 1:
            keys = column_of(self.name, keys, table.shape[1])
        count = len(table) if indices is None else len(indices)
        if base.shape[1:] != inner or len(keys) != count:
            raise UnsupportedOperation(f"{self.name}: there must be a destination for each row, and columns as in rows")
        if not base.is_contiguous():
            raise UnsupportedOperation(f"{self.name}: what rows are added to must be contiguous, as the result is")
        if self.mode in EXTREMES:
            check_extreme(self.name, self.mode, table)
            check_zeros(self.name, self.mode, table)
        rows, factors = arrays_of(indices, weights)
        wraps, places, count = self.message.wraps, array_of(keys), len(base)
        if factors is not None and factors.size != len(factors):
            heads = math.prod(inner[:-1])
            table = rows_of_table.reshape(-1, inner[-1])
            parts = heads_apart(self.name, len(base), len(rows_of_table), heads, rows, places, wraps=wraps)
            (rows, places), count, wraps = parts, count * heads, False
            factors = factors.reshape(-1)
        request = destination_request(
            self.name, table, rows, factors, places, count, self.mode,
            wraps=wraps, rounds_sums=keys.dtype in self.rounds_sums_to,
        )  # fmt: skip
        return request if len(inner) == 1 else replace(request, shape=tuple(base.shape))

    def in_torch(
        self, base: Tensor, table: Tensor, indices: Tensor | None, weights: Tensor | None, keys: Tensor
    ) -> Tensor:
        """The result of the operation itself, on the message."""
        rows = self.message.in_torch(table, indices, weights)
        if self.is_column:
            keys = keys.expand(rows.shape)
        return self.reduce(base, rows, keys)

    @abstractmethod
    def reduce(self, base: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """What PyTorch does."""


@dataclass(frozen=True)
class IndexAdd(ByDestination):
    """``zeros.index_add(0, index, rows)``."""

    plain, changing = targets = _aten.index_add.default, _aten.index_add_.default
    line = Line("`index_add`, in place or not", "a bag for each destination", "onto fresh zeros; `alpha=1`")
    rows = "source"
    rounds_sums_to = frozenset({torch.int32})  # PyTorch has another loop for them; of int64 it makes a scatter_add

    def reduce(self, base: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """What PyTorch does."""
        return base.index_add_(0, keys, rows) if self.in_place else base.index_add(0, keys, rows)


@dataclass(frozen=True)
class ScatterAdd(ByDestination):
    """``zeros.scatter_add(0, index, rows)``."""

    plain, changing = targets = _aten.scatter_add.default, _aten.scatter_add_.default
    line = Line("`scatter_add`, in place or not", "a bag for each destination", "onto fresh zeros")
    rows = "src"

    def reduce(self, base: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """What PyTorch does."""
        return base.scatter_add_(0, keys, rows) if self.in_place else base.scatter_add(0, keys, rows)


@dataclass(frozen=True)
class ScatterReduce(ByDestination):
    """``zeros.scatter_reduce(0, index, rows, reduce)``."""

    plain, changing = targets = _aten.scatter_reduce.two, _aten.scatter_reduce_.two
    line = Line(
        "`scatter_reduce` (`sum`, `mean`, `amax`, `amin`), in place or not",
        "a bag for each destination",
        "onto fresh zeros; `include_self=False` for all but sum",
    )
    rows = "src"

    @classmethod
    def _reason(cls, values: Mapping[str, Any], mode: str | None) -> str | None:
        if mode is None:
            return why_no_mode(values["reduce"], ("sum", "mean", "amax", "amin"))
        if mode != "sum" and values["include_self"]:
            return f"include_self must be False for reduce {values['reduce']!r}"
        return None

    def reduce(self, base: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """What PyTorch does."""
        do = base.scatter_reduce_ if self.in_place else base.scatter_reduce
        return do(0, keys, rows, **self.options)


@dataclass(frozen=True)
class IndexPut(ByDestination):
    """``zeros.index_put((index,), rows, accumulate=True)``."""

    plain, changing = targets = _aten.index_put.default, _aten.index_put_.default
    line = Line(
        "`index_put` with `accumulate=True`, in place or not",
        "a bag for each destination",
        "onto fresh zeros; one 1-D index, and a row for each of its elements",
    )
    rows = "values"
    rounds_sums_to = frozenset({torch.int32, torch.int64})

    @classmethod
    def _arguments(cls, node: fx.Node) -> dict[str, Any]:
        values = arguments_of(node, cls.plain)
        indices = values.get("indices")
        is_one = isinstance(indices, list | tuple) and len(indices) == 1
        return values | {"dim": 0, "index": next(iter(indices)) if is_one and indices else None}

    @classmethod
    def _reason(cls, values: Mapping[str, Any], mode: str | None) -> str | None:
        if values.get("accumulate") is not True:
            return "accumulate must be True: else which of several rows is kept is not said"
        rows, index = values["values"], values["index"]
        if not is_integers(index, 1) or not is_rows(rows):
            return f"it must have one 1-D index, and rows of {KNOWN}"
        return None

    def request(
        self, base: Tensor, table: Tensor, indices: Tensor | None, weights: Tensor | None, keys: Tensor
    ) -> Request:
        """See ``destination_request``; of destinations negative ones count from the end."""
        return super().request(base, table, indices, weights, from_end(keys, len(base)))

    def reduce(self, base: Tensor, rows: Tensor, keys: Tensor) -> Tensor:
        """What PyTorch does."""
        do = base.index_put_ if self.in_place else base.index_put
        return do((keys,), rows, accumulate=True)


def from_end(keys: Tensor, rows: int) -> Tensor:
    """Destinations of which negative ones count from the end; those out of range stay so."""
    return torch.where((keys < 0) & (keys >= -rows), keys + rows, keys)


def _reason(node: fx.Node, base: Any, values: Mapping[str, Any], rows: Any, *, in_place: bool) -> str | None:
    """Why a reduction onto ``base`` stays in PyTorch."""
    if not is_first(base, values.get("dim")) or not is_any_rows(base) or not is_any_rows(rows):
        return f"it must be of rows of {KNOWN} along dim 0"
    if not is_integers(values.get("index")):
        return "the index must be of torch.int32 or torch.int64"
    if not example_of(values["index"]).dim():
        return "the index must have 1 or 2 dimensions, not 0"
    if example_of(base).dim() != example_of(rows).dim():
        return "what it is added to must have the dimensions of the rows"
    if values.get("alpha", 1) != 1:
        return f"alpha must be 1, not {values['alpha']!r}"
    if not calls(base, *_ZEROS) or writes_out(base):
        return "it must start from zeros made for it, by torch.zeros, zeros_like or new_zeros"
    if may_change([base], base, node):
        return "what it starts from is changed in place elsewhere"
    if in_place and set(base.users) != {node}:
        return "what it changes in place is used elsewhere"
    return None


def _column(index: fx.Node, rows: Any) -> fx.Node | None:
    """The one column that an index was expanded from to the width of ``rows``."""
    source = index.args[0] if calls(index, _aten.expand.default, _aten.expand_as.default) else None
    if not isinstance(source, fx.Node) or not is_integers(source):
        return None
    column, wide = example_of(source), example_of(index)
    if column.dim() != wide.dim() or column.shape[0] != wide.shape[0]:
        return None
    is_column = all(size == 1 for size in column.shape[1:])
    return source if is_column and wide.shape[1:] == example_of(rows).shape[1:] else None


def why_no_mode(given: object, modes: Sequence[str]) -> str:
    """Why a reduction of another kind than these stays in PyTorch."""
    return f"reduce must be {', '.join(modes[:-1])} or {modes[-1]}, not {given!r}"


def check_extreme(name: str, mode: str, table: Tensor) -> None:
    """Raise UnsupportedOperation for rows whose maximum or minimum PyTorch takes in another way than bags."""
    if bool(table.isnan().any()):
        raise UnsupportedOperation(f"{name}: rows must be free of NaN for a {mode}imum, which PyTorch hands on")


def check_zeros(name: str, mode: str, table: Tensor) -> None:
    """The same for reductions by destination."""
    signs = table.signbit()[table == 0]
    if bool(signs.any()) and not bool(signs.all()):
        raise UnsupportedOperation(
            f"{name}: rows must not have +0.0 and -0.0 for a {mode}imum: which of them PyTorch takes depends on the "
            "width"
        )
