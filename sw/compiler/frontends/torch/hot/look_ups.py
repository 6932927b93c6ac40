"""What a model looks up in its tables when it runs: each module's indices, and the samples that they are of."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.hot.numbering import Table, tables_of
from daedal.errors import UnsupportedOperation


@dataclass(frozen=True)
class Inputs:
    """Arguments of a call of a model."""

    positional: tuple[Any, ...]
    named: Mapping[str, Any]


@dataclass(frozen=True)
class LookUp:
    """A call of a module: its indices behind each other, by the user's numbers, and where each sample's begin.

    ``starts`` has an entry for each sample, and their end.
    """

    indices: Tensor
    starts: Tensor

    def samples_with(self, marked: Tensor) -> Tensor:
        """Of each sample, whether one of its look-ups is marked."""
        sums = torch.cat([torch.zeros(1, dtype=torch.int64), marked.long().cumsum(0)])
        return sums[self.starts[1:]] > sums[self.starts[:-1]]


Look = Callable[[str, Table, LookUp], None]
"""Is told of a look-up: the module's path, and the module."""


def inputs_of(batch: Any) -> Inputs:
    """A batch as arguments: a tuple or list of inputs, a dictionary by parameter, or one input."""
    if isinstance(batch, Mapping):
        return Inputs((), batch)
    return Inputs(tuple(batch) if isinstance(batch, tuple | list) else (batch,), {})


def look_ups(model: nn.Module, inputs: Inputs, look: Look) -> None:
    """Run the model, and tell of each look-up in the order of the run."""

    def hooked(name: str) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
        def hook(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            if given or "input" in named:  # if not, the module has an error to tell
                look(name, module, _look_up(module, given, named))

        return hook

    handles = [
        module.register_forward_pre_hook(hooked(name), prepend=True, with_kwargs=True)
        for name, module in tables_of(model).items()
    ]
    try:
        outputs(model, inputs)
    finally:
        for handle in handles:
            handle.remove()


def outputs(model: nn.Module, inputs: Inputs) -> list[Any]:
    """What the model gives as in evaluation; UnsupportedOperation if these are not its inputs."""
    with _evaluating(model), torch.no_grad():
        try:
            return pytree.tree_leaves(model(*inputs.positional, **inputs.named))
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            raise UnsupportedOperation(f"sample must be inputs of the model: {str(error).splitlines()[0]}") from error


def same(first: list[Any], second: list[Any]) -> bool:
    """Whether two results have the same bits, NaN included."""
    return len(first) == len(second) and all(
        torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() and a.shape == b.shape
        else isinstance(a, Tensor) == isinstance(b, Tensor)
        for a, b in zip(first, second, strict=True)
    )


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """All modules in evaluation meanwhile, and random numbers as if nothing had been drawn."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module in training:
            module.training = True


def _look_up(module: Table, given: tuple[Any, ...], named: Mapping[str, Any]) -> LookUp:
    indices: Tensor = given[0] if given else named["input"]
    flat = indices.detach().reshape(-1)
    offsets = given[1] if len(given) > 1 else named.get("offsets")
    if isinstance(module, nn.EmbeddingBag) and offsets is not None:
        ends = torch.tensor([len(flat)])
        starts = offsets.long() if module.include_last_offset else torch.cat([offsets.long(), ends])
        return LookUp(flat, starts)
    samples = indices.shape[0] if indices.dim() else 1
    return LookUp(flat, torch.arange(samples + 1) * (len(flat) // samples if samples else 0))
