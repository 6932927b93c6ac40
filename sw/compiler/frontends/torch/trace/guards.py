"""What a graph of ``torch.export`` asks of its inputs, and examples that make it ask for no more than it needs."""

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.trace.guard_code import Check
from daedal.driver.tables.tensor_forms import TensorForms

_GUARDS = "_guards_fn"
"""The name of the submodule that checks the inputs."""

_TYPES = frozenset((torch.Tensor, nn.Parameter))
_OF_KNOWN = attrgetter("dtype", "ndim", "layout", "requires_grad", "is_cpu")

Kind = tuple[object, ...]
"""What of an input a trace takes as given, and what PyTorch's checks leave out, since 0, 0.0, -0.0 and False are equal:
of a tensor type, dimensions, layout, whether it is contiguous and whether it requires a gradient; of a number type and
sign; of all else its type.
"""


class Guards(nn.Module):
    """PyTorch's checks of the inputs, and of their kinds.

    A check that cannot be evaluated for some inputs (an attribute that they do not have, a division by a size of 0)
    says that they are other inputs, as one does that fails.
    """

    def __init__(self, checks: Check | None, kinds: Sequence[Kind | None]) -> None:
        super().__init__()
        self.checks, self.kinds = checks, kinds
        tensors = [kind for kind in kinds if kind is not None and len(kind) == 5]
        self._known = [(*kind[:3], kind[4], True) for kind in tensors]
        self._contiguous = [kind[3] for kind in tensors]
        """Of inputs that are tensors on the CPU: their kinds, in two lists that are compared at once."""
        are_dense = all(kind[2] is torch.strided for kind in tensors)
        others = [(n, kind) for n, kind in enumerate(kinds) if kind is None or len(kind) < 5]
        self._others = others if are_dense else [(0, None)]
        """Inputs that are something else, with their kinds: None if they are not known."""
        self._forms: TensorForms | None = None
        """Of inputs that were known; None while all of them may not be contiguous, or there are none."""

    def forward(self, *inputs: Any) -> None:
        """Raises AssertionError for other inputs."""
        for value, kind in zip(inputs, self.kinds, strict=True):
            if kind is not None and _kind(value) != kind:
                raise AssertionError(f"an input must be {_in_words(kind)}, not {_in_words(_kind(value))}")
        self.check_sizes(inputs)

    def check_sizes(self, inputs: Sequence[Any]) -> None:
        """PyTorch's own checks; raises AssertionError."""
        if self.checks is None:
            return
        try:
            self.checks(*inputs)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"what is asked of them cannot be told: {type(error).__name__}: {error}") from error

    def knows(self, inputs: Sequence[Any]) -> bool:
        """Whether these are of the kinds that are wanted, and the tensors among them plain and on the CPU; quick."""
        tensors = inputs
        if self._others:
            if not all(kind is not None and _kind(inputs[number]) == kind for number, kind in self._others):
                return False
            others = {number for number, _ in self._others}
            tensors = [value for number, value in enumerate(inputs) if number not in others]
        if self._forms is not None and len(tensors) == len(self._known) and self._forms.are_of(tensors):
            return True
        if not self._have_kinds(tensors):
            return False
        if all(self._contiguous):
            self._forms = TensorForms(tensors)
        return True

    def _have_kinds(self, tensors: Sequence[Any]) -> bool:
        return (
            _TYPES.issuperset(map(type, tensors))
            and list(map(_OF_KNOWN, tensors)) == self._known
            and list(map(torch.Tensor.is_contiguous, tensors)) == self._contiguous
            and not any(map(torch.Tensor._is_zerotensor, tensors))
        )


def take_guards(graph: fx.GraphModule) -> Guards | None:
    """The checks of a graph's inputs, which the graph itself makes no more; None if it has none."""
    guards = getattr(graph, _GUARDS, None)
    if not isinstance(guards, Guards):
        return None
    for node in graph.graph.find_nodes(op="call_module", target=_GUARDS):
        graph.graph.erase_node(node)
    return guards


def with_guards(graph: fx.GraphModule, examples: Any = (), checks: Check | None = None) -> fx.GraphModule:
    """The graph with ``checks`` of its inputs as :class:`Guards`; with those of kinds if it is for inputs like
    ``examples``, and others lead to another trace.
    """
    places = graph.graph.find_nodes(op="placeholder")
    wanted: list[Kind | None] = [_kind(value) for value in pytree.tree_leaves(tuple(examples))]
    setattr(graph, _GUARDS, Guards(checks, wanted or [None] * len(places)))
    if places:
        with graph.graph.inserting_after(places[-1]):
            graph.graph.call_module(_GUARDS, tuple(places))
        graph.recompile()
    return graph


def _kind(value: Any) -> Kind:
    if isinstance(value, torch.Tensor):
        is_dense = value.layout is torch.strided
        return value.dtype, value.ndim, value.layout, is_dense and value.is_contiguous(), value.requires_grad
    return (type(value), math.copysign(1, value)) if isinstance(value, float) else (type(value),)


def _in_words(kind: Kind) -> str:
    if len(kind) < 5:
        return " of sign ".join(getattr(part, "__name__", str(part)) for part in kind)
    dtype, dimensions, layout, is_contiguous, requires_grad = kind
    notes = [str(layout)] if layout is not torch.strided else [] if is_contiguous else ["not contiguous"]
    notes += ["requires a gradient"] if requires_grad else []
    return f"{dtype} with {dimensions} dimensions" + (f" ({', '.join(notes)})" if notes else "")


_BY_ROWS = torch.Tensor.crow_indices, torch.Tensor.col_indices
_BY_COLUMNS = torch.Tensor.ccol_indices, torch.Tensor.row_indices
_COMPRESSED = {
    torch.sparse_csr: _BY_ROWS,
    torch.sparse_bsr: _BY_ROWS,
    torch.sparse_csc: _BY_COLUMNS,
    torch.sparse_bsc: _BY_COLUMNS,
}
"""Layout -> its indices."""


def own_tensors(examples: Any) -> Any:
    """The examples with views as tensors of their own in the same memory: a trace asks what a view is a view of."""
    return pytree.tree_map(_own, examples)


def _own(value: Any) -> Any:
    if type(value) is not torch.Tensor or not value._is_view() or value.requires_grad or value.device.type != "cpu":
        return value
    if value.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(
            value._indices(), value._values(), value.shape, is_coalesced=value.is_coalesced(), check_invariants=False
        )
    if value.layout in _COMPRESSED:
        compressed, plain = _COMPRESSED[value.layout]
        return torch.sparse_compressed_tensor(
            compressed(value), plain(value), value.values(), value.shape, layout=value.layout, check_invariants=False
        )
    if value.layout is not torch.strided or value.is_neg() or value.is_conj():
        return value
    own = torch.empty(0, dtype=value.dtype, device="cpu")
    return own.set_(value.untyped_storage(), value.storage_offset(), value.size(), value.stride())
