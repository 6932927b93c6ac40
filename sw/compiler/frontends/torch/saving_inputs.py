"""The inputs of a trace as a file has them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.examples import example_of
from daedal.driver.tables.table_sources import dtype_name, name_of
from daedal.errors import UnsupportedOperation
from daedal.runtime.saved.contents import Argument, Items, SavedInput, SavedSlot, Value


def saved_input(node: fx.Node, kind: Any) -> SavedInput:
    """A leaf, with what the trace takes as given of it: ``kind``, as ``trace/guards.py`` has it, or None."""
    name, known = _name(node), example_of(node)
    if kind is not None and len(kind) == 5:
        dtype, dims, layout, _, _ = kind
        if layout is not torch.strided:
            raise UnsupportedOperation(f"a file cannot hold input {name!r}, which is sparse: give indices and values")
        return SavedInput(name, "array", name_of(dtype), dims)
    if isinstance(known, Tensor):
        return SavedInput(name, "array", dtype_name(known), known.ndim)
    if kind is None and known is None:
        return SavedInput(name, "any")
    if known is None or isinstance(known, bool | int | float | str):
        return SavedInput(name, "constant", constant=known)
    raise UnsupportedOperation(f"a file cannot hold input {name!r} of type {type(known).__name__}")


def slots_of(
    spec: pytree.TreeSpec | None,
    used: Sequence[tuple[str, bool]],
    by_position: Sequence[str],
    by_name: Sequence[str],
) -> tuple[SavedSlot, ...]:
    """What a call is given: ``used`` are the leaves' names, and whether they may be left out; ``spec`` how they are
    nested.
    """
    if spec is None:
        return tuple(SavedSlot(name, Value(n), by_name=False, is_optional=opt) for n, (name, opt) in enumerate(used))
    numbers = iter(range(len(used)))
    positional, named = spec.children()
    slots = []
    first_by_name = len(positional.children()) - len(by_name)
    for place, child in enumerate(positional.children()):
        nest = _nest(child, numbers)
        is_named = place >= first_by_name
        fallback = used[nest.number][0] if isinstance(nest, Value) else f"input_{place}"
        name = by_name[place - first_by_name] if is_named else (*by_position, *[fallback] * (place + 1))[place]
        slots.append(SavedSlot(name, nest, by_name=is_named))
    for name, child in zip(named.context or [], named.children(), strict=True):
        slots.append(SavedSlot(str(name), _nest(child, numbers), by_name=True))
    return tuple(slots)


def leaf_names(slots: Sequence[SavedSlot]) -> list[str]:
    """What messages call the leaves, in their order."""
    found: dict[int, str] = {}
    for slot in slots:
        _name_leaves(slot.nest, slot.name, found)
    return [found[number] for number in range(len(found))]


def _name_leaves(nest: Argument, name: str, found: dict[int, str]) -> None:
    if isinstance(nest, Value):
        found[nest.number] = name
    elif isinstance(nest, Items):
        for number, part in enumerate(nest.parts):
            _name_leaves(part, f"{name}[{nest.keys[number] if nest.keys else number!r}]", found)


def _nest(spec: pytree.TreeSpec, numbers: Any) -> Argument:
    if spec.is_leaf():
        return Value(next(numbers))
    if spec.type not in (tuple, list, dict):
        raise UnsupportedOperation(
            f"a file cannot hold inputs of type {getattr(spec.type, '__name__', spec.type)}: have the module take "
            "tensors, in tuples, lists and dictionaries"
        )
    parts = tuple(_nest(child, numbers) for child in spec.children())
    return Items(spec.type.__name__, parts, tuple(spec.context) if spec.type is dict else ())


def _name(node: fx.Node) -> str:
    """What a user calls an input: Dynamo writes ``L_x_`` for ``x``."""
    name = str(node.target)
    return name[2:-1] if name.startswith("L_") and name.endswith("_") else name.lstrip("*")
