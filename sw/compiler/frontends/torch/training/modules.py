"""Which modules hold parameters, and by which names: optimizers are given parameters alone."""

import gc
from collections.abc import Iterable

from torch import nn

_COMPILED = "_orig_mod"
"""What ``torch.compile`` calls the module that it is given."""


class Holders:
    """The modules that there are, by the parameters that they hold."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        wanted = {id(parameter) for parameter in parameters}
        self._parents: dict[int, tuple[nn.Module, str]] = {}
        self._holders: dict[int, list[tuple[nn.Module, str]]] = {}
        for module in [each for each in gc.get_objects() if issubclass(type(each), nn.Module)]:
            state = vars(module)
            for name, child in (state.get("_modules") or {}).items():
                if child is not None:
                    self._parents.setdefault(id(child), (module, name))
            for name, parameter in (state.get("_parameters") or {}).items():
                if id(parameter) in wanted:
                    self._holders.setdefault(id(parameter), []).append((module, name))

    def name_of(self, parameter: nn.Parameter) -> str:
        """The parameter's name in the whole module that it is in; empty if it is in none."""
        found = self._holders.get(id(parameter))
        if not found:
            return ""
        module, name = found[0]
        seen = set[int]()
        while id(module) in self._parents and id(module) not in seen:
            seen.add(id(module))
            module, part = self._parents[id(module)]
            name = name if part == _COMPILED else f"{part}.{name}"
        return name

    def why_no_table(self, parameter: nn.Parameter) -> str | None:
        """Why a parameter is no table, as far as its modules tell; None if it may be one."""
        kinds = {type(module) for module, _ in self._holders.get(id(parameter), ())}
        if any(issubclass(kind, nn.Embedding | nn.EmbeddingBag) for kind in kinds):
            return None
        others = sorted(kind.__name__ for kind in kinds if kind.__module__.startswith("torch.nn."))
        return f"it is of {', '.join(others)}, and not a table" if others else None
