"""Whether what a tensor of a graph holds may change between two nodes."""

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from torch import Tensor, fx
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.effects import Effects, effects_of
from daedal.compiler.frontends.torch.examples import example_of

_UNKNOWN, _OUTSIDE = -1, -2
"""Memory of a tensor of which tracing says nothing; and that of what a graph is given, which may all be the same."""


def may_change(values: Iterable[object], first: fx.Node, last: fx.Node) -> bool:
    """Whether a node between ``first`` and ``last`` may change what one of the tensors ``values`` holds."""
    read: set[int] | None = None
    memory = Memory(first.graph)
    for node in _between(first, last):
        effects = effects_of(node)
        if effects.is_barrier:
            return True
        if not effects.changes:
            continue
        if read is None:
            read = memory.of(value for value in values if isinstance(value, fx.Node))
        if overlap(read, memory.of(effects.changes)):
            return True
    return False


class Memory:
    """Which memory the tensors of a graph lie in, as numbers: views of one tensor share it."""

    def __init__(self, graph: fx.Graph) -> None:
        given = (node for node in graph.nodes if node.op in ("placeholder", "get_attr"))
        self._outside = set[int]().union(*map(_storages, given))

    def of(self, nodes: Iterable[fx.Node]) -> set[int]:
        """That of these nodes; what a graph is given may all be the same."""
        found = set[int]().union(*map(_storages, nodes))
        return {_OUTSIDE if number in self._outside else number for number in found}


class OwnChanges:
    """Changes of tensors that nothing sees but through the result of the node that changes them, such as sums that are
    added to zeros made for them: these are in order wherever the node is behind what it needs.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self._sharing: dict[int, list[fx.Node]] = {}
        for node in graph.nodes:
            for storage in _storages(node):
                self._sharing.setdefault(storage, []).append(node)

    def without(self, node: fx.Node, effects: Effects) -> Effects:
        """The effects of a node but for such changes."""
        others = frozenset(each for each in effects.changes if not self._is_own(each, node))
        return replace(effects, changes=others) if others != effects.changes else effects

    def _is_own(self, changed: fx.Node, node: fx.Node) -> bool:
        """Whether what shares memory with ``changed`` and comes before it was made in the graph, and each of these is
        only used by the next one, and the last one by ``node``.
        """
        storages = _storages(changed)
        if len(storages) != 1 or _UNKNOWN in storages:
            return False
        sharing = self._sharing[storages.pop()]
        before = sharing[: sharing.index(changed) + 1]
        users = zip(before, [*before[1:], node], strict=True)
        return before[0].op.startswith("call_") and all(set(each.users) == {user} for each, user in users)


def overlap(read: Set[int], changed: Set[int]) -> bool:
    """Whether what is changed may be what is read."""
    return bool(changed) and (not read.isdisjoint(changed) or _UNKNOWN in read | changed)


def _between(first: fx.Node, last: fx.Node) -> Iterator[fx.Node]:
    node = first.next
    while node is not last and node.op != "root":
        yield node
        node = node.next


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
