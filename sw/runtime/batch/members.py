"""The operations of a batch, the buffers that they write, and the list that the machine walks for them."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from daedal.driver.device import Device
from daedal.driver.memory.layout import row_pitch
from daedal.driver.tables.quantised import QuantisedRows
from daedal.driver.tables.table_sources import Source
from daedal.driver.tables.table_store import Table, Use
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32, LANE, Element
from daedal.runtime.operations import Bag, BlockKind, CopyKind, Kind, Lookup
from daedal.runtime.request import Request
from daedal.runtime.tensors import copy_of_columns, is_parameter

if TYPE_CHECKING:
    from torch import Tensor, fx

Array = NDArray[Any]


class Call(Protocol):
    """An operation of a model that is handed over to a device."""

    @property
    def name(self) -> str:
        """Its name in the model's graph."""
        ...

    @property
    def label(self) -> str:
        """What it is called in messages: its name, and that of its table in the model."""
        ...

    @property
    def table_name(self) -> str:
        """The name of its table in the model, by which the device has it."""
        ...

    @property
    def table(self) -> object:
        """What its table is: a node of the model's graph, with ``op`` and ``target``, or a constant."""
        ...

    @property
    def is_direct(self) -> bool:
        """Whether its sources are the table, indices and, if it takes them, offsets and weights, and the buffers of its
        requests are these as they are, offsets with an end.
        """
        ...

    def in_torch(self, *sources: Any) -> "Tensor":
        """What the framework makes of these values of its sources."""
        ...


class PoolingCall(Call, Protocol):
    """An operation that may be one of several in a launch.

    With ``is_pooling`` it is a pooling of bags whose sources are the table, indices, offsets and weights.
    """

    @property
    def is_pooling(self) -> bool:
        """Whether it is of that kind."""
        ...

    @property
    def include_last_offset(self) -> bool:
        """Whether offsets have the end of the last bag too."""
        ...


class Join(Protocol):
    """A concatenation, along a dimension, of nothing but results of one batch."""

    @property
    def node(self) -> "fx.Node":
        """What it is in the model's graph."""
        ...

    @property
    def dim(self) -> int:
        """The dimension."""
        ...

    @property
    def parts(self) -> "Sequence[fx.Node]":
        """The operations whose results it is of."""
        ...

    @property
    def private(self) -> "AbstractSet[fx.Node]":
        """Those parts that nothing else uses."""
        ...


@dataclass(frozen=True, eq=False)
class Member:
    """One operation of a group, with what a run gives to it."""

    node: "fx.Node"
    call: PoolingCall
    request: Request
    sources: tuple[Any, ...]

    @property
    def operation(self) -> Bag:
        """How its bags are pooled."""
        assert isinstance(self.request.operation, Bag)
        return self.request.operation

    @property
    def copies(self) -> bool:
        """Whether it copies rows, and pools none."""
        return isinstance(self.request.operation, Lookup)

    @property
    def is_weighted(self) -> bool:
        """Whether its rows are multiplied with weights."""
        return not self.copies and self.operation.is_weighted

    @property
    def element(self) -> Element:
        """What its result is made of, as the machine has it."""
        return self.row_element if self.copies or not self.operation.is_wide else BINARY32

    @property
    def row_element(self) -> Element:
        """What the rows of its table are made of."""
        return self.request.operation.element

    @property
    def row_words(self) -> int:
        """Elements of a row of its table: words, where these have a scale and a bias in front."""
        words = None if self.copies else self.operation.words
        return self.width if words is None else words

    @property
    def dtype_of_join(self) -> str:
        """What a concatenation of its result is of; nothing, if the machine writes none for it."""
        shape, dtype = self.request.shape, self.request.dtype
        if self.copies:
            return dtype if dtype == LANE.dtype and len(shape) > 1 and shape[-1] == self.width else ""
        return dtype if len(shape) == 2 else ""

    @property
    def width(self) -> int:
        """Elements of a row, as the machine has them."""
        return self.request.operation.width

    def bind(self, device: Device) -> Table:
        """The table, resident, as the machine reads it."""
        table = bind(device, self.call, self.request.table, self.request.form)
        return table.made_of(self.element) if self.copies else table

    @property
    def offsets(self) -> Array:
        """Start of each bag and, last, the end of the last one, int64."""
        offsets = self.request.buffers.get("offsets")
        if self.copies:
            return np.array([0, self.request.rows])
        if offsets is None:
            return np.arange(self.request.rows + 1, dtype=np.int64) * self.request.values["length"]
        return offsets.astype(np.int64)

    def entries(self, name: str) -> Array:
        """Indices or weights, as far as bags use them."""
        count = int(self.offsets[-1]) if self.request.rows or "offsets" in self.request.buffers else 0
        values: Array = self.request.buffers[name][:count]
        return values


@dataclass(frozen=True, eq=False)
class Result:
    """A buffer that is written: the results of ``parts``, side by side, for ``node``; with ``join`` if it is one."""

    node: "fx.Node"
    parts: tuple[Member, ...]
    join: Join | None = None

    @cached_property
    def width(self) -> int:
        """Columns."""
        return sum(part.width for part in self.parts)

    @property
    def shape(self) -> tuple[int, int]:
        """Bags and columns."""
        return self.parts[0].request.rows, self.width

    @cached_property
    def element(self) -> Element:
        """What its rows are made of, as those of its tables."""
        return self.parts[0].element

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The shape of the tensor that it is in."""
        shape = self.parts[0].request.shape
        return shape if self.join is None else (*shape[:-1], self.width)

    @property
    def is_by_columns(self) -> bool:
        """Whether its parts are put together along the last dimension."""
        last = len(self.parts[0].request.shape) - 1
        return self.join is None or self.join.dim in (-1, last)

    @property
    def columns(self) -> list[int]:
        """First column of each part."""
        widths = [part.width for part in self.parts]
        return [sum(widths[:n]) for n in range(len(widths))]


@dataclass(frozen=True, eq=False)
class Entry:
    """An entry of a list: columns of a table, from ``tile`` on, and where their results go."""

    kind: Kind | BlockKind | CopyKind
    member: Member
    result: Result
    column: int
    tile: int


@dataclass(frozen=True)
class EntryNumbers:
    """What stays of an entry of the list from one launch to the next, addresses and distances in bytes.

    ``rows`` and ``table`` are the table's, ``member`` and ``result`` tell which operation and which buffer it is for.
    The address of its result is that of the buffer, plus ``place``, minus ``apart`` for each row that an entry takes.
    """

    rows: int
    table: int
    place: int
    apart: int
    member: int
    result: int


def can_share(member: Member) -> bool:
    """Whether an operation can be one of several in a launch, as this run asks for it."""
    operation = member.request.operation
    is_filled = bool(member.request.empty)  # by the host, in results of f32
    return not (isinstance(operation, Bag) and is_filled and operation.element != LANE)


def has_strands(member: Member) -> bool:
    """Whether it walks parts of its entries if it is one of several."""
    return not member.copies and member.operation.has_strands


def is_in_list(member: Member) -> bool:
    """Whether an operation is only done as one of a list, if it is the only one."""
    return not member.copies and member.operation.in_list


def kind_of(member: Member) -> tuple[bool, str, bool, int]:
    """What operations have in common that one nest of loops does, roughly: launches of such have short programs."""
    operation = member.request.operation
    order = operation.order if isinstance(operation, Bag) else ""
    return member.copies, order, member.is_weighted, operation.width


def results_of(members: Sequence[Member], joins: Sequence[Join]) -> list[Result]:
    """The buffers that are written. A concatenation of different numbers of bags, or elements, is left to PyTorch, as
    is one along another dimension than the last, which has the columns.
    """
    by_node = {member.node: member for member in members}
    results = [Result(join.node, tuple(by_node[part] for part in join.parts), join) for join in joins]
    results = [
        result
        for result in results
        if len({(part.request.shape[:-1], part.dtype_of_join) for part in result.parts}) == 1
        and result.parts[0].dtype_of_join
        and result.is_by_columns
    ]
    joined = {part for result in results for part in result.parts}
    return results + [Result(member.node, (member,)) for member in members if member not in joined]


def entries_of(result: Result, config: Config) -> list[Entry]:
    """The entries for a result: one for each table, or one for each tile of a table with long rows; none for operations
    in an order of their own (see ``strands.py``).
    """
    found = []
    for member, column in zip(result.parts, result.columns, strict=True):
        size = member.row_element.bytes
        pitch = row_pitch(member.row_words * size, config) // size
        if member.copies:
            lookup = member.request.operation
            assert isinstance(lookup, Lookup)
            copied = CopyKind(member.width, pitch, result.width, lookup.index_bits, member.element)
            found.append(Entry(copied, member, result, column, 0))
            continue
        operation = member.operation
        if operation.has_strands:
            continue
        columns = config.vl_max if operation.bits is None else operation.width  # no part of integers is a row
        for tile in range(0, operation.width, columns):
            kind = Kind(
                operation.mode,
                min(columns, operation.width - tile),
                pitch,
                result.width,
                operation.index_bits,
                operation.is_weighted,
                operation.is_fused,
                operation.padding,
                operation.element,
                operation.is_away,
                operation.rounds,
                is_wide=operation.is_wide,
                bits=operation.bits,
            )
            found.append(Entry(kind, member, result, column, tile))
    return found


def bind(device: Device, call: Call, table: Source, form: QuantisedRows | None = None) -> Table:
    """The resident table of an operation, under the name that it has in the model; in this form, if it has one."""
    use = Use.PARAMETER if is_of_model(call, table) else Use.INPUT
    return device.bind_table(call.table_name, table, use=use, form=form)


def is_of_model(call: Call, table: Source) -> bool:
    """Whether the table of an operation is the model's own, not an input of a run."""
    return is_parameter(table) or getattr(call.table, "op", None) == "get_attr"


def members_with(
    members: Sequence[Member],
    sources: Sequence[Sequence[Any]],
    request_of: Callable[[PoolingCall, Sequence[Any]], Request],
) -> list[Member]:
    """The operations with these sources, one by one."""
    return [
        Member(member.node, member.call, request_of(member.call, each), tuple(each))
        for member, each in zip(members, sources, strict=True)
    ]


def with_parts(
    buffers: Sequence[Result], results: "Mapping[fx.Node, Tensor]", settle: Callable[[], None]
) -> "dict[fx.Node, Tensor]":
    """The results by node, and copies, once they are there, of parts of concatenations that others use as well."""
    values = dict(results)
    for buffer in buffers:
        join = buffer.join
        if join is not None and len(join.private) < len(buffer.parts):
            settle()
            for part, column in zip(buffer.parts, buffer.columns, strict=True):
                if part.node not in join.private:
                    values[part.node] = copy_of_columns(results[buffer.node], column, part.width)
    return values
