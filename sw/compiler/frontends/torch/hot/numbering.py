"""Modules whose tables have their rows in another order, while they take and save the user's row numbers.

All functions that a module or an optimizer calls back are of this file and know nothing but their arguments, so that
modules can be copied and pickled. The order is a buffer of the module.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

PLACES, PADDING = "_daedal_places", "_daedal_padding"
"""The module's buffer that says where each of the user's rows is, and its padding row by the user's number."""

Table = nn.Embedding | nn.EmbeddingBag


def tables_of(model: nn.Module) -> dict[str, Table]:
    """The modules that look up rows by their path; "weight" alone if the model is one itself."""
    return {name or "weight": module for name, module in model.named_modules() if isinstance(module, Table)}


def is_renumbered(module: nn.Module) -> bool:
    """Whether its rows are in another order than the user's."""
    return hasattr(module, PLACES)


def places_of(module: nn.Module) -> Tensor:
    """Where each of the user's rows is in the module's table, int64."""
    return module.get_buffer(PLACES)


def padding_of(module: Table) -> int | None:
    """The user's number of its padding row."""
    found: int | None = getattr(module, PADDING) if is_renumbered(module) else module.padding_idx
    return found


def renumber(modules: Sequence[Table], order: Tensor) -> None:
    """Put the rows of the one table that these modules share in this order; ``order[place]`` is the user's row."""
    places = order.argsort()
    with torch.no_grad():
        modules[0].weight.copy_(modules[0].weight[order])
    for module in modules:
        module.register_buffer(PLACES, places, persistent=False)
        setattr(module, PADDING, module.padding_idx)
        if module.padding_idx is not None:
            module.padding_idx = int(places[module.padding_idx])
        handles = (
            module.register_forward_pre_hook(_look_up, with_kwargs=True),
            module.register_state_dict_post_hook(_save),
            module.register_load_state_dict_pre_hook(_load),
        )
        module.__dict__["_daedal_hooks"] = handles


def restore(modules: Sequence[Table]) -> None:
    """Give the one table that these modules share the user's order again."""
    with torch.no_grad():
        modules[0].weight.copy_(modules[0].weight[places_of(modules[0])])
    for module in modules:
        for handle in module.__dict__.pop("_daedal_hooks"):
            handle.remove()
        module.padding_idx = getattr(module, PADDING)
        delattr(module, PADDING)
        delattr(module, PLACES)


def _look_up(
    module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with the table's own row numbers; an index that no row has is PyTorch's error."""
    if inputs:
        return (_placed(module, inputs[0]), *inputs[1:]), named
    return inputs, {name: _placed(module, value) if name == "input" else value for name, value in named.items()}


def _placed(module: nn.Module, indices: Tensor) -> Tensor:
    places: Any = getattr(module, PLACES)
    return torch.index_select(places, 0, indices.reshape(-1)).reshape(indices.shape).to(indices.dtype)


def _save(module: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """In a state dict of a module stand the user's rows."""
    state[f"{prefix}weight"] = state[f"{prefix}weight"][places_of(module)]


def _load(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    weight = state.get(f"{prefix}weight")
    if isinstance(weight, Tensor) and len(weight) == len(places_of(module)):
        state[f"{prefix}weight"] = weight[places_of(module).argsort()]


class OptimizerNumbering:
    """What an optimizer calls to save and load state by the user's row numbers.

    ``places`` has, for each table, where the user's rows are; its key is the parameter's number in ``state_dict``.
    """

    def __init__(self, places: Mapping[int, Tensor]) -> None:
        self._places = dict(places)

    def save(self, _: torch.optim.Optimizer, saved: dict[str, Any]) -> dict[str, Any]:
        """The hook behind ``state_dict``."""
        return self._in_order(saved, self._places)

    def load(self, _: torch.optim.Optimizer, saved: dict[str, Any]) -> dict[str, Any]:
        """The hook before ``load_state_dict``."""
        return self._in_order(saved, {number: places.argsort() for number, places in self._places.items()})

    @staticmethod
    def _in_order(saved: dict[str, Any], orders: Mapping[int, Tensor]) -> dict[str, Any]:
        states = {
            number: in_order(state, orders[number]) if number in orders else state
            for number, state in saved["state"].items()
        }
        return {**saved, "state": states}


def in_order(state: Mapping[str, Any], order: Tensor) -> dict[str, Any]:
    """A parameter's state, with the rows of what has a row for each of the table's in this order."""
    return {
        name: value[order] if isinstance(value, Tensor) and value.dim() and len(value) == len(order) else value
        for name, value in state.items()
    }
