"""Which operations of a graph are trained on a device: on tables that an optimizer of ``daedal.optim`` has there."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.training.owner import Owner
from daedal.compiler.frontends.torch.training.parameter import OWNERS, owner_of
from daedal.driver.device import Device
from daedal.runtime.request import Request
from daedal.system.system import System

OWNED = "daedal_owner"
"""Where a node has the owner of the parameter that it is."""

NEEDS_GRADIENT = "it needs a gradient, and gradients are PyTorch's"


def mark_owners(graph: fx.Graph, inputs: Sequence[Any]) -> None:
    """Note of which of a graph's inputs there is an owner."""
    for node, value in zip(graph.find_nodes(op="placeholder"), inputs, strict=False):
        if (owner := owner_of(value)) is not None:
            node.meta[OWNED] = owner


def why_not_trained(operation: Operation, device: Device | System | None) -> str | None:
    """Why PyTorch does an operation that needs a gradient, as far as tracing knows; None if the device may."""
    table = operation.table
    owner = table.meta.get(OWNED) if isinstance(table, fx.Node) else None
    if not isinstance(owner, Owner) or not isinstance(table, fx.Node):
        return NEEDS_GRADIENT
    if isinstance(device, System):
        return "a System does not train: its tiles have rows of the same tables; compile for a Device"
    if len(table.users) > 1:
        return "its table is used twice, and PyTorch adds up such gradients"
    examples = map(example_of, operation.sources)
    return _why_only_table(operation, examples) or owner.why_not(operation, device)


def why_not_now(operation: Operation, sources: Sequence[Any], device: Device | None) -> str | None:
    """Why PyTorch does an operation on these values, if gradients are wanted; None if the device does."""
    if not torch.is_grad_enabled() or not any(isinstance(each, Tensor) and each.requires_grad for each in sources):
        return None
    owner = owner_of(sources[0]) if sources else None
    if not isinstance(owner, Owner):
        return NEEDS_GRADIENT
    reason = _why_only_table(operation, sources) or owner.why_not(operation, device)
    if reason is None:
        owner.table()  # where a step can change it
    return reason


def _why_only_table(operation: Operation, sources: Iterable[Any]) -> str | None:
    _, *others = sources
    if any(isinstance(each, Tensor) and each.requires_grad for each in others):
        return "its weights need a gradient, which is PyTorch's"
    return None


def fetch_rows(values: Iterable[Any]) -> None:
    """Let the host have the rows of those of these values that are parameters of a device: PyTorch works on them, in a
    graph of Dynamo's, where it does not ask parameters.
    """
    for each in values:
        if (owner := owner_of(each)) is not None:
            owner.fetch()


def tables_of_devices(graph: fx.Graph, operations: Collection[fx.Node]) -> list[tuple[int, bool]]:
    """Which inputs of a graph are tables of devices, and whether PyTorch computes with them, beside the operations."""
    return [
        (number, not all(user in operations for user in node.users))
        for number, node in enumerate(graph.find_nodes(op="placeholder"))
        if OWNED in node.meta
    ]


def fetch_tables(inputs: Sequence[Any], tables: Iterable[tuple[int, bool]], device: object) -> None:
    """Let the host have the rows of those of these inputs that it needs: for PyTorch, or for this device if another one
    has them.
    """
    for number, is_for_pytorch in tables:
        owner = owner_of(inputs[number])
        if owner is not None and (is_for_pytorch or owner.device is not device):
            owner.fetch()


def is_training(module: nn.Module | None, device: object) -> bool:
    """Whether a module has a table that is trained: its results are to have gradients then. Of tables of other devices
    than this one the host gets the rows.
    """
    if module is None or not OWNERS:
        return False
    found = False
    for each in module.parameters():
        if (owner := owner_of(each)) is not None:
            found |= each.requires_grad
            if owner.device is not device:
                owner.fetch()
    return found


def is_trained(sources: Sequence[Any]) -> bool:
    """Whether the gradient of the first of these is recorded."""
    return torch.is_grad_enabled() and owner_of(sources[0]) is not None and bool(sources[0].requires_grad)


def record(operation: Operation, request: Request, sources: Sequence[Any], rows: Tensor) -> Tensor:
    """The rows that an operation gave; their gradient is recorded if that of the table is wanted."""
    if not is_trained(sources):
        return rows
    found: Tensor = owner_of(sources[0]).record(operation, request, sources, rows)
    return found
