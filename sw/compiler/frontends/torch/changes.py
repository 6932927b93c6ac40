"""Whether what a tensor of a graph holds may change between two nodes."""

from collections.abc import Iterable, Iterator

from torch import Tensor, fx
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.effects import effects_of
from daedal.compiler.frontends.torch.examples import example_of

_UNKNOWN, _OUTSIDE = -1, -2
"""Memory of a tensor of which tracing says nothing; and that of what a graph is given, which may all be the same."""


def may_change(values: Iterable[object], first: fx.Node, last: fx.Node) -> bool:
    """Whether a node between ``first`` and ``last`` may change what one of the tensors ``values`` holds."""
    read: set[int] | None = None
    for node in _between(first, last):
        effects = effects_of(node)
        if effects.is_barrier:
            return True
        if not effects.changes:
            continue
        if read is None:
            read = _memory((value for value in values if isinstance(value, fx.Node)), first.graph)
        changed = _memory(effects.changes, first.graph)
        if not read.isdisjoint(changed) or _UNKNOWN in read | changed:
            return True
    return False


def _between(first: fx.Node, last: fx.Node) -> Iterator[fx.Node]:
    node = first.next
    while node is not last and node.op != "root":
        yield node
        node = node.next


def _memory(nodes: Iterable[fx.Node], graph: fx.Graph) -> set[int]:
    """Which memory values lie in: views of one tensor share it."""
    outside = set[int]().union(*(_storages(node) for node in graph.nodes if node.op in ("placeholder", "get_attr")))
    found = set[int]().union(*map(_storages, nodes))
    return {_OUTSIDE if number in outside else number for number in found}


def _storages(node: fx.Node) -> set[int]:
    example = example_of(node)
    if example is None:
        return {_UNKNOWN}
    leaves = [leaf for leaf in pytree.tree_leaves(example) if isinstance(leaf, Tensor)]
    return {_storage(leaf) for leaf in leaves}


def _storage(tensor: Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # sparse tensors, and those of torch.func, have none that is theirs
        return _UNKNOWN
