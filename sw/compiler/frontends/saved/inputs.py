"""The inputs of a saved module: by position and by name, nested, and of the kinds that it was saved for."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from daedal.base.messages import shown
from daedal.compiler.frontends.saved.moves import OtherSizes
from daedal.driver.tables.table_sources import array_type, is_tensor, stand_in
from daedal.errors import UnsupportedOperation
from daedal.runtime.saved.contents import Argument, Items, SavedInput, SavedSlot, Value
from daedal.runtime.tensors import array_of

_KINDS: Mapping[str, type] = {"tuple": tuple, "list": list, "dict": dict}


class SavedInputs:
    """Takes the leaves of what a call is given."""

    def __init__(self, slots: Sequence[SavedSlot], inputs: Sequence[SavedInput]) -> None:
        self._slots, self._inputs = slots, inputs

    def leaves(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], bool]:
        """The leaves as the trace numbers them, arrays; and whether there were tensors among them.

        OtherSizes for inputs of other kinds.
        """
        leaves: list[Any] = [None] * len(self._inputs)
        for slot, value in zip(self._slots, self._in_order(given, named), strict=True):
            _take(slot.nest, value, leaves, slot.name)
        are_tensors = any(map(is_tensor, leaves))
        return [_checked(each, leaf) for each, leaf in zip(self._inputs, leaves, strict=True)], are_tensors

    def _in_order(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        plain = [slot for slot in self._slots if not slot.by_name]
        others = dict(named)
        found: list[Any] = list(given)
        if len(given) > len(plain):
            raise OtherSizes(f"there must be {len(plain)} inputs by position, not {len(given)}: {self._names()}")
        for slot in [*plain[len(given) :], *(slot for slot in self._slots if slot.by_name)]:
            if slot.name not in others and not slot.is_optional:
                raise OtherSizes(f"input {slot.name!r} must be given: the inputs are {self._names()}")
            found.append(others.pop(slot.name, None))
        if others:
            raise OtherSizes(f"inputs must be {self._names()}, not also {', '.join(map(str, others))}")
        return found

    def _names(self) -> str:
        return ", ".join(slot.name for slot in self._slots) or "none"


def _take(nest: Argument, value: Any, leaves: list[Any], name: str) -> None:
    """Put the leaves of a nested value where they belong."""
    if isinstance(nest, Value):
        leaves[nest.number] = value
        return
    if not isinstance(nest, Items):
        return
    kind: Any = _KINDS[nest.kind]
    if not isinstance(value, kind) or len(value) != len(nest.parts):
        raise OtherSizes(f"input {name!r} must be a {nest.kind} of {len(nest.parts)}, not {shown(value)}")
    if isinstance(value, dict):
        if value.keys() != set(nest.keys):
            raise OtherSizes(f"input {name!r} must have the keys {', '.join(map(str, nest.keys))}, not {shown(value)}")
        value = [value[key] for key in nest.keys]
    for number, (part, each) in enumerate(zip(nest.parts, value, strict=True)):
        _take(part, each, leaves, f"{name}[{number}]")


def _checked(wanted: SavedInput, value: Any) -> Any:
    """A leaf as the steps take it: an array for a tensor."""
    if wanted.kind == "constant":
        if type(value) is not type(wanted.constant) or not _is_same(value, wanted.constant):
            raise OtherSizes(f"input {wanted.name!r} must be {wanted.constant!r}, not {shown(value)}")
        return value
    if wanted.kind == "any" and value is None:
        return None
    dtype = str(value.dtype).removeprefix("torch.") if hasattr(value, "dtype") else type(value).__name__
    if is_tensor(value):
        try:
            value = array_of(value)
        except (RuntimeError, TypeError) as error:
            raise UnsupportedOperation(f"input {wanted.name!r} must be dense and on the CPU: {error}") from error
    if not isinstance(value, np.ndarray):
        raise OtherSizes(f"input {wanted.name!r} must be an array or a tensor, not {shown(value)}")
    if wanted.kind == "any":
        return value
    is_type = dtype == wanted.dtype or value.dtype == array_type(wanted.dtype)
    if not is_type or value.ndim != wanted.dims:
        raise OtherSizes(
            f"input {wanted.name!r} must be of {wanted.dtype} with {wanted.dims} dimensions, not of {dtype} with "
            f"{value.ndim}"
        )
    return stand_in(value, wanted.dtype)


def _is_same(a: Any, b: Any) -> bool:
    return bool(a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b)))
