"""What a model is called with, and what it gives: nested inputs as the tensors of its graph; imports TensorFlow."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from daedal.base.messages import shown
from daedal.errors import UnsupportedOperation


class Signature:
    """The inputs of a model: a nest of specifications for each, with the names that its function has for them."""

    def __init__(self, function: Callable[..., Any], specs: Sequence[Any]) -> None:
        self.specs = tuple(specs)
        self.names = _names(function, len(self.specs))

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All inputs by position, of those by position and those by name."""
        others = dict(named)
        found = [*inputs, *(others.pop(name) for name in self.names[len(inputs) :] if name in others)]
        if others or len(found) != len(self.specs):
            raise UnsupportedOperation(
                f"the inputs must be {', '.join(self.names) or 'none'}, not {len(inputs)} by position"
                + (f" and {', '.join(named)} by name" if named else "")
            )
        return tuple(found)

    def tensors(self, inputs: Sequence[Any]) -> list[Any]:
        """The tensors of these inputs, in the order of the graph's; UnsupportedOperation for what does not fit."""
        tensors: list[Any] = []
        for name, spec, value in zip(self.names, self.specs, inputs, strict=True):
            _take(name, spec, value, tensors)
        return tensors


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """What a function calls its first arguments."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [each.name for each in parameters if each.kind in kinds]
    return [names[n] if n < len(names) else f"input_{n}" for n in range(count)]


def _take(name: str, spec: Any, value: Any, tensors: list[Any]) -> None:
    if isinstance(spec, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(spec):
            what = shown(sorted(map(str, value))) if isinstance(value, Mapping) else shown(value)
            raise UnsupportedOperation(
                f"{name} must be a dictionary of {', '.join(map(str, sorted(spec)))}, not {what}"
            )
        for key in sorted(spec):
            _take(f"{name}[{key!r}]", spec[key], value[key], tensors)
    elif isinstance(spec, tuple | list):
        if not isinstance(value, tuple | list) or len(value) != len(spec):
            raise UnsupportedOperation(f"{name} must be a {type(spec).__name__} of {len(spec)}, not {shown(value)}")
        for number, (part, each) in enumerate(zip(spec, value, strict=True)):
            _take(f"{name}[{number}]", part, each, tensors)
    elif isinstance(spec, tf.TensorSpec):
        tensors.append(_tensor(name, spec, value))
    elif isinstance(spec, tf.TypeSpec):
        if not spec.is_compatible_with(value):
            raise UnsupportedOperation(f"{name} must be as {spec}, not {shown(value)}")
        tensors += tf.nest.flatten(value, expand_composites=True)
    elif value != spec:
        raise UnsupportedOperation(f"{name} must be {spec!r}, as in the signature, not {shown(value)}")


def _tensor(name: str, spec: tf.TensorSpec, value: Any) -> Any:
    try:
        tensor = value if tf.is_tensor(value) and value.dtype == spec.dtype else tf.convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        found = getattr(value, "dtype", type(value).__name__)
        raise UnsupportedOperation(
            f"{name} must be of {spec.dtype.name}, not {getattr(found, 'name', found)}"
        ) from error
    if not spec.shape.is_compatible_with(tensor.shape):
        raise UnsupportedOperation(f"{name} must have the shape {spec.shape}, not {tensor.shape}")
    return tensor


class Results:
    """What a graph's tensors are to the caller: nested as the model has it."""

    def __init__(self, structured: Any) -> None:
        self._structured = structured
        flat = tf.nest.flatten(structured, expand_composites=True)
        self._is_tensor = [tf.is_tensor(each) for each in flat]
        self._flat = flat

    def nested(self, tensors: Sequence[Any]) -> Any:
        """The result of a call whose tensors these are."""
        given = iter(tensors)
        flat = [next(given) if is_one else each for is_one, each in zip(self._is_tensor, self._flat, strict=True)]
        return tf.nest.pack_sequence_as(self._structured, flat, expand_composites=True)
