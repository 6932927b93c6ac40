"""The fast path of a planned launch, for batches like the last one.

A plan looks at every operation by itself, which costs the host some 50 µs for each. The fast path asks of each only
whether it is as before, and does the rest on arrays of all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.tables.table_store import Table
from daedal.driver.tables.table_watch import Watch
from daedal.hw.isa.words import INDEX_BITS
from daedal.runtime.batch.batch_inputs import BatchInputs, BatchSizes
from daedal.runtime.batch.known_inputs import KnownInputs
from daedal.runtime.batch.members import EntryNumbers, Member, PoolingCall, Result, members_with, with_parts
from daedal.runtime.batch.staging import StagedProgram
from daedal.runtime.kernel import Kernel
from daedal.runtime.request import LONGEST_BAG, Request, exact_counts, has_long_bags
from daedal.runtime.tensors import tensor_of

if TYPE_CHECKING:
    from torch import Tensor, fx


class FastPath:
    """A launch of a batch that was planned, for other batches of the same operations.

    Parameters
    ----------
    members, results, entries, has_long_bags
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
        has_long_bags: bool,
    ) -> None:
        self.kernel, self._device, self._request_of = kernel, device, request_of
        self._members, self._results, self._tables = members, results, tables
        self._known = KnownInputs([member.sources for member in members])
        self._program = program
        self._closed = members[0].call.include_last_offset
        self._weighted = self._known.weighted
        self._order = [*self._weighted, *(n for n in range(len(members)) if n not in self._weighted)]
        self._entries = entries
        self.kernels = {member.call.name: kernel for member in members}
        self._bits = members[0].operation.index_bits
        self._has_long_bags = has_long_bags
        means = [member.operation.element for member in members if member.operation.mode == "mean"]
        self._most = min((exact_counts(element) for element in means), default=LONGEST_BAG)
        """Rows of a bag of which the general way knows what to do."""
        self._watch: Watch | None = None
        self._inputs: tuple[BatchInputs, StagedProgram] | None = None
        """As the last launch needed them; None while one is made ready."""

    def members(self, sources: Sequence[Any]) -> list[Member]:
        """The operations with these sources, one by one."""
        return members_with(self._members, sources, self._request_of)

    def start(
        self, sources: Sequence[Sequence[Any]], *, are_known: bool = False
    ) -> "tuple[dict[fx.Node, Tensor], Launch] | None":
        """Submit a launch; the results, by node, whose content is there when it has ended well. None if these sources
        are of another kind, or something is wrong with them: the general way says what. ``are_known``: they are dense
        tensors on the CPU of the dtypes and dimensions as before.
        """
        import torch

        first, known = sources[0][2], self._known
        if not isinstance(first, torch.Tensor) or first.dim() != 1:
            return None
        count = first.numel()
        if not count or not (known.have_shapes(sources, count) if are_known else known.are_same(sources, first.shape)):
            return None
        tables, indices, offsets, weights = zip(*sources, strict=True)
        lengths = list(map(torch.Tensor.numel, indices))
        total, bags = sum(lengths), count - self._closed
        inputs, self._inputs = self._inputs, None  # nobody else has them meanwhile
        weighted = sum(lengths[n] for n in self._weighted) if self._weighted else None
        if inputs is None or inputs[0].sizes != (count, bags, total, weighted):
            if not self._fits(total, bags, len(lengths)):
                return None
            sizes, bits = BatchSizes(count, bags, total, weighted), (self._bits, 8 * first.element_size())
            made = BatchInputs(self._device, sizes, self._entries, self._results, len(lengths), *bits)
            inputs = made, made.program(self._device, self.kernel, self._program)
        staged, program = inputs
        staged.take_lengths(lengths, self._order)
        if not staged.take_offsets(offsets, is_closed=self._closed):
            return None
        if total > self._most and staged.longest() > self._most:
            return None
        staged.take_values([indices[n] for n in self._order], [weights[n] for n in self._weighted])
        with self._device.preparing():
            if not self._have_tables(tables):
                return None  # they are elsewhere now, or were dropped
            arrays, launch = program.submit()
        self._inputs = inputs
        results = zip(self._results, arrays, strict=True)
        return {each.node: tensor_of(array, array.shape, each.element.dtype) for each, array in results}, launch

    def _fits(self, total: int, bags: int, members: int) -> bool:
        """Whether the kernel is for so many indices and bags of each operation."""
        if has_long_bags(total, bags * members) != self._has_long_bags:
            return False
        return max(total, bags + 1) < LONGEST_BAG and (bags + 1) * len(self._entries) < 1 << INDEX_BITS

    def _have_tables(self, sources: Sequence[Any]) -> bool:
        """Whether the tables are where they were; those that have changed on the host are uploaded."""
        device = self._device
        if self._watch is not None and device.are_current(self._watch):
            return True
        self._watch = None
        if not all(map(is_, device.find_tables(sources), self._tables)):
            return False
        self._watch = device.watch_tables(sources)
        return True

    def with_parts(self, results: "Mapping[fx.Node, Tensor]", settle: Callable[[], None]) -> "dict[fx.Node, Tensor]":
        """The results by node, and copies, once they are there, of parts of concatenations that others use as well."""
        return with_parts(self._results, results, settle)
