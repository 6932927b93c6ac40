"""What nodes of a graph change in place, in PyTorch's state, and in the order of random numbers."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.examples import example_of

_IN_PLACE = (
    "setitem", "delitem", "iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow",
    "irshift", "isub", "itruediv", "ixor",
)  # fmt: skip
"""Functions of ``operator`` that change their first argument."""

_STATES = ("grad_enabled", "autocast", "inference_mode")
"""Parts of names of functions after which PyTorch computes or remembers something else."""

_DRAWING = ("dropout", "gumbel", "fractional_max_pool")
"""Parts of names of functions that draw random numbers, and that no operation of ``aten`` is called by."""


def has_effects(node: fx.Node) -> bool:
    """Whether a node may change a tensor that another one reads, or whether PyTorch remembers what comes after it."""
    if node.op == "call_function":
        schema = getattr(node.target, "_schema", None)
        if schema is not None:
            return bool(schema.is_mutable)
        name = getattr(node.target, "__name__", "")
        if any(state in name for state in _STATES) or name.endswith("_") or name in _IN_PLACE:
            return True
        given = _arguments(node)
        return bool(given.get("inplace")) or given.get("out") is not None or given.get("max_norm") is not None
    return node.op == "call_module" or (node.op == "call_method" and str(node.target).endswith("_"))


def writes_out(node: fx.Node) -> bool:
    """Whether a node writes its result into a tensor that it is given."""
    return node.kwargs.get("out") is not None


def draws(node: fx.Node) -> bool:
    """Whether a node may take random numbers, which come in turn."""
    if not node.op.startswith("call_") or _arguments(node).get("training") is False:
        return False
    if isinstance(node.target, torch._ops.OpOverload):
        return torch.Tag.nondeterministic_seeded in node.target.tags
    name = str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", "")
    return any(part in name for part in _DRAWING) or _aten_draws(name)


@cache
def _aten_draws(name: str) -> bool:
    """Whether the operation of ``aten`` with this name takes random numbers."""
    packet = getattr(torch.ops.aten, name, None)
    overloads = packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else []
    return any(torch.Tag.nondeterministic_seeded in getattr(packet, each).tags for each in overloads)


def may_change(values: Iterable[object], first: fx.Node, last: fx.Node) -> bool:
    """Whether a node between ``first`` and ``last`` may change what one of the tensors ``values`` holds."""
    read: set[int] | None = None
    for node in _between(first, last):
        if not has_effects(node):
            continue
        if read is None:
            read = _memory(value for value in values if isinstance(value, fx.Node))
        changed = _memory(_changed(node))
        if not read.isdisjoint(changed) or _UNKNOWN in read | changed:
            return True
        given = _memory(each for each in node.graph.nodes if each.op in ("placeholder", "get_attr"))
        if not given.isdisjoint(read) and not given.isdisjoint(changed):
            return True  # inputs may share memory that tracing keeps apart: a tensor's and that of a NumPy array
    return False


_UNKNOWN = -1
"""Memory of a tensor of which tracing says nothing."""


def _between(first: fx.Node, last: fx.Node) -> Iterator[fx.Node]:
    node = first.next
    while node is not last and node.op != "root":
        yield node
        node = node.next


def _changed(node: fx.Node) -> list[fx.Node]:
    """The inputs that a node with effects changes, or all if that is not known."""
    schema = getattr(node.target, "_schema", None)
    changed: list[Any] = []
    if schema is not None:
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                changed.append(node.args[position] if position < len(node.args) else node.kwargs.get(argument.name))
    elif node.op != "call_module":
        given = _arguments(node)
        renormalises = given.get("max_norm") is not None
        changed = [given.get("weight")] if renormalises else [*node.args[:1], given.get("input"), given.get("out")]
    found: list[fx.Node] = []
    fx.map_arg(changed, found.append)
    return found or node.all_input_nodes


def _arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments by name, of a function written in Python; of another one those that are given by name."""
    names = _parameters(node.target) if node.op == "call_function" and callable(node.target) else ()
    return dict(zip(names, node.args, strict=False)) | node.kwargs


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters that can be given by position; none if it does not tell."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(each.name for each in found if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD))


def _memory(nodes: Iterable[fx.Node]) -> set[int]:
    """Which memory values lie in: views of one tensor share it."""
    found = set()
    for node in nodes:
        example = example_of(node)
        if example is None:
            found.add(_UNKNOWN)
        elif isinstance(example, Tensor) and example.layout is torch.strided:
            found.add(example.untyped_storage()._cdata)
    return found
