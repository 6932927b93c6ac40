"""The fast path of a planned launch, for batches like the last one.

A plan looks at every operation by itself, which costs the host some 50 µs for each. The fast path asks of each only
whether it is as before, and does the rest on arrays of all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.launch.record import Record
from daedal.driver.memory.allocator import BUFFER_ALIGNMENT
from daedal.driver.memory.arena import Arena
from daedal.driver.memory.regions import Region
from daedal.driver.tables.table_store import Table
from daedal.hw.isa.words import INDEX_BITS
from daedal.runtime.batch.members import Array, EntryNumbers, Member, PoolingCall, Result, with_parts
from daedal.runtime.kernel import Kernel
from daedal.runtime.launch_arguments import Buffer
from daedal.runtime.request import LONGEST_BAG, Request, take_turns
from daedal.runtime.tensors import tensor_of

if TYPE_CHECKING:
    from torch import Tensor, fx

_OF_INTEGERS = attrgetter("dtype", "is_cpu", "ndim")
_OF_OFFSETS = attrgetter("dtype", "is_cpu", "shape")


class _Known:
    """What has to be as before: which tensors the tables are, and the kinds of the other inputs.

    One list of each kind of thing is compared, as that is quick. What is not looked at, such as the order of offsets,
    does not differ from one kind to another.
    """

    def __init__(self, members: Sequence[Sequence[Any]]) -> None:
        self._tables, indices, offsets, weights = zip(*members, strict=True)
        self._indices = [(each.dtype, True, 1) for each in indices]
        self._offsets = [each.dtype for each in offsets]
        self.weighted = [n for n, each in enumerate(weights) if each is not None]

    def are_same(self, sources: Sequence[Sequence[Any]], shape: Sequence[int]) -> bool:
        """Whether these sources, with offsets of this shape, are of the same kind."""
        from torch import Tensor

        tables, indices, offsets, weights = zip(*sources, strict=True)
        return (
            all(map(is_, tables, self._tables))
            and all(map(isinstance, indices, repeat(Tensor)))
            and all(map(isinstance, offsets, repeat(Tensor)))
            and list(map(_OF_INTEGERS, indices)) == self._indices
            and list(map(_OF_OFFSETS, offsets)) == [(dtype, True, shape) for dtype in self._offsets]
            and [n for n, each in enumerate(weights) if each is not None] == self.weighted
            and all(_are_weights(weights[n], indices[n]) for n in self.weighted)
        )


def _are_weights(weights: object, indices: "Tensor") -> bool:
    import torch

    return (
        isinstance(weights, torch.Tensor)
        and weights.dtype is torch.float32
        and weights.shape == indices.shape
        and weights.is_cpu
        and weights.is_contiguous()
        and weights.stride(0) == 1
        and not weights.is_neg()
    )


def can_be_fast(members: Sequence[Member]) -> bool:
    """Whether batches like this one can be made ready: 1-D indices and offsets, of one type and number each."""
    sources = [member.sources for member in members]
    return (
        len({(indices.dtype, offsets is not None and offsets.dtype) for _, indices, offsets, _ in sources}) == 1
        and all(offsets is not None for _, _, offsets, _ in sources)
        and len({(member.request.rows, member.call.include_last_offset) for member in members}) == 1
        and all(weights is None or _are_weights(weights, indices) for _, indices, _, weights in sources)
    )


class FastPath:
    """A launch of a batch that was planned, for other batches of the same operations.

    Parameters
    ----------
    members, results, entries, takes_turns
        The plan: its operations, the buffers that they write, its list, and whether bags come in turn.
    tables
        The resident tables of the operations.
    kernel, program
        What runs, and where it is in device memory.
    device
        Where the tables are.
    request_of
        Makes the request for an operation, to say what is wrong with it.
    """

    def __init__(
        self,
        members: Sequence[Member],
        results: Sequence[Result],
        entries: Sequence[EntryNumbers],
        tables: Sequence[Table | None],
        kernel: Kernel,
        program: int,
        device: Device,
        request_of: Callable[[PoolingCall, Sequence[Any]], Request],
        *,
        takes_turns: bool,
    ) -> None:
        self.kernel, self._device, self._request_of = kernel, device, request_of
        self._members, self._results, self._tables = members, results, tables
        self._known = _Known([member.sources for member in members])
        self._program = program
        self._closed = members[0].call.include_last_offset
        self._weighted = self._known.weighted
        self._order = [*self._weighted, *(n for n in range(len(members)) if n not in self._weighted)]
        self._numbers = np.array([[e.rows, e.table, e.place] for e in entries], np.int64).T.copy()
        self._apart = np.array([e.apart for e in entries], np.int64)
        self._result_of = np.array([e.result for e in entries])
        self._member_of = np.array([e.member for e in entries])
        self._one_entry_each = self._member_of.tolist() == list(range(len(members)))
        self.kernels = {member.call.name: kernel for member in members}
        self._bits = members[0].operation.index_bits
        self._takes_turns = takes_turns

    def members(self, sources: Sequence[Any]) -> list[Member]:
        """The operations with these sources, one by one."""
        return [
            Member(member.node, member.call, self._request_of(member.call, each), tuple(each))
            for member, each in zip(self._members, sources, strict=True)
        ]

    def start(self, sources: Sequence[Sequence[Any]]) -> "tuple[dict[fx.Node, Tensor], Launch] | None":
        """Submit a launch; the results, by node, whose content is there when it has ended well. None if these sources
        are of another kind, or something is wrong with them: the general way says what.
        """
        import torch

        first = sources[0][2]
        if not isinstance(first, torch.Tensor):
            return None
        count = first.numel()
        if not count or first.dim() != 1 or not self._known.are_same(sources, first.shape):
            return None
        lengths = [each[1].numel() for each in sources]
        starts = torch.stack([each[2] for each in sources]).numpy()
        total = sum(lengths)
        bags = count - 1 if self._closed else count
        if take_turns(total, bags * len(lengths)) != self._takes_turns:
            return None
        apart = bags + 1
        ends = starts[:, -1]
        if starts[:, 0].any() or (ends.tolist() != lengths if self._closed else (ends > np.array(lengths)).any()):
            return None
        if max(total, apart) >= LONGEST_BAG or apart * len(self._result_of) >= 1 << INDEX_BITS:
            return None
        with self._device.preparing():
            tables = self._device.find_tables(each[0] for each in sources)
            if not all(map(is_, tables, self._tables)):
                return None  # they are elsewhere now, or were dropped
            return self._submit(sources, self._offsets(starts, lengths, apart), bags)

    def with_parts(self, results: "Mapping[fx.Node, Tensor]", settle: Callable[[], None]) -> "dict[fx.Node, Tensor]":
        """The results by node, and copies, once they are there, of parts of concatenations that others use as well."""
        return with_parts(self._results, results, settle)

    def _offsets(self, starts: Array, lengths: Sequence[int], apart: int) -> Array:
        """Offsets of all entries of the list into the indices of all operations."""
        firsts, behind = [0] * len(lengths), 0
        for n in self._order:
            firsts[n] = behind
            behind += lengths[n]
        offsets = np.empty((len(lengths), apart), np.int64)
        offsets[:, : starts.shape[1]] = starts
        offsets[:, -1] = lengths
        offsets += np.array(firsts)[:, None]
        return offsets if self._one_entry_each else offsets[self._member_of]

    def _submit(
        self, sources: Sequence[Sequence[Any]], offsets: Array, bags: int
    ) -> "tuple[dict[fx.Node, Tensor], Launch]":
        import torch

        device, arena = self._device, self._device.arena()
        arrays = {result.node: np.empty((bags, result.width), result.element.dtype) for result in self._results}
        addresses: list[int] = []

        def ended(record: Record | None) -> None:
            try:
                for address, array in zip(addresses, arrays.values(), strict=True) if record is not None else ():
                    arena.fetch(address, array)
            finally:
                arena.release()

        addresses += arena.reserve_together([array.nbytes for array in arrays.values()])
        numbers = self._numbers.copy()
        numbers[2] += np.array(addresses)[self._result_of] - self._apart * (bags + 1)
        parts = {
            "list": numbers,
            "offsets": offsets.reshape(-1),
            f"indices{self._bits}": torch.cat([sources[n][1] for n in self._order]).numpy(),
        }
        if self._weighted:
            parts[f"weights{self._bits}"] = torch.cat([sources[n][3] for n in self._weighted]).detach().numpy()
        arguments = self.kernel.launch_arguments(_upload(arena, parts, device.config.superblock_bytes), {"bags": bags})
        writes = [Region(place, array.nbytes) for place, array in zip(addresses, arrays.values(), strict=True)]
        launch = device.submit(self._program, arguments, reads=[], writes=writes, ended=ended)
        return {node: tensor_of(array, array.shape, str(array.dtype)) for node, array in arrays.items()}, launch


def _upload(arena: Arena, parts: Mapping[str, Array], superblock: int) -> dict[str, Buffer]:
    """All of these arrays in one piece, which takes whole superblocks: those are written at once."""
    places, size = [], 0
    for array in parts.values():
        places.append(size)
        size += -(-array.nbytes // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
    whole = np.zeros(-(-size // superblock) * superblock, np.uint8)
    for place, array in zip(places, parts.values(), strict=True):
        whole[place : place + array.nbytes] = array.reshape(-1).view(np.uint8)
    address = arena.upload(whole)
    return {
        name: Buffer(address + place, array.shape, array.strides)
        for place, (name, array) in zip(places, parts.items(), strict=True)
    }
