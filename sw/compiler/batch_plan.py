"""Several pooling operations in one launch: where everything is put, and the list that the machine walks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from daedal.compiler.backend.arguments import Buffer
from daedal.compiler.backend.interleave_bags import take_turns
from daedal.compiler.frontends.requests.bag_list import BagList, Kind
from daedal.compiler.frontends.requests.emb_builder import Bag
from daedal.compiler.frontends.torch.fusion import Join
from daedal.compiler.frontends.torch.match import BagCall, Call
from daedal.compiler.frontends.torch.requests import LONGEST_BAG, Request
from daedal.compiler.kernel import Kernel
from daedal.compiler.kernel_launch import tensor_of
from daedal.driver.arena import Arena
from daedal.driver.device import Device
from daedal.driver.launcher import Launch
from daedal.driver.layout import row_pitch
from daedal.driver.record import Record
from daedal.driver.regions import Region
from daedal.driver.tables import Table, Use
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.words import INDEX_BITS

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Member:
    """One operation of a group, with what a run gives to it."""

    node: fx.Node
    call: BagCall
    request: Request
    sources: tuple[Any, ...]

    @property
    def operation(self) -> Bag:
        """What is to be done."""
        assert isinstance(self.request.operation, Bag)
        return self.request.operation

    @property
    def offsets(self) -> Array:
        """Start of each bag and, last, the end of the last one, int64."""
        offsets = self.request.buffers.get("offsets")
        if offsets is None:
            return np.arange(self.request.rows + 1, dtype=np.int64) * self.request.values["length"]
        return offsets.numpy().astype(np.int64)

    def entries(self, name: str) -> Array:
        """Indices or weights, as far as bags use them."""
        count = int(self.offsets[-1]) if self.request.rows or "offsets" in self.request.buffers else 0
        values: Array = self.request.buffers[name].numpy()[:count]
        return values


@dataclass(frozen=True, eq=False)
class Result:
    """A buffer that is written: the results of ``parts``, side by side, for ``node``; with ``join`` if it is one."""

    node: fx.Node
    parts: tuple[Member, ...]
    join: Join | None = None

    @cached_property
    def width(self) -> int:
        """Columns."""
        return sum(part.operation.width for part in self.parts)

    @property
    def shape(self) -> tuple[int, int]:
        """Bags and columns."""
        return self.parts[0].request.rows, self.width

    @property
    def columns(self) -> list[int]:
        """First column of each part."""
        widths = [part.operation.width for part in self.parts]
        return [sum(widths[:n]) for n in range(len(widths))]


@dataclass(frozen=True, eq=False)
class _Entry:
    """An entry of the list: columns of a table, from ``tile`` on, and where their results go."""

    kind: Kind
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


class Plan:
    """What one launch does.

    Parameters
    ----------
    members
        The operations.
    joins
        Concatenations of their results.
    config
        The machine.
    """

    def __init__(self, members: Sequence[Member], joins: Sequence[Join], config: Config) -> None:
        self.members = tuple(members)
        self.results = _results(self.members, joins)
        entries = [entry for result in self.results for entry in _entries(result, config)]
        kinds = list(dict.fromkeys(entry.kind for entry in entries))
        self._entries = sorted(entries, key=lambda entry: kinds.index(entry.kind))
        counts = tuple(sum(entry.kind == kind for entry in entries) for kind in kinds)
        self.operation = BagList(tuple(zip(kinds, counts, strict=True)))
        self.bags = max(member.request.rows for member in self.members)
        requests = [member.request for member in self.members]
        self.takes_turns = take_turns(sum(each.lookups for each in requests), sum(each.rows for each in requests))
        """Whether bags come in turn, if they can."""

    @property
    def fits(self) -> bool:
        """Whether the numbers that the machine multiplies are small enough."""
        apart = self.bags + 1
        return apart < LONGEST_BAG and apart * len(self._entries) < 1 << INDEX_BITS

    def entries(self, device: Device) -> list[EntryNumbers]:
        """What the list says, as far as it does not depend on the number of bags; makes the tables resident."""
        tables = [bind(device, member.call, member.request.table) for member in self.members]
        found = []
        for position, entry in enumerate(self._entries):
            member = self.members.index(entry.member)
            tile = entry.tile * BINARY32.bytes
            found.append(
                EntryNumbers(
                    rows=tables[member].rows,
                    table=tables[member].address + tile,
                    place=entry.column * BINARY32.bytes + tile,
                    apart=position * entry.result.width * BINARY32.bytes,
                    member=member,
                    result=self.results.index(entry.result),
                )
            )
        return found

    def bytes_of(self, result: Result) -> int:
        """Bytes that are written for a result: every operation has as many bags as the one that has most."""
        return self.bags * result.width * BINARY32.bytes

    def submit(self, device: Device, kernel: Kernel) -> tuple[dict[fx.Node, Tensor], Launch]:
        """Submit a launch of ``kernel``; the results, by node, whose content is there when it has ended well."""
        program = device.load_program(kernel.program)
        arena = device.arena()  # an interrupt leaves it to the launch, or to nobody
        arrays = {result.node: np.empty(result.shape, np.float32) for result in self.results}

        def ended(record: Record | None) -> None:
            try:
                for node, array in arrays.items() if record is not None else ():
                    array[...] = arena.download(placed.addresses[node], array.shape, np.float32)
            finally:
                arena.release()

        placed = _Placement(self, device, arena)
        arguments = kernel.launch_arguments(placed.buffers(self._entries), {"bags": self.bags})
        writes = [Region(placed.addresses[result.node], self.bytes_of(result)) for result in self.results]
        # What it reads is its own, or tables that no launch writes.
        launch = device.submit(program, arguments, reads=[], writes=writes, ended=ended)
        return {node: tensor_of(array, array.shape) for node, array in arrays.items()}, launch


def _results(members: Sequence[Member], joins: Sequence[Join]) -> list[Result]:
    """The buffers that are written. A concatenation of different numbers of bags is left to PyTorch."""
    by_node = {member.node: member for member in members}
    results = [Result(join.node, tuple(by_node[part] for part in join.parts), join) for join in joins]
    results = [result for result in results if len({part.request.rows for part in result.parts}) == 1]
    joined = {part for result in results for part in result.parts}
    return results + [Result(member.node, (member,)) for member in members if member not in joined]


def _entries(result: Result, config: Config) -> list[_Entry]:
    """The entries for a result: one for each table, or one for each tile of a table with long rows."""
    found = []
    for member, column in zip(result.parts, result.columns, strict=True):
        operation = member.operation
        pitch = _elements(row_pitch(operation.width * BINARY32.bytes, config))
        for tile in range(0, operation.width, config.vl_max):
            kind = Kind(
                operation.mode,
                min(config.vl_max, operation.width - tile),
                pitch,
                result.width,
                operation.index_bits,
                operation.is_weighted,
                operation.is_fused,
                operation.padding,
            )
            found.append(_Entry(kind, member, result, column, tile))
    return found


def _elements(size: int) -> int:
    return size // BINARY32.bytes


class _Placement:
    """Device memory for one run of a plan."""

    def __init__(self, plan: Plan, device: Device, arena: Arena) -> None:
        self._plan, self._arena = plan, arena
        self._tables = {m: bind(device, m.call, m.request.table) for m in plan.members}
        places = arena.reserve_together([plan.bytes_of(result) for result in plan.results])
        self.addresses = dict(zip((result.node for result in plan.results), places, strict=True))
        self._firsts: dict[Member, int] = {}

    def buffers(self, entries: Sequence[_Entry]) -> Mapping[str, Buffer]:
        """Everything that the kernel reads, by name."""
        buffers: dict[str, Buffer] = {}
        for bits in sorted({member.operation.index_bits for member in self._plan.members}):
            members = [member for member in self._plan.members if member.operation.index_bits == bits]
            members.sort(key=lambda member: not member.operation.is_weighted)
            indices = [member.entries("indices") for member in members]
            ends = np.cumsum([len(part) for part in indices])
            self._firsts |= {m: int(end) - len(part) for m, part, end in zip(members, indices, ends, strict=True)}
            buffers[f"indices{bits}"] = self._upload(np.concatenate(indices))
            weights = [member.entries("weights") for member in members if member.operation.is_weighted]
            buffers[f"weights{bits}"] = self._upload(np.concatenate([*weights, np.zeros(0, np.float32)]))
        buffers["offsets"] = self._upload(np.concatenate([self._offsets(entry.member) for entry in entries]))
        buffers["list"] = self._upload(np.array([self._numbers(*pair) for pair in enumerate(entries)], np.int64).T)
        return buffers

    def _offsets(self, member: Member) -> Array:
        """Offsets into the indices of all tables; empty bags follow if other tables have more bags."""
        offsets = member.offsets + self._firsts[member]
        return np.pad(offsets, (0, self._plan.bags + 1 - len(offsets)), mode="edge")

    def _numbers(self, position: int, entry: _Entry) -> tuple[int, int, int]:
        """What the list says of an entry."""
        table, tile = self._tables[entry.member], entry.tile * BINARY32.bytes
        before = position * (self._plan.bags + 1) * entry.result.width
        place = self.addresses[entry.result.node] + (entry.column - before) * BINARY32.bytes
        return table.rows, table.address + tile, place + tile

    def _upload(self, array: Array) -> Buffer:
        strides = tuple(int(np.prod(array.shape[n + 1 :])) * array.itemsize for n in range(array.ndim))
        return Buffer(self._arena.upload(array), array.shape, strides)


def bind(device: Device, call: Call, table: Tensor) -> Table:
    """The resident table of an operation, under the name that it has in the graph."""
    node = call.table
    name = node.target if isinstance(node, fx.Node) else call.name
    is_own = isinstance(table, nn.Parameter) or (isinstance(node, fx.Node) and node.op == "get_attr")
    return device.bind_table(str(name), table, use=Use.PARAMETER if is_own else Use.INPUT)


def check_fits(plan: Plan) -> None:
    """Raise UnsupportedOperation for too many bags for one launch."""
    if not plan.fits:
        raise UnsupportedOperation(
            f"{plan.bags} bags of {len(plan.members)} tables are too many for one launch of a list of tables"
        )
