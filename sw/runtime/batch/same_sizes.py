"""The quick way of a planned launch with gathers in it, for batches of the sizes that the last one had.

Where everything lies, the list and the ends of gathers follow from the sizes; what a batch brings is copied into its
place.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.base.handle import Handle
from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.tables.table_watch import Watch
from daedal.runtime.batch.members import Array, Member, PoolingCall, Result, members_with, with_parts
from daedal.runtime.batch.staging import Layout, Part, Placed, StagedProgram, Staging
from daedal.runtime.copies import CopiedRows
from daedal.runtime.kernel import Kernel
from daedal.runtime.launch_arguments import Buffer
from daedal.runtime.request import Request, exact_counts
from daedal.runtime.single_path import SinglePath
from daedal.runtime.staged_runs import MOST_STAGED
from daedal.runtime.tensors import tensor_of

if TYPE_CHECKING:
    from torch import Tensor, fx

_FORM = attrgetter("dtype", "shape", "is_cpu")

LISTS = ("list", "copies")
"""Buffers that have, in their last row, where results go."""


class Recorder:
    """Takes what a plan would put into device memory: results lie from 0 on, and arrays are kept."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self.layout = Layout([])

    def reserve_together(self, sizes: Sequence[int]) -> list[int]:
        """Places for results of so many bytes."""
        self.layout = Layout([Part((size,), np.dtype(np.uint8)) for size in sizes])
        return self.layout.places

    def upload(self, array: Array) -> int:
        """The number of an array."""
        self.arrays.append(array)
        return len(self.arrays) - 1


class SameSizes(Handle):
    """A launch like one that has been planned, whose operations are of tensors of the same forms and sizes.

    Parameters
    ----------
    members, results, forms
        The plan: its operations, of which :meth:`can_be_of` says whether it can be, the buffers that they write, and
        shape and type of the tensor that each of these is.
    bag_members, bags
        The operation of each entry of the list of those that pool, and how many bags each has.
    watch
        The tables of its operations, where the plan has them.
    recorder, buffers, firsts
        What the plan puts into device memory, by name, and where the indices of each operation begin.
    """

    def __init__(
        self,
        members: Sequence[Member],
        results: Sequence[Result],
        forms: "Mapping[fx.Node, tuple[tuple[int, ...], str]]",
        bag_members: Sequence[Member],
        bags: int,
        device: Device,
        kernel: Kernel,
        watch: Watch,
        recorder: Recorder,
        buffers: Mapping[str, Buffer],
        firsts: Mapping[Member, int],
        request_of: Callable[[PoolingCall, Sequence[Any]], Request],
    ) -> None:
        self._members, self._results, self._forms_of, self._bag_members = members, results, forms, bag_members
        self._bags, self._device, self._watch, self._request_of = bags, device, watch, request_of
        self.kernels = {member.call.name: kernel for member in members}
        arrays = {name: recorder.arrays[buffer.address] for name, buffer in buffers.items()}
        self._staging = Staging(device, {name: Part(array.shape, array.dtype) for name, array in arrays.items()})
        for name, array in arrays.items():
            self._staging.arrays[name][...] = array
        self._places = {name: arrays[name][2] for name in LISTS if name in arrays}
        given = [source for member in members for source in member.sources[1:]]
        self._present = [number for number, source in enumerate(given) if source is not None]
        self._forms = [_FORM(given[number]) for number in self._present]
        self._indices = [(self._part(member, "indices", firsts), member) for member in members]
        self._weights = [(self._part(each, "weights", firsts), each) for each in members if each.is_weighted]
        self._offsets = self._ends(firsts)
        program = device.load_program(kernel.program)

        def placed(address: int, results: int) -> Placed:
            for name, places in self._places.items():
                np.add(places, results, out=self._staging.arrays[name][2])
            arguments = kernel.launch_arguments(self._staging.buffers(address), {"bags": bags})
            return Placed(tuple(arguments), ())  # what it reads is its own, or tables that no launch writes

        self._program: StagedProgram | None = StagedProgram(device, program, self._staging, recorder.layout, placed)
        """None while a launch is made ready."""

    @staticmethod
    def can_be_of(members: Sequence[Member]) -> bool:
        """Whether what these operations are asked for follows from the sizes and forms of their sources, but for the
        ends of offsets, and the machine writes nothing but their rows.
        """
        size = sum(source.nbytes for member in members for source in member.request.buffers.values())
        return size <= MOST_STAGED and all(_is_plain(member) for member in members)

    def _part(self, member: Member, name: str, firsts: Mapping[Member, int]) -> Array:
        """Where the indices, or weights, of an operation go."""
        whole = self._staging.arrays[f"{name}{member.request.operation.index_bits}"]
        part: Array = whole[firsts[member] : firsts[member] + member.request.lookups]
        return part

    def _ends(self, firsts: Mapping[Member, int]) -> list[tuple[Array, int, Member]]:
        """Where the offsets of each entry go, if it has any, and what is added to them."""
        if "offsets" not in self._staging.arrays:
            return []
        parts = self._staging.arrays["offsets"].reshape(-1, self._bags + 1)
        entries = zip(parts, self._bag_members, strict=True)
        return [(part, firsts[member], member) for part, member in entries if "offsets" in member.request.buffers]

    def members(self, sources: Sequence[Any]) -> list[Member]:
        """The operations with these sources, one by one."""
        return members_with(self._members, sources, self._request_of)

    def start(
        self, sources: Sequence[Sequence[Any]], *, are_known: bool = False
    ) -> "tuple[dict[fx.Node, Tensor], Launch] | None":
        """Submit a launch; the results, by node, whose content is there when it has ended well. None if these sources
        are of other forms or sizes, or something is wrong with them: the general way says what.
        """
        given = [source for each in sources for source in each[1:]]
        tensors = [given[number] for number in self._present]
        if len(given) - given.count(None) != len(tensors) or not self._are_same(tensors):
            return None
        program, self._program = self._program, None
        if program is None or not self._watch.is_of([each[0] for each in sources]):
            return None
        if not self._take(dict(zip(self._members, sources, strict=True))):
            return None
        with self._device.preparing():
            if not self._device.are_current(self._watch):
                return None
            raw, launch = program.submit()
        self._program = program
        results = {}
        for result, piece in zip(self._results, raw, strict=True):
            array = piece[: prod(result.shape) * result.element.bytes].view(result.element.array)
            results[result.node] = tensor_of(array.reshape(result.shape), *self._forms_of[result.node])
        return results, launch

    def _are_same(self, tensors: Sequence[Any]) -> bool:
        """Whether these are contiguous tensors of the same forms and sizes."""
        import torch

        return (
            all(type(each) is torch.Tensor for each in tensors)
            and list(map(_FORM, tensors)) == self._forms
            and all(map(torch.Tensor.is_contiguous, tensors))
            and not any(map(torch.Tensor.is_neg, tensors))
        )

    def _take(self, sources: Mapping[Member, Sequence[Any]]) -> bool:
        """Copy what the launch reads; whether offsets begin and end as they must."""
        for part, first, member in self._offsets:
            offsets, count = sources[member][2].numpy(), member.request.lookups
            is_closed = member.call.include_last_offset
            if offsets[0] or (offsets[-1] != count if is_closed else offsets[-1] > count):
                return False
            np.add(offsets, first, out=part[: len(offsets)])
        for part, member in self._indices:
            part[...] = sources[member][1].numpy().reshape(-1)
        for part, member in self._weights:
            part[...] = sources[member][3].numpy().reshape(-1)
        return True

    def with_parts(self, results: "Mapping[fx.Node, Tensor]", settle: Callable[[], None]) -> "dict[fx.Node, Tensor]":
        """The results by node, and copies, once they are there, of parts of concatenations that others use as well."""
        return with_parts(self._results, results, settle)


def _is_plain(member: Member) -> bool:
    request, given = member.request, member.sources[1:]
    if not member.call.is_direct or not SinglePath.can_be_of(member.sources) or request.empty:
        return False
    if any(type(source).__name__ != "Tensor" for source in chain(given) if source is not None):
        return False
    if member.copies:
        return CopiedRows(request).is_whole
    if "offsets" in request.buffers and (
        given[1] is None or not len(given[1]) or member.offsets[-1] != request.lookups
    ):
        return False
    operation = member.operation
    return operation.mode != "mean" or request.lookups <= exact_counts(operation.element)
