"""Traces of modules that do nothing but look up, concatenate and pass through layers, in half a millisecond a table.

``torch.export`` follows each size of each input through each operation, which takes 20 to 40 ms a table. None of the
functions here depends on sizes in what it is in a graph. So a module that calls these, and asks tensors for nothing,
has the same graph for all inputs of the same kinds. Whatever else it does, the trace is given up, and is PyTorch's.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.trace.module_snapshot import Followed

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    functional.embedding_bag,
    functional.embedding,
    functional.linear,
    functional.relu,
    torch.relu,
    torch.sigmoid,
    torch.tanh,
    torch.cat,
    torch.concat,
    torch.concatenate,
)
"""None of them reads or changes anything but its arguments, if these are not told to be changed."""

_CHANGING = ("out", "inplace", "max_norm")
"""Arguments with which one of them changes a tensor."""

_CONSTANTS = (bool, int, float, str, type(None))


class _GivenUp(Exception):
    """The module does something else as well."""


class _Recorder(TorchFunctionMode):
    """Writes a graph of the functions that are called, which get tensors without content."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.graph = fx.Graph()
        self.has_given_up = False
        """Also if the module has caught what said so."""
        self._nodes: dict[int, fx.Node] = {}
        self._stand_ins: dict[int, Tensor] = {}
        self._kept: list[Tensor] = []
        """So that no other tensor gets the number of one of them."""
        own = chain(module.named_buffers(), module.named_parameters())
        self._names = {id(value): name for name, value in own}

    def give_up(self) -> _GivenUp:
        """The error for what is no part of such a trace."""
        self.has_given_up = True
        return _GivenUp()

    def take(self, value: Tensor, node: fx.Node) -> Tensor:
        """The tensor is the value of this node."""
        self._nodes[id(value)] = node
        self._kept.append(value)
        return value

    def node_of(self, value: Any) -> Any:
        """What an argument or a result is in the graph."""
        if isinstance(value, list | tuple):
            if type(value) not in (list, tuple):
                raise self.give_up()
            return type(value)(map(self.node_of, value))
        if not isinstance(value, Tensor):
            if type(value) not in _CONSTANTS:
                raise self.give_up()
            return value
        if id(value) not in self._nodes:
            if id(value) not in self._names or type(value) not in (Tensor, nn.Parameter):
                raise self.give_up()
            self._nodes[id(value)] = self.graph.get_attr(self._names[id(value)])
        return self._nodes[id(value)]

    def _stand_in(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(self._stand_in, value))
        if not isinstance(value, Tensor) or value.is_meta:
            return value
        if id(value) not in self._stand_ins:
            self._stand_ins[id(value)] = without_content(value)
        return self._stand_ins[id(value)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        changes = any(given.get(name) not in (None, False) for name in _CHANGING)
        if func not in _FUNCTIONS or changes or not _is_ordinary():
            raise self.give_up()
        if func is functional.embedding_bag and any(each.is_floating_point() for each in args[:1]):
            raise self.give_up()  # the table in front of the indices, as it once was
        node = self.graph.call_function(func, self.node_of(args), {k: self.node_of(v) for k, v in given.items()})
        found = func(*self._stand_in(args), **{name: self._stand_in(value) for name, value in given.items()})
        if type(found) is not Tensor or any(found is value for value in pytree.tree_leaves((args, given))):
            raise self.give_up()
        return self.take(found, node)


def _is_ordinary() -> bool:
    """Whether PyTorch does what is called and nothing more."""
    return not (
        torch.is_grad_enabled()
        or torch.is_inference_mode_enabled()
        or torch.is_autocast_enabled("cpu")
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
    )


def without_content(value: Tensor) -> Tensor:
    """A tensor of the same form that takes no memory."""
    return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")


def plain_trace(module: nn.Module, example_inputs: Sequence[Any]) -> fx.GraphModule | None:
    """The graph of a module that does nothing else for inputs like these, to be run without gradients; None for others.

    The graph does not check its inputs.
    """
    leaves, spec = pytree.tree_flatten((tuple(example_inputs), {}))
    names = [name for argument, value in _arguments(module, example_inputs) for name in _names(argument, value)]
    are_plain = all(leaf is None or (type(leaf) is Tensor and _has_form(leaf)) for leaf in leaves)
    is_seen = not any(isinstance(part, torch.jit.ScriptModule) for part in module.modules())  # they do as they like
    if len(names) != len(leaves) or not are_plain or not is_seen:
        return None
    before, recorder = Followed(module), _Recorder(module)
    stand_ins = [None if leaf is None else without_content(leaf) for leaf in leaves]
    for stand_in, name in zip(stand_ins, names, strict=True):
        node = recorder.graph.placeholder(name)
        if stand_in is not None:
            recorder.take(stand_in, node)
    inputs, _ = pytree.tree_unflatten(stand_ins, spec)
    try:
        with torch.no_grad(), recorder:
            result = module(*inputs)
        results, result_spec = pytree.tree_flatten(result)
        if not all(isinstance(each, Tensor) for each in results):
            return None
        recorder.graph.output(tuple(map(recorder.node_of, results)))
    except Exception:  # PyTorch's own trace finds it as well, and says what it is
        return None
    if recorder.has_given_up or not before.is_current():
        return None
    arguments = [f"input_{number}" for number in range(len(inputs))]
    recorder.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(arguments, spec, result_spec)))
    return fx.GraphModule(module, recorder.graph, type(module).__name__)


def _has_form(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.is_cpu and not (tensor.is_neg() or tensor.is_conj())


def _arguments(module: nn.Module, inputs: Sequence[Any]) -> list[tuple[str, Any]]:
    """The inputs by the names of the module's parameters; fewer if it takes them otherwise."""
    found = inspect.signature(module.forward).parameters.values()
    names = [each.name for each in found if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    rest = next((each.name for each in found if each.kind is each.VAR_POSITIONAL), None)
    names += [] if rest is None else [f"{rest}_{number}" for number in range(len(inputs))]
    return list(zip(names, inputs, strict=False))


def _names(name: str, value: Any) -> Iterator[str]:
    """Names for the leaves of an input."""
    if isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _names(f"{name}_{number}", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _names(f"{name}_{key}", each)
    else:
        yield name
