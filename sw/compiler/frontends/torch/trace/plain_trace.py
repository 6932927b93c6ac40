"""Traces of modules that call functions of PyTorch, in half a millisecond a table.

``torch.export`` follows each size of each input through each operation, which takes 20 to 40 ms a table. Here functions
are written down as the module calls them, and called again as they are in each run, whatever the sizes: only those that
change nothing, draw no random numbers and give one tensor. What the module asks of sizes is written down too, see
``traced_sizes.py``. Whatever else it does, the trace is given up, and is PyTorch's.
"""

import inspect
import operator
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.effects import Effects, effects_of
from daedal.compiler.frontends.torch.operators import is_method
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.ops.quantised_bags import QuantisedBag
from daedal.compiler.frontends.torch.ops.row_bags import RowBags
from daedal.compiler.frontends.torch.ops.row_scores import RowScore
from daedal.compiler.frontends.torch.ops.sparse_products import SparseProduct
from daedal.compiler.frontends.torch.ops.whole_modules import WholeModule
from daedal.compiler.frontends.torch.registry import kind_of
from daedal.compiler.frontends.torch.trace.guard_code import Check
from daedal.compiler.frontends.torch.trace.module_snapshot import Followed
from daedal.compiler.frontends.torch.trace.traced_sizes import Sizes, node_behind, take_checks

_CHANGING = ("out", "inplace", "max_norm")
"""Arguments with which functions change a tensor."""

_CONSTANTS = (bool, int, float, str, type(None), torch.dtype, torch.device, type(Ellipsis))

_EMBEDDINGS = (functional.embedding_bag, functional.embedding)
"""Functions that may run on the device. Whether others do depends on examples, which these graphs do not have."""

FORM = "daedal_form"
"""Where a node has a tensor without content of the type and the dimensions that its value has, and of some sizes."""

_OF_ROWS = (QuantisedBag, RowBags, WholeModule)
"""Operators on tables of bytes: they run on the device, or not, whatever examples say."""

_OF_SIZES = ("squeeze", "squeeze_copy")
"""Functions whose results have as many dimensions as sizes say."""

_SHAPE, _DTYPE, _NDIM, _DEVICE = (
    getattr(Tensor, name).__get__ for name in ("shape", "dtype", "ndim", "device")
)  # fmt: skip
_INDEXING = (Tensor.__getitem__, operator.getitem)
_VIEWS = {Tensor.mT.__get__: lambda matrix: ("transpose", (matrix, -2, -1))}  # type: ignore[attr-defined]
"""Attributes that are a tensor, and the methods that give it."""


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
        self._sizes = Sizes(self.graph, self.give_up)
        own = chain(module.named_buffers(), module.named_parameters())
        self._names = {id(value): name for name, value in own}

    def give_up(self) -> _GivenUp:
        """The error for what is no part of such a trace."""
        self.has_given_up = True
        return _GivenUp()

    def take(self, value: Tensor, node: fx.Node) -> Tensor:
        """The tensor is the value of this node."""
        self._nodes[id(value)] = node
        node.meta[FORM] = value
        self._kept.append(value)
        return value

    def node_of(self, value: Any) -> Any:
        """What an argument or a result is in the graph."""
        if isinstance(value, torch.Size):
            return tuple(map(self.node_of, value))
        if isinstance(value, list | tuple):
            if type(value) not in (list, tuple):
                raise self.give_up()
            return type(value)(map(self.node_of, value))
        if isinstance(value, slice):
            return slice(*map(self.node_of, (value.start, value.stop, value.step)))
        if (size := node_behind(value)) is not None:
            return size.value if size.source is None else size.source
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
        """What a function is called with instead: tensors without content, and sizes as numbers."""
        if isinstance(value, list | tuple):
            found = map(self._stand_in, value)
            return type(value)(found)
        if isinstance(value, slice):
            return slice(*map(self._stand_in, (value.start, value.stop, value.step)))
        if (size := node_behind(value)) is not None:
            return size.value
        if not isinstance(value, Tensor) or value.is_meta:
            return value
        if id(value) not in self._stand_ins:
            self._stand_ins[id(value)] = without_content(value)
        return self._stand_ins[id(value)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if not _is_ordinary():
            raise self.give_up()
        if args and isinstance(args[0], Tensor) and (asked := self._asked(func, args, given)) is not None:
            return asked[0]
        if any(given.get(name) not in (None, False) for name in _CHANGING):
            raise self.give_up()
        if func in _INDEXING and isinstance((args[1] if isinstance(args[1], tuple) else args[1:])[0], Tensor | list):
            raise self.give_up()  # rows of a table, maybe
        if func in _EMBEDDINGS and any(node_behind(value) for value in (*args, *given.values())):
            raise self.give_up()  # its options are constants
        if func is functional.embedding_bag and any(each.is_floating_point() for each in args[:1]):
            raise self.give_up()  # the table in front of the indices, as it once was
        node = self._write(func, self.node_of(args), {name: self.node_of(value) for name, value in given.items()})
        found = func(*self._stand_in(args), **{name: self._stand_in(value) for name, value in given.items()})
        if type(found) is not Tensor or found.layout is not torch.strided or not (found.is_meta or found.is_cpu):
            raise self.give_up()
        # One that is given back is another one to the module; one of numbers is a constant, which each run makes anew.
        is_new = found.is_meta and all(found is not value for value in pytree.tree_leaves((args, given)))
        return self.take(found if is_new else without_content(found), node)

    def _asked(self, func: Any, args: Any, given: dict[str, Any]) -> tuple[Any] | None:
        """What is asked of a tensor and follows from its size, or from what its kind says; None if a function works on
        it.
        """
        tensor = args[0]
        if func == _NDIM or func is Tensor.dim:
            return (tensor.ndim,)
        if func == _DTYPE:
            return (tensor.dtype,)
        if func == _DEVICE:
            return (torch.device("cpu"),)
        node = self.node_of(tensor)
        if func is Tensor.__len__ and tensor.ndim:
            return (int(self._sizes.size(node, 0, tensor.shape[0])),)
        if func == _SHAPE or (func is Tensor.size and len(args) == 1 and not given):
            return (self._sizes.of(node, tensor.shape),)
        if func is Tensor.size:
            dimension = args[1] if len(args) > 1 else given.get("dim")
            if type(dimension) is not int:
                raise self.give_up()
            return (self._sizes.size(node, dimension % tensor.ndim, tensor.shape[dimension]),)
        return None

    def _write(self, func: Any, args: Any, given: dict[str, Any]) -> fx.Node:
        """The node for a call, if that does nothing but give a result."""
        node: fx.Node
        if func in _INDEXING:
            return self.graph.call_function(operator.getitem, args, given)
        if func in _VIEWS:
            return self.graph.call_method(*_VIEWS[func](*args))
        name = getattr(func, "__name__", "")
        if func in _EMBEDDINGS or not is_method(func):
            node = self.graph.call_function(func, args, given)
        else:
            node = self.graph.call_method(name, args, given)
        is_quiet = effects_of(node) == Effects() and not name.endswith("_") and name not in _OF_SIZES
        kind = None if func in _EMBEDDINGS else kind_of(node)
        if not is_quiet or not (kind is None or issubclass(kind, _OF_ROWS) or _is_dense(node, kind)):
            raise self.give_up()
        return node


def _is_dense(node: fx.Node, kind: type[Operation]) -> bool:
    """Whether an operation is none for the device: all matrices are dense here, and no factor is of gathered rows."""
    return issubclass(kind, SparseProduct) or (issubclass(kind, RowScore) and not _has_gathered(node))


def _has_gathered(node: fx.Node) -> bool:
    """Whether gathered rows may stand in what a node works on: joined to others, they are copied anyway."""
    seen: set[fx.Node] = set()
    operands = node.args[1:] if isinstance(node.args[0], str) else node.args  # the first of einsum's is its equation
    left = [each for each in pytree.tree_leaves((operands, node.kwargs)) if isinstance(each, fx.Node)]
    while left:
        value = left.pop()
        if value.target is functional.embedding:
            return True
        if value not in seen:
            seen.add(value)
            left += [each for each in (*value.args, *value.kwargs.values()) if isinstance(each, fx.Node)]
    return False


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


def plain_trace(module: nn.Module, example_inputs: Sequence[Any]) -> tuple[fx.GraphModule, Check | None] | None:
    """The graph of a module that does nothing else for inputs like these, to be run without gradients, and the checks
    of its inputs' sizes if there are any; None for other modules. The graph does not check its inputs.
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
        checks = take_checks(recorder.graph)
    except Exception:  # PyTorch's own trace finds it as well, and says what it is
        return None
    if recorder.has_given_up or not before.is_current():
        return None
    arguments = [f"input_{number}" for number in range(len(inputs))]
    recorder.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(arguments, spec, result_spec)))
    return fx.GraphModule(module, recorder.graph, type(module).__name__), checks


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
