"""Sizes of tensors while a plain trace runs: numbers that know which nodes of the graph give them.

They are PyTorch's symbolic integers, whose nodes are ours: each has the number that it is for the examples. What is
computed with them is a node again. What asks for the number itself (a loop, a condition, an index of a list) gets it,
and from there on the trace is for this number: that is checked in each run.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

Number = int | bool

_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mod": operator.mod,
    "int_floordiv": operator.floordiv,
}
_CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def check_size(found: Number, wanted: Number) -> None:
    """In graphs: raises AssertionError unless a size, or what was computed with some, is as it was in the trace."""
    if found != wanted:
        raise AssertionError(f"what the module asks of sizes must be {wanted}, not {found}")


class Sizes:
    """The sizes of one trace.

    Parameters
    ----------
    graph
        The graph that is being written.
    give_up
        What to raise where the module asks for something that is not known here.
    """

    def __init__(self, graph: fx.Graph, give_up: Callable[[], Exception]) -> None:
        self.graph, self.give_up = graph, give_up
        self._known: dict[tuple[fx.Node, int], Any] = {}
        self._fixed: set[fx.Node] = set()

    def of(self, node: fx.Node, shape: torch.Size) -> torch.Size:
        """The sizes of a tensor, as the module is to see them."""
        return torch.Size([self.size(node, dimension, size) for dimension, size in enumerate(shape)])

    def size(self, node: fx.Node, dimension: int, size: int) -> Any:
        """One of its sizes."""
        key = node, dimension
        if key not in self._known:
            found = self.graph.call_method("size", (node, dimension))
            self._known[key] = wrapped(_Node(self, found, size))
        return self._known[key]

    def fix(self, node: fx.Node, value: Number) -> None:
        """The trace is for this value of the node only."""
        if node not in self._fixed:
            self._fixed.add(node)
            self.graph.call_function(check_size, (node, value))


def wrapped(node: "_Node") -> Any:
    """The number that the module sees."""
    make: Any = torch.SymBool if node.is_bool() else torch.SymInt
    return make(node)


def node_behind(value: object) -> "_Node | None":
    """What is behind a number of some trace; None for all other values."""
    node = value.node if isinstance(value, torch.SymInt | torch.SymBool) else None
    return node if isinstance(node, _Node) else None


class _Node:
    """What PyTorch asks of the node behind a symbolic number. ``source`` is None for a constant."""

    def __init__(self, sizes: Sizes, source: fx.Node | None, value: Number) -> None:
        self.sizes, self.source, self.value = sizes, source, value

    def __getattr__(self, name: str) -> Any:
        """Everything else ends the trace, whoever catches what says so."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.sizes.give_up()

    def is_int(self) -> bool:
        """Of numbers that are no booleans."""
        return not isinstance(self.value, bool)

    def is_bool(self) -> bool:
        """Of conditions."""
        return isinstance(self.value, bool)

    def is_float(self) -> bool:
        """Never."""
        return False

    is_constant = is_float

    def is_nested_int(self) -> bool:
        """Is asked where a hash is wanted, which there is none of: the module may catch what PyTorch says of that."""
        raise self.sizes.give_up()

    def is_symbolic(self) -> bool:
        """Always."""
        return True

    def has_hint(self) -> bool:
        """Always: its value is known."""
        return True

    def maybe_as_int(self) -> None:
        """It is no constant to PyTorch."""
        return

    maybe_as_bool = maybe_as_float = maybe_as_int

    def wrap_int(self, value: int) -> "_Node":
        """A constant."""
        return _Node(self.sizes, None, value)

    wrap_bool = wrap_int

    def guard_int(self, file: str, line: int) -> int:
        """The number itself."""
        return int(self._fixed())

    def guard_bool(self, file: str, line: int) -> bool:
        """The condition itself."""
        return bool(self._fixed())

    def int_(self) -> int:
        """The number itself."""
        return int(self._fixed())

    def bool_(self) -> bool:
        """The condition itself."""
        return bool(self._fixed())

    def str(self) -> str:
        """The number in words, which the module may do anything with."""
        return repr(self._fixed())

    __str__ = __repr__ = _graph_repr = str

    def neg(self) -> "_Node":
        """The number with the other sign."""
        return self._made(operator.neg, -self.value)

    def pos(self) -> "_Node":
        """The number."""
        return self

    def _fixed(self) -> Number:
        if self.source is not None:
            self.sizes.fix(self.source, self.value)
        return self.value

    def _made(self, function: Callable[..., Number], value: Number, *others: "_Node") -> "_Node":
        given = tuple(each.value if each.source is None else each.source for each in (self, *others))
        if all(not isinstance(each, fx.Node) for each in given):
            return _Node(self.sizes, None, value)
        return _Node(self.sizes, self.sizes.graph.call_function(function, given), value)


def _binary(function: Callable[[int, int], Number]) -> Callable[[_Node, _Node], _Node]:
    def apply(node: _Node, other: _Node) -> _Node:
        if not isinstance(other, _Node) or other.sizes is not node.sizes:
            raise node.sizes.give_up()
        return node._made(function, function(node.value, other.value), other)

    return apply


for _name, _function in (_INTEGERS | _CONDITIONS).items():
    setattr(_Node, _name, _binary(_function))


def take_checks(graph: fx.Graph) -> Callable[..., None] | None:
    """Take what is checked of the inputs' sizes alone out of a graph: a function of all inputs, which raises
    AssertionError; None if there is nothing. Sizes that nobody needs go too.

    What is checked of other sizes stays, and ends a run that the graph is not for in its midst.
    """
    places, early = graph.find_nodes(op="placeholder"), dict[fx.Node, None]()
    for node in graph.nodes:
        if (is_size(node) or node.target is check_size) and all(
            each in early or each.op == "placeholder" for each in node.all_input_nodes
        ):
            early[node] = None
    checks, nodes = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in (*places, *early):
        nodes[node] = checks.node_copy(node, nodes.__getitem__)
    checks.output(None)
    has_any = any(node.target is check_size for node in early)
    for node in reversed(list(graph.nodes)):
        if (node in early and node.target is check_size) or (is_size(node) and not node.users):
            graph.erase_node(node)
    if not has_any:
        return None
    for node in reversed(list(checks.nodes)):
        if is_size(node) and not node.users:
            checks.erase_node(node)
    check: Callable[..., None] = fx.GraphModule(nn.Module(), checks).forward
    return check


def is_size(node: fx.Node) -> bool:
    """Whether a node is a size, or made of some."""
    return node.target == "size" if node.op == "call_method" else node.target in _FUNCTIONS


_FUNCTIONS = frozenset((*_INTEGERS.values(), *_CONDITIONS.values(), operator.neg))
"""What sizes are combined by."""
