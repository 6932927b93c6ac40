"""What nodes of a graph change in place."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.examples import example_of

_IN_PLACE = (
    "setitem", "delitem", "iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow",
    "irshift", "isub", "itruediv", "ixor",
)  # fmt: skip
"""Functions of ``operator`` that change their first argument."""


def has_effects(node: fx.Node) -> bool:
    """Whether a node may change a tensor that another one reads, or whether PyTorch remembers what comes after it."""
    if node.op == "call_function":
        schema = getattr(node.target, "_schema", None)
        if schema is not None:
            return bool(schema.is_mutable)
        name = getattr(node.target, "__name__", "")
        if "grad_enabled" in name:
            return True
        in_place = name.endswith("_") or name in _IN_PLACE or bool(node.kwargs.get("inplace"))
        return in_place or node.kwargs.get("out") is not None
    return node.op == "call_module" or (node.op == "call_method" and str(node.target).endswith("_"))


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
        changed = [*node.args[:1], node.kwargs.get("input"), node.kwargs.get("out")]
    found: list[fx.Node] = []
    fx.map_arg(changed, found.append)
    return found or node.all_input_nodes


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
