"""Finds gathers and poolings that can be one launch: several of a graph, none of which needs another's result.

What they need is moved in front of the first of them. ``torch.cat`` along the columns of their results, which are the
last dimension, needs no copy: the machine writes each result where it belongs.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import getitem

import torch
from torch import fx

from daedal.compiler.frontends.torch.changes import Memory, OwnChanges, may_change, overlap
from daedal.compiler.frontends.torch.effects import Effects, effects_of
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.registry import is_embedding

_CATS = (torch.cat, torch.concat, torch.concatenate, torch.ops.aten.cat.default)


@dataclass(frozen=True)
class Join:
    """A concatenation, along a dimension, of nothing but results of one group; ``private`` are those parts that
    nothing else uses.
    """

    node: fx.Node
    dim: int
    parts: tuple[fx.Node, ...]
    private: frozenset[fx.Node]


@dataclass(frozen=True)
class Group:
    """Gathers and poolings for one launch, at least two, in the order of the graph, and their concatenations."""

    members: tuple[fx.Node, ...]
    joins: tuple[Join, ...]


def find_groups(graph: fx.Graph, operations: Mapping[fx.Node, Operation]) -> list[Group]:
    """The groups of ``graph``, whose nodes are reordered: all that a group needs is in front of it.

    An operation goes to the first group behind those that it needs results of. Between nodes that change what others
    see, or that draw random numbers, that is the last group or a new one.
    """
    needs: dict[fx.Node, set[fx.Node]] = {}
    found: list[_Members] = []
    open_from = 0
    """The first group that may still get more."""
    group_of: dict[fx.Node, int] = {}
    absorbed = {node for operation in operations.values() for node in operation.absorbed}
    memory, own = Memory(graph), OwnChanges(graph)
    for node in graph.nodes:
        needs[node] = set().union(*({*needs[before], before} for before in node.all_input_nodes))
        effects = own.without(node, effects_of(node))
        if effects.is_barrier or (is_embedding(node) and node not in operations and node not in absorbed):
            open_from = len(found)
        elif node in operations and operations[node].can_share:
            number = max((group_of[each] + 1 for each in needs[node] if each in group_of), default=0)
            places = range(max(number, open_from), len(found))
            number = next((n for n in places if found[n].are_quiet and _is_quiet(effects)), len(found))
            if number == len(found) and places and _can_join(node, effects, found[-1], needs, operations, memory):
                number -= 1
            if number == len(found):
                found.append(_Members())
            found[number].nodes.append(node)
            group_of[node] = number
        for members in found[open_from:]:
            members.add(node, effects)
    groups = [members.nodes for members in found if len(members.nodes) > 1]
    for group in groups:
        _gather(graph, group, needs)
    graph.lint()
    return [Group(tuple(group), tuple(_joins(graph, group, operations))) for group in groups]


@dataclass
class _Members:
    """The members of a group that is being found."""

    nodes: list[fx.Node] = field(default_factory=list)
    since: dict[fx.Node, Effects] = field(default_factory=dict)
    """What follows the first member, that one included, and what each does."""
    are_quiet: bool = True
    """None of these changes anything or draws random numbers."""

    def add(self, node: fx.Node, effects: Effects) -> None:
        """Tell of a node that follows."""
        self.since[node] = effects
        self.are_quiet &= _is_quiet(effects)


def _can_join(
    node: fx.Node,
    effects: Effects,
    group: _Members,
    needs: Mapping[fx.Node, Set[fx.Node]],
    operations: Mapping[fx.Node, Operation],
    memory: Memory,
) -> bool:
    """Whether an operation that needs none of a group can be a member where some nodes change something."""
    members = (*group.nodes, node)
    wanted = set().union(*(needs[member] for member in members))
    sources = {member: _nodes_of(operations[member]) for member in members}
    return _can_move({**group.since, node: effects}, wanted, sources, memory)


def fewest_launches(graph: fx.Graph, operations: Mapping[fx.Node, Operation]) -> int:
    """The most operations of which each needs the result of the one before: so many launches it takes at least."""
    depths: dict[fx.Node, int] = {}
    for node in graph.nodes:
        before = max((depths[each] for each in node.all_input_nodes), default=0)
        depths[node] = before + (node in operations)
    return max(depths.values(), default=0)


def _nodes_of(operation: Operation) -> list[fx.Node]:
    return [source for source in operation.sources if isinstance(source, fx.Node)]


def _is_quiet(effects: Effects) -> bool:
    return not (effects.changes or effects.draws)


def _can_move(
    nodes: Mapping[fx.Node, Effects], wanted: Set[fx.Node], members: Mapping[fx.Node, Sequence[fx.Node]], memory: Memory
) -> bool:
    """Whether what is wanted of nodes that do this, and then all members, may be in front of the others. Of members
    there is what they work on.

    It may not if it takes random numbers behind others that do, reads what they change, or changes what they use. What
    changes something or takes random numbers stays behind what may end the run.
    """
    has_changes = any(each.changes for each in nodes.values())
    draws, ends, used, changed = False, False, set[int](), set[int]()
    """Of what stays, so far; members come last, and so use what the nodes behind them must not change."""
    for node, own in nodes.items():
        moves = node in wanted
        if moves and own.draws and draws:
            return False
        if moves and ends and not _is_quiet(own):
            return False
        reads = memory.of([*node.all_input_nodes, *members.get(node, ())]) if has_changes else set[int]()
        changes = memory.of(own.changes)
        if (moves or node in members) and overlap(reads | changes, changed):
            return False
        if moves and overlap(used, changes):
            return False
        if not moves:
            used |= reads
        if not moves and node not in members:
            draws, ends, changed = draws or own.draws, ends or own.ends, changed | changes
    return True


def _gather(graph: fx.Graph, group: list[fx.Node], needs: Mapping[fx.Node, set[fx.Node]]) -> None:
    """Move what later members need in front of the first one."""
    first, *others = group
    wanted = set().union(*(needs[node] for node in others))
    is_behind = False
    for node in list(graph.nodes):
        is_behind |= node is first
        if is_behind and node in wanted:
            first.prepend(node)


def _joins(graph: fx.Graph, group: list[fx.Node], operations: Mapping[fx.Node, Operation]) -> Iterator[Join]:
    taken, members_of = set[fx.Node](), set(group)
    changes = any(effects_of(node).any_change for node in graph.nodes)
    for node in graph.nodes:
        if node.op != "call_function" or node.target not in _CATS:
            continue
        named = dict(zip(("tensors", "dim"), node.args, strict=False)) | node.kwargs
        tensors, dim = named.get("tensors"), named.get("dim", named.get("axis", 0))
        if type(dim) is not int or not dim or not isinstance(tensors, list | tuple) or "out" in named:
            continue
        parts = [_source(part, operations) for part in tensors]
        members = [part for part in parts if part in members_of and part not in taken]
        if changes and any(isinstance(part, fx.Node) and may_change([part], part, node) for part in tensors):
            continue
        if len(members) == len(parts) == len(set(parts)):
            taken.update(members)
            yield Join(node, dim, tuple(members), frozenset(part for part in members if _is_only_joined(part, node)))


def _source(part: object, operations: Mapping[fx.Node, Operation]) -> fx.Node | None:
    """The operation whose pooled rows ``part`` is."""
    if not isinstance(part, fx.Node):
        return None
    if part.op == "call_function" and part.target is getitem and part.args[1] == 0:
        source = part.args[0]
        if not isinstance(source, fx.Node):
            return None
        return source if source in operations and operations[source].gives_tuple else None
    return part if part in operations and not operations[part].gives_tuple else None


def _is_only_joined(node: fx.Node, join: fx.Node) -> bool:
    """Whether nothing but ``join`` uses the pooled rows of ``node``."""
    users = set(node.users)
    rows = {inner for user in users if user.target is getitem for inner in user.users}
    return (rows | {user for user in users if user.target is not getitem}) == {join}
