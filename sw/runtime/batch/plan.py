"""Several pooling operations in one launch: where everything is put, and the list that the machine walks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.launch.record import Record
from daedal.driver.memory.arena import Arena
from daedal.driver.memory.regions import Region
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.words import INDEX_BITS
from daedal.runtime.batch.fast_path import FastPath
from daedal.runtime.batch.finish import finish
from daedal.runtime.batch.known_inputs import can_be_fast
from daedal.runtime.batch.members import (
    Array,
    Entry,
    EntryNumbers,
    Join,
    Member,
    PoolingCall,
    Result,
    bind,
    entries_of,
    has_strands,
    is_of_model,
    results_of,
    with_parts,
)
from daedal.runtime.batch.same_sizes import Recorder, SameSizes
from daedal.runtime.batch.strands import Strand, entries_of_strands, places_of, strands_of
from daedal.runtime.copies import CopiedRows
from daedal.runtime.kernel import Kernel
from daedal.runtime.launch_arguments import Buffer
from daedal.runtime.operations import BagList, BlockKind, CopyKind, Kind
from daedal.runtime.request import LONGEST_BAG, Request, has_long_bags
from daedal.runtime.tensors import result_of

if TYPE_CHECKING:
    from torch import Tensor, fx


K = TypeVar("K", Kind, BlockKind, CopyKind)


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
        self.results = results_of(self.members, joins)
        strands = {member: strands_of(member) for member in self.members if has_strands(member)}
        self._ordered = list(strands)
        self.walked = tuple(each for member in self.members for each in strands.get(member, [member]))
        """What indices are of: the operations, or parts of what they do."""
        entries = [entry for result in self.results for entry in entries_of(result, config)]
        entries += [entry for result in self.results for entry in entries_of_strands(result, strands, config)]
        self._entries, groups = _sorted([(entry.kind, entry) for entry in entries if isinstance(entry.kind, Kind)])
        self._copies, copies = _sorted([(entry.kind, entry) for entry in entries if isinstance(entry.kind, CopyKind)])
        self._sums, sums = _sorted([(each.kind, each) for each in entries if isinstance(each.kind, BlockKind)])
        self.blocks = max((len(places_of(entry.member)) for entry in self._sums), default=0)
        self.operation = BagList(groups, copies, sums)
        requests = [member.request for member in self.members if not member.copies]
        self.bags = max((request.rows for request in requests), default=0)
        self.has_long_bags = has_long_bags(sum(each.lookups for each in requests), sum(each.rows for each in requests))
        """Whether bags come in turn, if they can."""

    @property
    def fits(self) -> bool:
        """Whether the numbers that the machine multiplies are small enough."""
        apart = self.bags + 1
        copied = sum(member.request.rows for member in self.members)
        walks = ((apart, self._entries), (self.blocks + 1, self._sums))
        are_short = all(each < LONGEST_BAG and each * len(entries) < 1 << INDEX_BITS for each, entries in walks)
        return copied < LONGEST_BAG and are_short

    def entries(self, device: Device) -> list[EntryNumbers]:
        """What the list says, as far as it does not depend on the number of bags; makes the tables resident."""
        tables = [bind(device, member.call, member.request.table, member.request.form) for member in self.members]
        found = []
        for position, entry in enumerate(self._entries):
            member = self.members.index(entry.member)
            size = entry.result.element.bytes
            found.append(
                EntryNumbers(
                    rows=tables[member].rows,
                    table=tables[member].address + entry.tile * entry.member.row_element.bytes,
                    place=(entry.column + entry.tile) * size,
                    apart=position * entry.result.width * size,
                    member=member,
                    result=self.results.index(entry.result),
                )
            )
        return found

    def bytes_of(self, result: Result) -> int:
        """Bytes that are written for a result: every operation has as many bags as the one that has most."""
        rows = max(0 if part.copies else self.bags for part in result.parts)
        return max(rows, result.shape[0]) * result.width * result.element.bytes

    def form_of(self, result: Result) -> tuple[tuple[int, ...], str]:
        """Shape and type of the tensor that a result is in."""
        return result.dimensions, result.parts[0].request.dtype

    def submit(self, device: Device, kernel: Kernel) -> tuple["dict[fx.Node, Tensor]", Launch]:
        """Submit a launch of ``kernel``; the results, by node, whose content is there when it has ended well."""
        program = device.load_program(kernel.program)
        arena = device.arena()  # an interrupt leaves it to the launch, or to nobody
        arrays = {result.node: np.empty(result.shape, result.element.array) for result in self.results}
        copied = {
            result.node: CopiedRows(result.parts[0].request)
            for result in self.results
            if result.join is None and result.parts[0].copies
        }

        def ended(record: Record | None) -> None:
            try:
                for node, array in arrays.items() if record is not None else ():
                    arena.fetch(placed.addresses[node], array)
                    if node in copied:
                        copied[node].filled({"out": array})
                for member, node, column in self._to_finish() if record is not None else ():
                    part = arrays[node][:, column : column + member.width]
                    if member in self._ordered:
                        finish(member, part)
                    else:
                        part[np.diff(member.offsets) == 0] = member.request.empty
            finally:
                arena.release()

        placed = _Placement(self, device, arena)
        buffers = placed.buffers(self._entries, self._copies, self._sums)
        arguments = kernel.launch_arguments(buffers, {"bags": self.bags, "blocks": self.blocks})
        writes = [Region(placed.addresses[result.node], self.bytes_of(result)) for result in self.results]
        # What it reads is its own, or tables that no launch writes.
        launch = device.submit(program, arguments, reads=[], writes=writes, ended=ended)
        forms = {each.node: (*self.form_of(each), each.parts[0].request.table) for each in self.results}
        return {
            node: copied[node].result(array) if node in copied else result_of(array, *forms[node])
            for node, array in arrays.items()
        }, launch

    def _to_finish(self) -> "Iterator[tuple[Member, fx.Node, int]]":
        """Operations of whose rows the host makes something, and where these are."""
        for result in self.results:
            for part, column in zip(result.parts, result.columns, strict=True):
                if part in self._ordered or part.request.empty:
                    yield part, result.node, column

    def fast_path(
        self, device: Device, kernel: Kernel, request_of: Callable[[PoolingCall, Sequence[Any]], Request]
    ) -> FastPath | None:
        """What runs ``kernel`` for other batches of the same operations with little ado, if that can be.

        ``request_of`` makes the request for an operation with these sources; it is asked when something is wrong.
        """
        if self._ordered or not can_be_fast(self.members):
            return None
        program = device.load_program(kernel.program)
        with device.preparing():
            entries = self.entries(device)
            tables = device.find_tables(member.request.table for member in self.members)
        return FastPath(
            self.members,
            self.results,
            entries,
            tables,
            kernel,
            program,
            device,
            request_of,
            has_long_bags=self.has_long_bags,
        )

    def same_sizes(
        self, device: Device, kernel: Kernel, request_of: Callable[[PoolingCall, Sequence[Any]], Request]
    ) -> SameSizes | None:
        """What runs ``kernel`` for other batches of these sizes with little ado, if that can be; as ``fast_path``."""
        sources = [member.request.table for member in self.members]
        are_own = all(is_of_model(member.call, member.request.table) for member in self.members)
        if self._ordered or not are_own or not SameSizes.can_be_of(self.members):
            return None
        recorder: Any = Recorder()
        with device.preparing():
            placement = _Placement(self, device, recorder)
            buffers = placement.buffers(self._entries, self._copies)
            watch = device.watch_tables(sources)
        if watch is None:
            return None
        forms = {result.node: self.form_of(result) for result in self.results}
        pooling = [entry.member for entry in self._entries]
        return SameSizes(
            self.members, self.results, forms, pooling, self.bags, device, kernel, watch, recorder, buffers,
            placement.firsts, request_of,
        )  # fmt: skip

    def with_parts(self, results: "Mapping[fx.Node, Tensor]", settle: Callable[[], None]) -> "dict[fx.Node, Tensor]":
        """The results by node, and copies, once they are there, of parts of concatenations that others use as well."""
        return with_parts(self.results, results, settle)


class _Placement:
    """Device memory for one run of a plan."""

    def __init__(self, plan: Plan, device: Device, arena: Arena) -> None:
        self._plan, self._arena = plan, arena
        tables = {member: member.bind(device) for member in plan.members}
        self._tables = {each: tables[each.whole if isinstance(each, Strand) else each] for each in plan.walked}
        places = arena.reserve_together([plan.bytes_of(result) for result in plan.results])
        self.addresses = dict(zip((result.node for result in plan.results), places, strict=True))
        self.firsts: dict[Member, int] = {}
        """Where the indices of each operation begin."""

    def buffers(
        self, entries: Sequence[Entry], copies: Sequence[Entry], sums: Sequence[Entry] = ()
    ) -> Mapping[str, Buffer]:
        """Everything that the kernel reads, by name."""
        buffers: dict[str, Buffer] = {}
        for bits in sorted({member.request.operation.index_bits for member in self._plan.walked}):
            members = [member for member in self._plan.walked if member.request.operation.index_bits == bits]
            members.sort(key=lambda member: not member.is_weighted)
            indices = [member.entries("indices") for member in members]
            ends = np.cumsum([len(part) for part in indices])
            self.firsts |= {m: int(end) - len(part) for m, part, end in zip(members, indices, ends, strict=True)}
            buffers[f"indices{bits}"] = self._upload(np.concatenate(indices))
            weights = [member.entries("weights") for member in members if member.is_weighted]
            buffers[f"weights{bits}"] = self._upload(np.concatenate([*weights, np.zeros(0, np.float32)]))
        if entries:
            buffers["offsets"] = self._upload(np.concatenate([self._offsets(entry.member) for entry in entries]))
            buffers["list"] = self._upload(np.array([self._numbers(*pair) for pair in enumerate(entries)], np.int64).T)
        if sums:
            buffers |= self._blocks(sums)
        if copies:
            buffers["copies"] = self._upload(np.array([self._copied(entry) for entry in copies], np.int64).T)
            ranges = [(self.firsts[m], self.firsts[m] + m.request.rows) for m in (entry.member for entry in copies)]
            buffers["ends"] = self._upload(np.array(ranges, np.int64).reshape(-1))
        return buffers

    def _blocks(self, sums: Sequence[Entry]) -> Mapping[str, Buffer]:
        """What the list of those says that add up sums of blocks; empty blocks follow if others have more."""
        ends, places = [], []
        for entry in sums:
            more = self._plan.blocks - len(places_of(entry.member))
            ends.append(np.pad(entry.member.offsets + self.firsts[entry.member], (0, more), mode="edge"))
            places.append(np.pad(places_of(entry.member), (0, more + 1)))
        numbers = np.array([self._summed(entry) for entry in sums], np.int64)
        named = {"sums": numbers.T, "block_ends": np.concatenate(ends), "places": np.concatenate(places)}
        return {name: self._upload(np.ascontiguousarray(array)) for name, array in named.items()}

    def _summed(self, entry: Entry) -> tuple[int, int, int]:
        """What that list says of an entry; its rows are numbered from 1 on."""
        size = entry.result.element.bytes
        table, tile = self._tables[entry.member], entry.tile * size
        place = self.addresses[entry.result.node] + (entry.column - entry.result.width) * size
        return table.rows, table.address + tile, place + tile

    def _copied(self, entry: Entry) -> tuple[int, int, int]:
        """What the list says of an entry whose rows are copied."""
        first, table, size = self.firsts[entry.member], self._tables[entry.member], entry.result.element.bytes
        place = self.addresses[entry.result.node] + (entry.column - first * entry.result.width) * size
        return table.rows, table.address, place

    def _offsets(self, member: Member) -> Array:
        """Offsets into the indices of all tables; empty bags follow if other tables have more bags."""
        offsets = member.offsets + self.firsts[member]
        return np.pad(offsets, (0, self._plan.bags + 1 - len(offsets)), mode="edge")

    def _numbers(self, position: int, entry: Entry) -> tuple[int, int, int]:
        """What the list says of an entry."""
        size, table = entry.result.element.bytes, self._tables[entry.member]
        before = position * (self._plan.bags + 1) * entry.result.width
        place = self.addresses[entry.result.node] + (entry.column + entry.tile - before) * size
        return table.rows, table.address + entry.tile * entry.member.row_element.bytes, place

    def _upload(self, array: Array) -> Buffer:
        strides = tuple(int(np.prod(array.shape[n + 1 :])) * array.itemsize for n in range(array.ndim))
        return Buffer(self._arena.upload(array), array.shape, strides)


def _sorted(entries: Sequence[tuple[K, Entry]]) -> tuple[list[Entry], tuple[tuple[K, int], ...]]:
    """Entries, those of one kind behind each other, and how many there are of each kind."""
    kinds = list(dict.fromkeys(kind for kind, _ in entries))
    counts = tuple((kind, sum(each == kind for each, _ in entries)) for kind in kinds)
    return [entry for _, entry in sorted(entries, key=lambda pair: kinds.index(pair[0]))], counts


def check_fits(plan: Plan) -> None:
    """Raise UnsupportedOperation for too many bags for one launch."""
    if not plan.fits:
        raise UnsupportedOperation(
            f"{plan.bags} bags of {len(plan.members)} tables are too many for one launch of a list of tables"
        )
