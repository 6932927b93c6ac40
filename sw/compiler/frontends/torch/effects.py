"""What nodes of a graph do besides giving a result: what they change, and whether they take random numbers.

What is not known to leave everything alone is taken to change everything.
"""

import inspect
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from operator import attrgetter, or_
from typing import Any

import torch
from torch import Tensor, fx
from torch._library.utils import is_impure
from torch._ops import HigherOrderOperator, OpOverload

from daedal.compiler.frontends.torch.operators import (
    CHANGING,
    is_method,
    is_of_numbers,
    is_of_operator,
    is_of_tensor,
    is_pytorchs,
    operator_of,
    overloads_named,
    overloads_of,
    parameters_of,
)
from daedal.compiler.frontends.torch.trace.guards import Guards

_DRAWING = ("dropout", "gumbel", "fractional_max_pool")
"""Parts of names of PyTorch's functions that draw random numbers, and that no operation of ``aten`` is called by."""

_UNDECLARED = ("running_mean", "running_var")
"""Parameters that operations of PyTorch change when they train, and do not say so."""

_QUIET_METHODS = (
    "bfloat16",
    "bool",
    "byte",
    "char",
    "double",
    "float",
    "half",
    "int",
    "long",
    "ndimension",
    "nelement",
    "new_tensor",
    "short",
    "to_sparse_coo",
    "tolist",
    "type",
    "unique",
)
"""Methods of tensors that change nothing, and that no operation of ``aten`` is called by."""

_QUIET_FUNCTIONS = ("asarray", "as_tensor", "finfo", "iinfo", "promote_types", "result_type", "tensor")
"""Functions of ``torch`` of that kind."""

_QUIET_OTHERS: tuple[object, ...] = (
    attrgetter("_get_data_attr")(torch._C._autograd),
    torch._C._log_api_usage_once,
    *(getattr(torch, f"{kind}Tensor") for kind in ("Bool", "Byte", "Char", "Double", "Float", "Int", "Long", "Short")),
)
"""What Dynamo calls for an attribute of a tensor, ``data``; what modules call when they are made; old constructors."""

_RUNNING = (
    "associative_scan",
    "autograd_function_apply",
    "cond",
    "hints_wrapper",
    "invoke_subgraph",
    "map_impl",
    "scan",
    "tag_activation_checkpoint",
    "while_loop",
    "wrap",
    "wrap_activation_checkpoint",
    "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
)
"""Higher-order operators that do what their graphs do, and nothing else."""

_DECLARING = ("aten", "prims", "prim", "daedal")
"""Namespaces whose operators say that they draw random numbers; others need not."""

_CERTAIN = (torch.ops.aten._assert_tensor_metadata.default,)
"""Checks of what the checks of a graph's inputs have ensured."""

_ENDING = (
    torch.ops.aten._assert_scalar.default,
    torch.ops.aten._assert_async.default,
    torch.ops.aten._assert_async.msg,
)
"""Checks of numbers, as of sizes that depend on data, which raise an error or do nothing."""


@dataclass(frozen=True)
class Effects:
    """What a node does besides giving a result.

    Attributes
    ----------
    changes
        The nodes whose tensors it changes.
    is_barrier
        It may change any tensor, or what PyTorch does or remembers from there on; or it may end the run in other ways
        than by an error of its own.
    draws
        It may take random numbers, which come in turn.
    ends
        It may end the run by an error.
    """

    changes: frozenset[fx.Node] = frozenset()
    is_barrier: bool = False
    draws: bool = False
    ends: bool = False

    def __or__(self, other: "Effects") -> "Effects":
        return Effects(
            self.changes | other.changes,
            self.is_barrier or other.is_barrier,
            self.draws or other.draws,
            self.ends or other.ends,
        )

    @property
    def any_change(self) -> bool:
        """Whether something is not after it as it was before, random numbers aside, or nothing may come after it."""
        return self.is_barrier or self.ends or bool(self.changes)


_NONE = Effects()
_ANYTHING = Effects(is_barrier=True, draws=True)


def effects_of(node: fx.Node) -> Effects:
    """The effects of a node."""
    match node.op:
        case "call_function":
            return _of_function(node)
        case "call_method":
            return _of_method(node, str(node.target)) if is_of_tensor(node) else _ANYTHING
        case "call_module":
            return _of_module(node)
        case _:
            return _NONE


def writes_out(node: fx.Node) -> bool:
    """Whether a node writes its result into a tensor that it is given."""
    return node.kwargs.get("out") is not None


# ---------------------------------------------------------------------- what is called


def _of_function(node: fx.Node) -> Effects:
    target = node.target
    if isinstance(target, HigherOrderOperator):
        return _of_graphs(node) if target in _running() else _ANYTHING
    if overloads := overloads_of(target):
        return _of_overloads(node, overloads)
    if is_of_numbers(target) or target in _QUIET_OTHERS:
        return _NONE
    name = str(getattr(target, "__name__", ""))
    if is_of_operator(target):
        return _first(node) if name in CHANGING else _NONE
    if overloads := overloads_of(operator_of(target)):
        return _of_overloads(node, overloads)
    if is_method(target):
        return _of_method(node, name)
    if not is_pytorchs(target):
        return _ANYTHING
    if inspect.isfunction(target):
        return _of_python(node, name)
    if overloads := overloads_named(name):
        return _of_overloads(node, overloads)
    return _NONE if name in _QUIET_FUNCTIONS else _ANYTHING


def _of_method(node: fx.Node, name: str) -> Effects:
    if name.startswith("__"):
        if not is_of_operator(getattr(operator, name, None)):
            return _ANYTHING
        return _first(node) if name.strip("_") in CHANGING else _NONE
    if name in _QUIET_METHODS:
        return _NONE
    overloads = overloads_named(name)
    return _of_overloads(node, overloads) if overloads else _ANYTHING


def _of_module(node: fx.Node) -> Effects:
    owner = node.graph.owning_module
    module = None if owner is None else owner.get_submodule(str(node.target))
    if isinstance(module, Guards):
        return _NONE
    return _of_inner([module], node.all_input_nodes) if isinstance(module, fx.GraphModule) else _ANYTHING


def _of_overloads(node: fx.Node, overloads: Iterable[OpOverload[..., Any]]) -> Effects:
    """The effects of an operation that is one of these."""
    return reduce(or_, (_of_overload(node, overload) for overload in overloads), _NONE)


def _of_overload(node: fx.Node, overload: OpOverload[..., Any]) -> Effects:
    if overload in _ENDING:
        return Effects(ends=True)
    schema, changed = overload._schema, list[Any]()
    places = [each.name for each in schema.arguments if not each.kwarg_only]  # the last may be of many sizes
    given = dict(zip(places, node.args, strict=False)) | node.kwargs
    for argument in schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            changed.append(given.get(argument.name))
    changed += _silently_changed(given)
    draws = torch.Tag.nondeterministic_seeded in overload.tags and not _is_in_use(given)
    draws = draws or overload.namespace not in _DECLARING
    ends = not schema.returns and not schema.is_mutable and overload not in _CERTAIN
    return Effects(_nodes(changed), ends or _is_declared(overload), draws)


def _is_in_use(given: Mapping[str, Any]) -> bool:
    """Whether an operation is told that a model is not trained: nothing is dropped then, and nothing drawn."""
    return any(given.get(name) is False for name in ("train", "training"))


def _is_declared(overload: OpOverload[..., Any]) -> bool:
    """Whether an operator is registered as one that has effects."""
    return overload not in _CERTAIN and not overload._schema.is_mutable and is_impure(overload, impure_random=False)


def _of_python(node: fx.Node, name: str) -> Effects:
    """The effects of one of PyTorch's functions that are written in Python."""
    given = _arguments(node)
    changed = [given.get("out"), *_silently_changed(given)]
    changed += [given.get("input")] if given.get("inplace") or name.endswith("_") else []
    changed += [given.get("weight")] if given.get("max_norm") is not None else []
    trains = given.get("training") not in (None, False)
    draws = trains or (any(part in name for part in _DRAWING) and given.get("training") is not False)
    return Effects(_nodes(changed), draws=draws)


def _silently_changed(given: Mapping[str, Any]) -> list[Any]:
    trains = given.get("training", given.get("use_input_stats", given.get("train", True)))
    return [] if trains is False else [given.get(name) for name in _UNDECLARED]


def _of_graphs(node: fx.Node) -> Effects:
    """The effects of a higher-order operator, which does what its graphs do with its operands."""
    graphs, operands = list[fx.GraphModule](), list[fx.Node]()
    for source in node.all_input_nodes:
        value = _attribute(source)
        if isinstance(value, fx.GraphModule):
            graphs.append(value)
        else:
            operands.append(source)
    is_known = graphs and not any(callable(each) and not isinstance(each, fx.Node) for each in node.args)
    return _of_inner(graphs, operands) if is_known else _ANYTHING


def _of_inner(graphs: Iterable[fx.GraphModule], operands: Iterable[fx.Node]) -> Effects:
    nodes = [inner for graph in graphs for inner in graph.graph.nodes]
    inside = reduce(or_, map(effects_of, nodes), _NONE)
    if not inside.changes:
        return inside
    has_own = any(isinstance(_attribute(inner), Tensor) for inner in nodes)
    return Effects(frozenset(operands), inside.is_barrier or has_own, inside.draws, inside.ends)


def _attribute(node: fx.Node) -> object:
    """What a node takes from the module that its graph belongs to; None for another node."""
    owner = node.graph.owning_module
    if node.op != "get_attr" or owner is None:
        return None
    found: object = attrgetter(str(node.target))(owner)
    return found


@cache
def _running() -> frozenset[object]:
    found = (getattr(torch.ops.higher_order, name, None) for name in _RUNNING)
    return frozenset(each for each in found if each is not None)


# ---------------------------------------------------------------------- what it is given


def _first(node: fx.Node) -> Effects:
    return Effects(_nodes(node.args[:1]))


def _nodes(values: Any) -> frozenset[fx.Node]:
    found: list[fx.Node] = []
    fx.map_arg(values, found.append)
    return frozenset(found)


def _arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments of a function written in Python by name, with its defaults."""
    assert callable(node.target)
    names, defaults = parameters_of(node.target)
    return defaults | dict(zip(names, node.args, strict=False)) | node.kwargs
