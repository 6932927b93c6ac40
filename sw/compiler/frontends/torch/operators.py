"""Which operation a node of a graph is. That is told by the very object which it calls: other libraries have operators,
functions and methods of the same names, which do something else.
"""

import builtins
import math
import operator
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from inspect import isfunction
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload, OpOverloadPacket

from daedal.compiler.frontends.torch.examples import example_of

_aten = torch.ops.aten

_OVERLOADS = (
    _aten.addmm.default,
    _aten.expand.default,
    _aten.expand_as.default,
    _aten.gather.default,
    _aten.index.Tensor,
    _aten.index_add.default,
    _aten.index_add_.default,
    _aten.index_select.default,
    _aten.item.default,
    _aten.matmul.default,
    _aten.mean.dim,
    _aten.mm.default,
    _aten.mul.Tensor,
    _aten.mv.default,
    _aten.new_ones.default,
    _aten.new_zeros.default,
    _aten.reshape.default,
    _aten.scatter_add.default,
    _aten.scatter_add_.default,
    _aten.scatter_reduce.two,
    _aten.scatter_reduce_.two,
    _aten.segment_reduce.default,
    _aten.select.int,
    _aten._sparse_addmm.default,
    _aten._sparse_mm.default,
    _aten.sum.dim_IntList,
    _aten.unsqueeze.default,
    _aten.view.default,
    _aten.zeros.default,
    _aten.zeros_like.default,
)
"""The operations of ATen that the front end knows."""

_OF_PYTHON: Mapping[object, str] = {
    operator.getitem: "getitem",
    operator.mul: "mul",
    operator.matmul: "matmul",
    torch.sparse.mm: "_sparse_mm",
    torch.sparse.addmm: "_sparse_addmm",
}

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


def _present(owner: object, name: str) -> Iterator[Hashable]:
    found = getattr(owner, name, None)
    if callable(found):
        yield found


@cache
def _known() -> dict[object, str]:
    """What graphs call for the operations that the front end knows."""
    known = dict(_OF_PYTHON)
    for overload in _OVERLOADS:
        name = overload._opname
        functions = _present(torch._C._VariableFunctions, name)  # torch itself has others, such as torch.index
        called = [overload, getattr(_aten, name), *functions, *_present(Tensor, name)]
        known |= dict.fromkeys(called, name)
    return known


def name_of(node: fx.Node) -> str:
    """ATen's name of the operation that a node is, whether it calls a function of PyTorch, a method of a tensor or an
    operation of ATen; empty if it is none of those that the front end knows.
    """
    if node.op == "call_function":
        return _known().get(node.target, "") if isinstance(node.target, Hashable) else ""
    if node.op != "call_method" or not is_of_tensor(node):
        return ""
    name = {"__getitem__": "getitem", "__mul__": "mul", "__matmul__": "matmul"}.get(str(node.target), str(node.target))
    return name if name in _known().values() else ""


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


def overloads_of(target: object) -> tuple[OpOverload[..., Any], ...]:
    """The operations that calling ``target`` may be: an overload is itself, a packet any of its overloads."""
    if isinstance(target, OpOverload):
        return (target,)
    if isinstance(target, OpOverloadPacket):
        return tuple(getattr(target, name) for name in target.overloads())
    return ()


@cache
def overloads_named(name: str) -> tuple[OpOverload[..., Any], ...]:
    """The operations of ATen with this name."""
    return overloads_of(getattr(_aten, name, None)) if name and not name.startswith("__") else ()
