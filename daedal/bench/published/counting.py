"""How many elements PyTorch gathers and pools in a run, by what it says itself of the operators that it calls."""

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile
from torch.utils import _pytree as pytree

POOLS: Mapping[str, int] = {
    f"aten::{name}{end}": place
    for names, place in (
        (("index_add", "scatter_add", "scatter_reduce", "scatter", "index_copy", "index_reduce"), 3),
        (("index_put", "_index_put_impl"), 2),
    )
    for name in names
    for end in ("", "_")
} | {"aten::segment_reduce": 0}
"""Operators, and which of their arguments are the rows: each element of these is one."""

BAGS = ("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
"""As many rows as indices, of the table's width."""

PRODUCTS = tuple(f"aten::{name}" for name in ("_sparse_mm", "_sparse_mm_reduce_impl", "_sparse_addmm", "addmm", "mm"))
"""As many rows as the sparse matrix has elements, of the width of the result."""

_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)

_FLOATS = ("float", "double", "Half", "BFloat16")

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Called:
    """A call of an operator. ``shapes`` and ``types`` are those of its arguments, as PyTorch's tools tell them."""

    name: str
    shapes: Sequence[Any]
    types: Sequence[str]
    result: Sequence[int] | None = None
    """The shape of the result, if it is known."""

    def elements(self, sparse: Mapping[Sizes, int]) -> int:
        """How many elements of floats it gathers or pools; ``sparse`` are numbers of elements of sparse matrices."""
        if self.name.startswith("aten::") and any(name in self.types[0] for name in _FLOATS if self.types):
            return self._elements(self.name.removeprefix("aten::"), sparse)
        return 0

    def _elements(self, name: str, sparse: Mapping[Sizes, int]) -> int:
        shapes = self.shapes
        if name == "index":
            is_mask = "bool" in self.types[1] or "unsigned char" in self.types[1]
            return 0 if is_mask or self.result is None else math.prod(self.result)
        if name == "embedding" or self.name in BAGS:
            return int(math.prod(shapes[1]) * shapes[0][-1])
        if name == "index_select":
            return int(math.prod(shapes[0]) // max(1, shapes[0][self._dim]) * math.prod(shapes[2]))
        if name in ("gather", "take_along_dim"):
            return math.prod(shapes[2 if name == "gather" else 1])
        if self.name in POOLS:
            return math.prod(shapes[POOLS[self.name]])
        if self.name in PRODUCTS:
            places = [n for n, each in enumerate(shapes[:-1]) if _is_shape(each) and tuple(each) in sparse]
            return sparse[tuple(shapes[places[0]])] * shapes[places[0] + 1][-1] if places else 0
        return 0

    @property
    def _dim(self) -> int:
        """Along which dimension rows are selected: the one by which arguments and result differ; else the first."""
        rows, result = self.shapes[0], self.result
        return next((n for n, each in enumerate(result or ()) if each != rows[n]), 0)


def elements_of(run: Callable[[], Any], inputs: Iterable[Any]) -> tuple[Any, int]:
    """What ``run`` gives, and how many elements of floats PyTorch gathers and pools in it. ``inputs`` are what it works
    on: of a product with a sparse matrix among them, the elements of that are counted.
    """
    leaves = [leaf for leaf in pytree.tree_leaves(list(inputs)) if isinstance(leaf, Tensor)]
    sparse = {tuple(each.shape): each._nnz() for each in leaves if each.layout in _LAYOUTS}
    result, calls = _profiled(run) if sparse else _traced(run)
    return result, sum(call.elements(sparse) for call in calls)


def _traced(run: Callable[[], Any]) -> tuple[Any, list[Called]]:
    """The result, and the calls that are not inside of one that counts: those of it that are to be counted."""
    handle, path = tempfile.mkstemp(suffix=".pt.trace.json")
    os.close(handle)
    observer = ExecutionTraceObserver()
    try:
        with _silence():
            observer.register_callback(path)
            observer.start()
        try:
            result = run()
        finally:
            with _silence():
                observer.stop()
                observer.unregister_callback()
        nodes = {node["id"]: node for node in json.loads(Path(path).read_text(encoding="utf-8"))["nodes"]}
    finally:
        Path(path).unlink()
    calls = {number: _of_trace(node) for number, node in nodes.items()}
    counted = {number for number, call in calls.items() if call.elements({})}

    def is_inner(number: int) -> bool:
        parent = nodes[number]["ctrl_deps"]
        return parent in nodes and parent != number and (parent in counted or is_inner(parent))

    return result, [calls[number] for number in counted if not is_inner(number)]


def _of_trace(node: Mapping[str, Any]) -> Called:
    result = node["outputs"]["shapes"][0] if node["outputs"]["shapes"] else None
    return Called(
        node["name"], node["inputs"]["shapes"], node["inputs"]["types"], result if _is_shape(result) else None
    )


def _profiled(run: Callable[[], Any]) -> tuple[Any, list[Called]]:
    """The same where a trace cannot be had, for there are sparse tensors: of these it asks for strides."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        result = run()
    assert profiled.profiler is not None
    found, ends = [], 0
    for event in sorted(profiled.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        call = Called(event.name(), event.shapes(), event.dtypes())
        is_counted = call.name in PRODUCTS or bool(call.shapes and call.elements({}))
        if is_counted and event.start_ns() >= ends:
            found.append(call)
            ends = event.start_ns() + event.duration_ns()
    return result, found


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing goes to the standard error meanwhile, where PyTorch says that it begins and ends."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, int) for each in value)
