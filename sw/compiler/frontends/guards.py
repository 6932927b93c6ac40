"""What a graph of ``torch.export`` asks of its inputs, and examples that make it ask for no more than it needs."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

_GUARDS = "_guards_fn"
"""The name of the submodule that checks the inputs."""

Kind = tuple[torch.dtype, int, torch.layout]
"""What of a tensor a trace takes as given, and what PyTorch's checks leave out: type, dimensions, layout."""


class Guards(nn.Module):
    """PyTorch's checks of the inputs, and of the kinds of tensors.

    A check that cannot be evaluated for some inputs (an attribute that they do not have, a division by a size of 0)
    says that they are other inputs, as one does that fails.
    """

    def __init__(self, checks: nn.Module | None, kinds: Sequence[Kind | None]) -> None:
        super().__init__()
        self.checks, self.kinds = checks, kinds

    def forward(self, *inputs: Any) -> None:
        """Raises AssertionError for other inputs."""
        for value, kind in zip(inputs, self.kinds, strict=True):  # some 10 µs for 52 inputs
            if kind is not None and (value.dtype, value.ndim, value.layout) != kind:
                raise AssertionError(f"a tensor must be {_in_words(kind)}, not {_in_words(_kind(value))}")
        if self.checks is None:
            return
        try:
            self.checks.forward(*inputs)  # a call of a module with 52 inputs takes 9 µs more
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"what is asked of them cannot be told: {type(error).__name__}: {error}") from error


def with_guards(graph: fx.GraphModule, *, kinds: bool) -> fx.GraphModule:
    """The graph, its checks as :class:`Guards`; with those of ``kinds`` if other inputs lead to another trace."""
    places = graph.graph.find_nodes(op="placeholder")
    examples = [place.meta.get("val") for place in places]
    wanted = [_kind(value) if kinds and isinstance(value, torch.Tensor) else None for value in examples]
    checks = getattr(graph, _GUARDS, None)
    setattr(graph, _GUARDS, Guards(checks, wanted))
    if checks is None and places:
        with graph.graph.inserting_after(places[-1]):
            graph.graph.call_module(_GUARDS, tuple(places))
        graph.recompile()
    return graph


def _kind(value: torch.Tensor) -> Kind:
    return value.dtype, value.dim(), value.layout


def _in_words(kind: Kind) -> str:
    dtype, dimensions, layout = kind
    return f"{dtype} with {dimensions} dimensions" + (f" ({layout})" if layout is not torch.strided else "")


def own_tensors(examples: Any) -> Any:
    """The examples with views as tensors of their own in the same memory: a trace asks what a view is a view of."""
    return pytree.tree_map(_own, examples)


def _own(value: Any) -> Any:
    if type(value) is not torch.Tensor or value.layout is not torch.strided or not value._is_view():
        return value
    if value.requires_grad or value.device.type != "cpu" or value.is_neg() or value.is_conj():
        return value
    own = torch.empty(0, dtype=value.dtype)
    return own.set_(value.untyped_storage(), value.storage_offset(), value.size(), value.stride())
