"""From a module or exported program to a graph of PyTorch operations."""

import inspect
import logging
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import Dim, ExportedProgram
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.trace.guard_code import graph_of
from daedal.compiler.frontends.torch.trace.guards import own_tensors, with_guards
from daedal.compiler.frontends.torch.trace.plain_trace import plain_trace
from daedal.errors import UnsupportedOperation

OPERATIONS = (nn.EmbeddingBag, nn.Embedding)
"""Modules that are one operation."""


class _Value(fx.Proxy):
    """A value of a trace. It has no hash: sets and dictionaries would take equal sizes for different ones."""

    def __hash__(self) -> int:
        raise TypeError("a value that is not known before the module runs has no hash")


_TRACING = threading.RLock()
"""Held while PyTorch traces: it changes ``nn.Module`` for a while, and two threads would change it back wrongly."""


class _Tracer(fx.Tracer):
    """Looks into the modules that are one operation. What other threads do with modules meanwhile is no part of it."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        if threading.get_ident() != self._thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        if threading.get_ident() != self._thread:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Value(node, self)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return super().is_leaf_module(m, module_qualified_name) and not isinstance(m, OPERATIONS)


def trace(module: nn.Module | ExportedProgram, example_inputs: Sequence[Any]) -> fx.GraphModule:
    """The operations of ``module`` for inputs like ``example_inputs``, whose sizes are left open where
    possible.

    The graph checks inputs that it was not made for, with an AssertionError. Raises UnsupportedOperation,
    with PyTorch's reason, for a module that cannot be traced.
    """
    if isinstance(module, ExportedProgram):
        graph, checks = graph_of(module)
        return with_guards(graph, checks=checks)
    with _TRACING:
        return _traced(module, example_inputs)


def _traced(module: nn.Module, example_inputs: Sequence[Any]) -> fx.GraphModule:
    if type(module) in OPERATIONS and _is_plain(module):
        return _symbolic(module, example_inputs)
    if isinstance(module, fx.GraphModule) and not any(isinstance(part, OPERATIONS) for part in module.modules()):
        return module
    plain = plain_trace(module, example_inputs)
    if plain is not None:
        graph, checks = plain
        return with_guards(graph, example_inputs, checks)
    try:
        return _export(module, example_inputs)
    except Exception as error:
        try:
            return _symbolic(module, example_inputs)
        except Exception:
            first = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
            raise UnsupportedOperation(
                f"{type(module).__name__} cannot be traced: {first}; torch.compile(backend='daedal') may take it"
            ) from error


def _is_plain(module: nn.Module) -> bool:
    """Whether a call of the module is its type's ``forward``, and nothing else."""
    hooks = module._forward_hooks or module._forward_pre_hooks or nn.modules.module._has_any_global_hook()
    return not hooks and "forward" not in module.__dict__


def _export(module: nn.Module, example_inputs: Sequence[Any]) -> fx.GraphModule:
    sizes: Any = tuple(map(_open_sizes, example_inputs))
    kinds = [parameter.kind for parameter in inspect.signature(module.forward).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        first = kinds.index(inspect.Parameter.VAR_POSITIONAL)
        sizes = (*sizes[:first], sizes[first:])
    leaves = pytree.tree_leaves(example_inputs)
    if any(isinstance(value, torch.Tensor) and value.layout is not torch.strided for value in leaves):
        sizes = None  # PyTorch exports sparse tensors with fixed sizes only: other sizes lead to another trace
    # Without gradients, as it runs: torch.no_grad in the module is then nothing to wrap operations into.
    with torch.no_grad(), warnings.catch_warnings(), _quiet("torch._export.non_strict_utils"):
        warnings.simplefilter("ignore")
        program = torch.export.export(module, own_tensors(tuple(example_inputs)), dynamic_shapes=sizes)
        graph, checks = graph_of(program)
        _check_contents(graph)
        return with_guards(graph, example_inputs, checks)


def _open_sizes(value: Any) -> Any:
    """What ``torch.export`` is told of the sizes of an input: all are open. Of classes that libraries have registered,
    such as TorchRec's KeyedJaggedTensor, it takes a list of what their parts are told, not one of theirs.
    """

    def leaf(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return dict.fromkeys(range(value.dim()), Dim.AUTO)
        registered = pytree.SUPPORTED_NODES.get(type(value))
        return None if registered is None else list(map(_open_sizes, registered.flatten_fn(value)[0]))

    return pytree.tree_map(leaf, value, is_leaf=lambda value: pytree._get_node_type(value) not in pytree.BUILTIN_TYPES)


def _check_contents(graph: nn.Module) -> None:
    """Raise ValueError if PyTorch took a tensor that it knows the shape of only for a constant, as it does for some
    gradients.
    """
    for part in graph.modules():
        for name, value in {**vars(part), **part._buffers, **part._parameters}.items():
            if isinstance(value, FakeTensor):
                raise ValueError(f"torch.export made a constant without content, {name}")


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """No notes about sizes of 0 and 1, which are then fixed: other sizes lead to another trace."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _symbolic(module: nn.Module, example_inputs: Sequence[Any]) -> fx.GraphModule:
    if "forward" in module.__dict__:
        raise ValueError("its forward was replaced, which fx does not see")
    fixed = {} if type(module) in OPERATIONS else _fixed(module, example_inputs)
    graph = _Tracer().trace(module, fixed or None)
    return fx.GraphModule(module, graph, type(module).__name__)


def _fixed(module: nn.Module, example_inputs: Sequence[Any]) -> dict[str, Any]:
    """Inputs that a trace is for one value of, which its graph checks: defaults, and what conditions may depend on."""
    fixed: dict[str, Any] = {}
    for position, (name, parameter) in enumerate(inspect.signature(module.forward).parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            break
        if position >= len(example_inputs):
            fixed |= {name: parameter.default} if parameter.default is not parameter.empty else {}
        elif example_inputs[position] is None or isinstance(example_inputs[position], bool | str):
            fixed[name] = example_inputs[position]
    return fixed
