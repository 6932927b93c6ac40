"""Running a module to see what has to be compiled, without a trace of it: what it changes is changed back."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch as functorch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_UNDECLARED = ("running_mean", "running_var")
"""Parameters that operations of PyTorch change and do not say so."""


class Keeper(TorchDispatchMode):
    """Keeps what was in the memory of some tensors before an operation changes it.

    Of operations that run a graph, such as ``torch.cond``, all operands are kept: what the graph does is not seen here.
    """

    supports_higher_order_operators = True

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        super().__init__()
        self._watched = {_memory(tensor)._cdata for tensor in tensors}
        self.kept: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = getattr(func, "_schema", None)
        if schema is None:
            for leaf in pytree.tree_leaves((args, kwargs)):
                self._keep(leaf)
            return func(*args, **(kwargs or {}))
        for position, parameter in enumerate(schema.arguments):
            is_written = parameter.alias_info is not None and parameter.alias_info.is_write
            if is_written or parameter.name in _UNDECLARED:
                value = args[position] if position < len(args) else (kwargs or {}).get(parameter.name)
                for leaf in pytree.tree_leaves(value):
                    self._keep(leaf)
        return func(*args, **(kwargs or {}))

    def _keep(self, value: Any) -> None:
        if not _has_memory(value):
            return
        memory = _memory(value)
        if memory._cdata in self._watched and memory._cdata not in self.kept:
            self.kept[memory._cdata] = memory, memory.clone()


@contextmanager
def rehearsal(tensors: Iterable[Any]) -> Iterator[None]:
    """What PyTorch does in here to the content of ``tensors``, and to its random numbers, is undone in the end.

    Values that are no tensors are passed over.
    """
    keeper = Keeper(tensor for tensor in tensors if _has_memory(tensor))
    try:
        with torch.random.fork_rng(devices=()), keeper:
            yield
    finally:
        for memory, content in keeper.kept.values():
            memory.copy_(content, non_blocking=False)


def _has_memory(value: Any) -> bool:
    """Whether a value is a tensor with memory of its own: those of ``torch.func`` have that of others."""
    if not isinstance(value, Tensor) or functorch.is_functorch_wrapped_tensor(value):
        return False
    return value.layout is torch.strided and value.device.type == "cpu"


def _memory(tensor: Tensor) -> torch.UntypedStorage:
    return tensor.untyped_storage()
