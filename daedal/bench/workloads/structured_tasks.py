"""Workloads over graphs, triples and blocks, with their data: what runs them, and what they must give."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import daedal
from daedal.bench.workloads import structured_kernels
from daedal.bench.workloads.graphs import Graph
from daedal.bench.workloads.measured import Model, Program, bind_parameters, run_of
from daedal.bench.workloads.row_sums import beats_of, passed_messages, reduced, reduction_cycles
from daedal.bench.workloads.structured_layers import BlockGather, GraphConvolution, SparseProduct
from daedal.bench.workloads.triples import Triples
from daedal.driver.device import Device
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.spec.binary32 import Floats

INDEX_BYTES = 8
"""Bytes of an index and of a pointer: int64, PyTorch's own."""

PYTORCH, SPECIFICATION = "PyTorch", "specification"
"""What results are compared with. The order of a sum along a row is the machine's own: 16 partial sums and a tree."""


@dataclass(frozen=True)
class StructuredTask:
    """A workload over a structure of indices, with its data.

    Attributes
    ----------
    workload, origin, lookups, bags, flops
        As of any task.
    arrays
        Bytes of indices, pointers, weights and results.
    lane_beats, sums
        Passes of a row through the lanes, and sums along a row, of all of it.
    row
        Elements of a row.
    operation, inputs
        A module and what to call it with, or a kernel and its arguments, the first of which is written.
    same
        The same in PyTorch, to be timed.
    specified
        The result in the machine's order of additions; None if PyTorch's order is the machine's.
    calls
        Operations that are a launch each.
    tables
        How many of a module's inputs, the first ones, are tables.
    """

    workload: Model
    origin: str
    lookups: int
    bags: int
    flops: int
    arrays: tuple[int, ...]
    lane_beats: int
    sums: int
    row: int
    operation: Any
    inputs: tuple[Any, ...]
    same: Callable[[], Any]
    specified: Callable[[], Floats] | None = None
    calls: int = 1
    tables: int = 0

    @property
    def reference(self) -> str:
        """What the result is compared with."""
        return SPECIFICATION if self.specified else PYTORCH

    @property
    def row_bytes(self) -> int:
        """Bytes of all rows that are looked up."""
        return self.lookups * self.row * BINARY32.bytes

    @property
    def useful_bytes(self) -> int:
        """Rows, indices, pointers, weights and results."""
        return self.row_bytes + sum(self.arrays)

    def lines(self, bus_bytes: int) -> int:
        """Lines that the operation has to move, each part of an array once and each row for itself."""
        rows = self.lookups * -(-self.row * BINARY32.bytes // bus_bytes)
        return rows + sum(-(-size // bus_bytes) for size in self.arrays)

    def lane_cycles(self, config: Config) -> int | None:
        """Passes and sums one behind the other, each as quick as it can be; None without arithmetic."""
        passes = self.lane_beats * beats_of(config, self.row)
        return passes + self.sums * reduction_cycles(config, self.row) if self.flops else None

    def fetched(self, config: Config) -> tuple[int, int]:
        """Rows that do not fit into a vector register come in parts, unless they are only copied."""
        most = config.vl_max if self.flops else self.row
        parts = [min(most, self.row - first) for first in range(0, self.row, most)]
        lines = sum(-(-part * BINARY32.bytes // config.bus_bytes) for part in parts)
        return self.lookups * len(parts), self.lookups * lines

    def launches(self, config: Config) -> int:
        """As many as there are operations."""
        return self.calls

    def compile(self, device: Device) -> tuple[Program, Callable[[], Any]]:
        """The module, or the kernel, whose result is in its first argument."""
        executable = daedal.compile(self.operation, self.inputs, device=device)
        if isinstance(self.operation, nn.Module):
            executable.prepare(self.inputs)
            bind_parameters(device, self.operation)
            for number, table in enumerate(self.inputs[: self.tables]):
                device.bind_table(f"input {number}", table)
            return executable, run_of(executable, self.inputs)

        def run() -> Tensor:
            executable(*self.inputs)
            out: Tensor = self.inputs[0]
            return out

        return executable, run

    def expected(self) -> Any:
        """PyTorch's result, or the specification's."""
        return torch.from_numpy(self.specified()) if self.specified else self.same()

    def in_torch(self) -> Callable[[], Any]:
        """The same operation in PyTorch."""
        return self.same


def _array_bytes(*arrays: NDArray[Any]) -> tuple[int, ...]:
    return tuple(array.nbytes for array in arrays)


def sparse_product(workload: Model, graph: Graph, x: Floats, weights: Floats, origin: str) -> StructuredTask:
    """A graph's weighted adjacency in COO times its features."""
    indices = torch.from_numpy(np.stack([graph.rows, graph.columns]))
    matrix = torch.sparse_coo_tensor(
        indices, torch.from_numpy(weights), (graph.nodes, len(x)), check_invariants=True, is_coalesced=False
    )
    module = SparseProduct(torch.from_numpy(x))
    return _convolution(workload, graph, x, weights, origin, module, (matrix,))


def graph_convolution(workload: Model, graph: Graph, x: Floats, weights: Floats, origin: str) -> StructuredTask:
    """The same sums as messages along edges."""
    module = GraphConvolution(torch.from_numpy(x), graph.nodes)
    inputs = tuple(torch.from_numpy(array) for array in (graph.columns, graph.rows, weights))
    return _convolution(workload, graph, x, weights, origin, module, inputs)


def _convolution(
    workload: Model, graph: Graph, x: Floats, weights: Floats, origin: str, module: nn.Module, inputs: tuple[Any, ...]
) -> StructuredTask:
    edges, width = len(graph.columns), x.shape[1]
    arrays = (*_array_bytes(graph.columns, graph.pointers, weights), graph.nodes * width * BINARY32.bytes)
    return StructuredTask(
        workload, origin, edges, graph.nodes, 2 * edges * width, arrays, edges, 0, width, module, inputs,
        lambda: module(*inputs),
    )  # fmt: skip


def message_passing(workload: Model, graph: Graph, x: Floats, origin: str) -> StructuredTask:
    """Rows of neighbours weighted by their products with the node's own, which nodes without edges look up as well."""
    edges, width = len(graph.columns), x.shape[1]
    out = torch.zeros(graph.nodes, width)
    features, pointers, columns = (torch.from_numpy(array) for array in (x, graph.pointers, graph.columns))
    rows = torch.from_numpy(graph.rows)

    def in_torch() -> Tensor:
        neighbours = features[columns]
        products = (neighbours * features[rows]).sum(1, keepdim=True)
        return torch.zeros(graph.nodes, width).index_add(0, rows, products * neighbours)

    return StructuredTask(
        workload, origin, edges + graph.nodes, graph.nodes, 4 * edges * width,
        (*_array_bytes(graph.columns, graph.pointers), out.nbytes), edges + graph.nodes, edges, width,
        structured_kernels.messages, (out, features, pointers, columns), in_torch, lambda: passed_messages(graph, x),
    )  # fmt: skip


def triple_scores(
    workload: Model, triples: Triples, entities: Floats, relations: Floats, origin: str, *, distances: bool
) -> StructuredTask:
    """TransE (``distances``) or DistMult."""
    heads, kinds, tails = triples.heads, triples.kinds, triples.tails
    count, width = len(heads), entities.shape[1]
    out, kernel = torch.zeros(count), structured_kernels.transe if distances else structured_kernels.distmult
    tensors = tuple(torch.from_numpy(array) for array in (entities, relations, heads, kinds, tails))

    def terms(part: slice) -> Floats:
        head, relation, tail = entities[heads[part]], relations[kinds[part]], entities[tails[part]]
        return np.abs(head + relation - tail) if distances else head * relation * tail

    def in_torch() -> Tensor:
        e, r, h, k, t = tensors
        return (e[h] + r[k] - e[t]).abs().sum(1) if distances else (e[h] * r[k] * e[t]).sum(1)

    return StructuredTask(
        workload, origin, 3 * count, count, 3 * count * width, (*_array_bytes(heads, kinds, tails), out.nbytes),
        (2 if distances else 1) * count, count, width, kernel,
        (out, *tensors), in_torch, lambda: reduced(heads, terms),
    )  # fmt: skip


def block_gather(
    workload: Model, keys: Floats, values: Floats, blocks: NDArray[np.int64], block: int, origin: str
) -> StructuredTask:
    """The key and value blocks of each query block, each of the two in a launch."""
    module, row = BlockGather(), block * keys.shape[1]
    inputs = (*(torch.from_numpy(array).view(-1, row) for array in (keys, values)), torch.from_numpy(blocks))
    copied = len(blocks) * row * BINARY32.bytes
    return StructuredTask(
        workload, origin, 2 * len(blocks), 2 * len(blocks), 0, (blocks.nbytes, blocks.nbytes, copied, copied), 0, 0,
        row, module, inputs, lambda: module(*inputs), calls=2, tables=2,
    )  # fmt: skip
