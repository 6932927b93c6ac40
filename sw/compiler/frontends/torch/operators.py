"""Which operator a node of a graph calls: one of a namespace, with its overload. That is told by the very object which
it calls: other libraries have operators, functions and methods of the same names, which do something else.
"""

import builtins
import inspect
import math
import operator
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from inspect import isfunction
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload, OpOverloadPacket

from daedal.compiler.frontends.torch.examples import example_of

Overload = OpOverload[..., Any]
Packet = OpOverloadPacket[..., Any]

_aten = torch.ops.aten

_OF_PYTHON: Mapping[object, Overload] = {
    operator.getitem: _aten.index.Tensor,
    operator.mul: _aten.mul.Tensor,
    operator.matmul: _aten.matmul.default,
    torch.sparse.mm: _aten._sparse_mm.default,
    torch.sparse.addmm: _aten._sparse_addmm.default,
}
"""Functions with names of their own."""

_WRITTEN_IN_PYTHON: tuple[ModuleType, ...] = (torch.functional, torch.nn.functional)
_MODULES = (*_WRITTEN_IN_PYTHON, torch, torch.fft, torch.linalg, torch.special, torch.sparse, torch._C._nn)
"""Where those functions of PyTorch's are that work on tensors alone. Others in ``torch`` itself change its state."""

CHANGING = (
    "setitem",
    "delitem",
    "iadd",
    "iand",
    "iconcat",
    "ifloordiv",
    "ilshift",
    "imatmul",
    "imod",
    "imul",
    "ior",
    "ipow",
    "irshift",
    "isub",
    "itruediv",
    "ixor",
)
"""Functions of ``operator`` that change their first argument."""

_CALLING = ("call", "methodcaller", "attrgetter", "itemgetter")
"""Functions of ``operator`` that run, or make, something else."""

_OF_NUMBERS = (
    *(
        getattr(builtins, name)
        for name in ("abs", "bool", "divmod", "float", "int", "len", "max", "min", "pow", "round", "sum")
    ),
    *(function for name, function in vars(math).items() if callable(function) and not name.startswith("_")),
)


def operator_of(target: object) -> Overload | Packet | None:
    """The operator that calling ``target`` is: an overload itself; a packet, if a function of PyTorch's, a method of
    tensors or a packet decides only when it runs which of its overloads it is. None for anything else.
    """
    return _find_operator(target) if isinstance(target, Hashable) else None


@cache
def _find_operator(target: Hashable) -> Overload | Packet | None:
    if isinstance(target, OpOverload | OpOverloadPacket):
        return target
    if target in _OF_PYTHON:
        return _OF_PYTHON[target]
    name = str(getattr(target, "__name__", ""))
    # torch itself has others, such as torch.index
    if target not in (getattr(torch._C._VariableFunctions, name, None), getattr(Tensor, name, None)):
        return None
    packet = None if name.startswith("__") else getattr(_aten, name, None)
    return packet if isinstance(packet, OpOverloadPacket) else None


def target_of(node: fx.Node) -> Hashable | None:
    """What a node calls: a function, an operator or a method of tensors; None if it calls something else."""
    if node.op == "call_function":
        return node.target if isinstance(node.target, Hashable) else None
    if node.op != "call_method" or not is_of_tensor(node):
        return None
    name = str(node.target)
    found = getattr(operator, name, None) if name.startswith("__") else getattr(Tensor, name, None)
    return found if isinstance(found, Hashable) else None


def calls(value: object, *overloads: Overload) -> bool:
    """Whether a value of a graph is a call of one of these operators; where only the run decides on the overload,
    whether it may be one.
    """
    target = target_of(value) if isinstance(value, fx.Node) else None
    found = None if target is None else operator_of(target)
    return any(found is overload or found is overload.overloadpacket for overload in overloads)


def arguments_of(node: fx.Node, overload: Overload) -> dict[str, Any]:
    """The arguments of a call by name, with its defaults; the tensor that methods belong to is ``input``. The names are
    those of the schema: of ``overload``, if only the run decides on it. A function written in Python has its own.
    """
    target = target_of(node)
    if isfunction(target):
        names, defaults = parameters_of(target)
    else:
        names, defaults = _schema_of(target if isinstance(target, OpOverload) else overload)
    return defaults | dict(zip(names, node.args, strict=False)) | node.kwargs


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of a function's parameters that can be given by position, and the defaults of all."""
    found = inspect.signature(function).parameters.values()
    names = tuple(each.name for each in found if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD))
    return names, {each.name: each.default for each in found if each.default is not each.empty}


@cache
def _schema_of(overload: Overload) -> tuple[tuple[str, ...], dict[str, Any]]:
    found = overload._schema.arguments
    names = {each.name: "input" if each.name == "self" else each.name for each in found}
    defaults = {names[each.name]: each.default_value for each in found if each.has_default_value()}
    return tuple(names[each.name] for each in found if not each.kwarg_only), defaults


def is_of_tensor(node: fx.Node) -> bool:
    """Whether a method that a node calls is one of a tensor, as far as tracing knows."""
    owner = node.args[0] if node.args else None
    example = example_of(owner)
    return isinstance(owner, fx.Node) and (example is None or isinstance(example, Tensor))


def is_pytorchs(function: object) -> bool:
    """Whether a function is one of PyTorch's public ones that work on tensors; its name is then what it does."""
    name = getattr(function, "__name__", "")
    modules = _WRITTEN_IN_PYTHON if isfunction(function) else _MODULES
    return any(vars(module).get(name) == function for module in modules)


def is_method(function: object) -> bool:
    """Whether it is a method of tensors, called as a function."""
    return getattr(Tensor, getattr(function, "__name__", ""), None) == function


def is_of_operator(function: object) -> bool:
    """Whether a function is one of ``operator`` that works on its arguments alone; it may change the first one."""
    name = getattr(function, "__name__", "")
    return name not in _CALLING and vars(operator).get(name) == function


def is_of_numbers(function: object) -> bool:
    """Whether a function makes numbers of numbers."""
    name = str(getattr(function, "__name__", ""))
    return function in _OF_NUMBERS or (name.startswith("sym_") and vars(torch).get(name) == function)


def overloads_of(target: object) -> tuple[Overload, ...]:
    """The operations that calling ``target`` may be: an overload is itself, a packet any of its overloads."""
    if isinstance(target, OpOverload):
        return (target,)
    if isinstance(target, OpOverloadPacket):
        return tuple(getattr(target, name) for name in target.overloads())
    return ()


@cache
def overloads_named(name: str) -> tuple[Overload, ...]:
    """The operations of ATen with this name."""
    return overloads_of(getattr(_aten, name, None)) if name and not name.startswith("__") else ()
