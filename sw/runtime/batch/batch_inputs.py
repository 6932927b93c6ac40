"""The arrays that a launch of a batch reads; what stays from one to the next of the same sizes is in them already."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from daedal.driver.device import Device
from daedal.driver.tables.table_sources import array_type
from daedal.runtime.batch.members import EntryNumbers, Result
from daedal.runtime.batch.staging import Layout, Part, Placed, StagedProgram, Staging
from daedal.runtime.kernel import Kernel

if TYPE_CHECKING:
    from torch import Tensor

_INT64 = np.dtype(np.int64)


class BatchSizes(NamedTuple):
    """Sizes of a batch: offsets that each operation is given, bags, indices of all together, and weights, None if no
    operation has any.
    """

    offsets: int
    bags: int
    indices: int
    weights: int | None


class BatchInputs:
    """Arrays for batches of these sizes.

    Parameters
    ----------
    entries, results
        The list that the machine walks, and the buffers that it writes.
    members
        How many operations there are.
    index_bits, offset_bits
        Of the integers that the host is given; the machine gets offsets of 64 bits.
    """

    def __init__(
        self,
        device: Device,
        sizes: BatchSizes,
        entries: Sequence[EntryNumbers],
        results: Sequence[Result],
        members: int,
        index_bits: int,
        offset_bits: int,
    ) -> None:
        import torch

        self.sizes = sizes
        self._lengths: list[int] = []
        member_of = [entry.member for entry in entries]
        self._member_of = None if member_of == list(range(members)) else np.array(member_of)
        """The operation of each entry, unless each has one."""
        apart = sizes.bags + 1
        parts = {
            "list": Part((3, len(entries)), _INT64),
            "offsets": Part((len(entries), apart), _INT64),
            f"indices{index_bits}": Part((sizes.indices,), np.dtype(f"int{index_bits}")),
        }
        if sizes.weights is not None:
            parts[f"weights{index_bits}"] = Part((sizes.weights,), np.dtype(np.float32))
        self.staging = Staging(device, parts)
        self.results = Layout([Part((sizes.bags, each.width), array_type(each.element.dtype)) for each in results])
        """Where what the launch writes lies."""
        self._list, self._offsets, *values = self.staging.arrays.values()
        self._list[0], self._list[1] = [entry.rows for entry in entries], [entry.table for entry in entries]
        places = self.results.places
        self._places = np.array([places[each.result] + each.place - each.apart * apart for each in entries])
        self._given = np.empty((members, sizes.offsets), np.dtype(f"int{offset_bits}"))
        with torch.inference_mode(mode=False):  # what is made in that mode cannot be written outside of it
            self._given_tensor = torch.from_numpy(self._given.reshape(-1))
            self._tensors = [torch.from_numpy(array) for array in values]

    def take_lengths(self, lengths: list[int], order: Sequence[int]) -> None:
        """Indices of each operation; they come behind each other in this order."""
        if lengths == self._lengths:
            return
        self._lengths = []
        firsts, behind = [0] * len(lengths), 0
        for n in order:
            firsts[n] = behind
            behind += lengths[n]
        self._ends = np.array(lengths)
        first, end = np.array(firsts)[:, None], (np.array(firsts) + self._ends)[:, None]
        if self._member_of is not None:
            first, end = first[self._member_of], end[self._member_of]
        self._firsts = first
        self._offsets[:, self.sizes.offsets :] = end
        self._lengths = lengths

    def take_offsets(self, offsets: Sequence["Tensor"], *, is_closed: bool) -> bool:
        """Offsets of each operation; whether they begin and end as they must, and can be launched with.

        ``is_closed``: the end of the last bag is among them.
        """
        import torch

        given = self._given
        torch.cat(list(offsets), out=self._given_tensor)
        last = given[:, -1]
        if np.count_nonzero(given[:, 0]) or np.count_nonzero(last != self._ends if is_closed else last > self._ends):
            return False
        starts = given if self._member_of is None else given[self._member_of]
        np.add(starts, self._firsts, out=self._offsets[:, : self.sizes.offsets])
        return True

    def longest(self) -> int:
        """Indices of the longest bag."""
        return int(np.diff(self._offsets).max())

    def take_values(self, indices: list["Tensor"], weights: list["Tensor"]) -> None:
        """Indices and weights, in the order in which they lie behind each other."""
        import torch

        torch.cat(indices, out=self._tensors[0])
        if len(self._tensors) > 1:
            torch.cat(weights, out=self._tensors[1])

    def place(self, results: int) -> None:
        """What the launch writes begins at this address."""
        np.add(self._places, results, out=self._list[2])

    def program(self, device: Device, kernel: Kernel, program: int) -> StagedProgram:
        """The kernel, whose program is at this address, with these arrays."""

        def placed(address: int, results: int) -> Placed:
            self.place(results)
            arguments = kernel.launch_arguments(self.staging.buffers(address), {"bags": self.sizes.bags})
            return Placed(tuple(arguments), ())  # what it reads is its own, or tables that no launch writes

        return StagedProgram(device, program, self.staging, self.results, placed)
