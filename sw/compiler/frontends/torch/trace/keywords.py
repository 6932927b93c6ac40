"""Inputs by name, as modules take them: a trace has all of its inputs by position."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn
from torch.export import ExportedProgram

from daedal.errors import UnsupportedOperation

INNER = "daedal_inner"
"""What a module is called within one that hands inputs by position on by name."""


class _ByPosition(nn.Module):
    """A module whose last inputs go by position to names that it takes by keyword only."""

    def __init__(self, module: nn.Module, first: int, names: Sequence[str]) -> None:
        super().__init__()
        self.train(module.training)
        self.add_module(INNER, module)
        self._first, self._names = first, tuple(names)

    def forward(self, *inputs: Any) -> Any:
        """The result of the module."""
        named = dict(zip(self._names, inputs[self._first :], strict=True))
        return self.get_submodule(INNER)(*inputs[: self._first], **named)


class Signature:
    """How inputs by position and by name go to a module, for which the examples tell which of its names are used.

    ``module`` is the module to trace, and to call with all inputs by position. Raises UnsupportedOperation for inputs
    that the module does not take.
    """

    def __init__(self, module: nn.Module | ExportedProgram, inputs: Sequence[Any], named: Mapping[str, Any]) -> None:
        self.module = module
        self._exported: list[str] | None = None
        self._only: list[str] = []
        self._first = 0
        if isinstance(module, ExportedProgram):
            groups = module.call_spec.in_spec
            self._exported = [] if groups is None else list(groups.child(1).context or [])
            return
        self._name = type(module).__name__
        self._signature = inspect.signature(module.forward)
        if not named:
            return
        by_position, only = self._split(inputs, named)
        if only:
            self._only, self._first = list(only), len(by_position)
            self.module = _ByPosition(module, self._first, self._only)

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """What the module calls its inputs: by position, as far as they have names, and by name only."""
        if self._exported is not None:
            return [], self._exported
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [each.name for each in self._signature.parameters.values() if each.kind in kinds], self._only

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All inputs by position."""
        if not named and not self._only:
            return tuple(inputs)
        if self._exported is not None:
            if set(self._exported) != set(named):
                wanted = ", ".join(self._exported) or "none"
                raise UnsupportedOperation(f"inputs by name must be {wanted}, not {', '.join(named) or 'none'}")
            return (*inputs, *(named[name] for name in self._exported))
        by_position, only = self._split(inputs, named)
        if set(only) != set(self._only) or (self._only and len(by_position) != self._first):
            wanted = ", ".join(self._only) or "none"
            raise UnsupportedOperation(
                f"{self._name} was compiled for {wanted} by name only, and {self._first} other inputs, not for "
                f"{', '.join(only) or 'none'} and {len(by_position)}: compile it for inputs like these"
            )
        return (*by_position, *(only[name] for name in self._only))

    def _split(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """What goes by position, and what the module takes by name only."""
        try:
            given = self._signature.bind(*inputs, **named).arguments
        except TypeError as error:
            raise UnsupportedOperation(f"the inputs must be what {self._name} takes: {error}") from None
        parameters = self._signature.parameters.values()
        only: dict[str, Any] = {}
        for each in parameters:
            if each.kind is each.KEYWORD_ONLY and each.name in given:
                only[each.name] = given[each.name]
            elif each.kind is each.VAR_KEYWORD:
                only |= given.get(each.name, {})
        plain = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        rest = next((given.get(each.name, ()) for each in parameters if each.kind is each.VAR_POSITIONAL), ())
        last = max((n for n, each in enumerate(plain) if each.name in given), default=-1)
        return [given.get(each.name, each.default) for each in plain[: last + 1]] + list(rest), only
