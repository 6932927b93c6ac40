"""Which nodes of a graph a file can hold: moves of data, and arithmetic on sizes and on tensors of integers."""

import builtins
import math
import operator
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.operators import Overload, arguments_of, calls
from daedal.compiler.frontends.torch.trace.plain_trace import FORM
from daedal.compiler.frontends.torch.trace.traced_sizes import check_size

_aten = torch.ops.aten

Move = tuple[str, tuple[Any, ...]]
"""A move by its name in ``frontends/saved/moves.py``, and its arguments, of which some are nodes."""

_ARGUMENTS: tuple[tuple[tuple[Overload, ...], str, tuple[str, ...]], ...] = (
    ((_aten.view.default, _aten._unsafe_view.default), "view", ("input", "size")),
    ((_aten.reshape.default,), "view", ("input", "shape")),
    ((_aten.expand.default,), "expand", ("input", "size")),
    ((_aten.expand_as.default,), "expand_as", ("input", "other")),
    ((_aten.unsqueeze.default,), "unsqueeze", ("input", "dim")),
    ((_aten.flatten.using_ints,), "flatten", ("input", "start_dim", "end_dim")),
    ((_aten.select.int,), "select", ("input", "dim", "index")),
    ((_aten.slice.Tensor,), "slice", ("input", "dim", "start", "end", "step")),
    ((_aten.permute.default,), "permute", ("input", "dims")),
    ((_aten.transpose.int,), "transpose", ("input", "dim0", "dim1")),
    ((_aten.t.default,), "t", ("input",)),
    ((_aten.cat.default, _aten.concat.default), "cat", ("tensors", "dim")),
    ((_aten.stack.default,), "stack", ("tensors", "dim")),
    ((_aten.split.Tensor,), "split", ("input", "split_size", "dim")),
    ((_aten.split_with_sizes.default,), "split", ("input", "split_sizes", "dim")),
    ((_aten.chunk.default,), "chunk", ("input", "chunks", "dim")),
    ((_aten.unbind.int,), "unbind", ("input", "dim")),
    ((_aten.sym_size.int,), "size", ("input", "dim")),
    ((_aten.sym_numel.default, _aten.numel.default), "numel", ("input",)),
    ((_aten.zeros_like.default,), "zeros_like", ("input",)),
    *(
        ((each,), "same", ("input",))
        for each in (_aten.alias.default, _aten.clone.default, _aten.contiguous.default, _aten.detach.default)
    ),
)
"""Operators, the move that each is, and those of its arguments that the move takes."""

_ARITHMETIC: Mapping[Overload, str] = {
    getattr(getattr(_aten, name), overload): name
    for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Tensor", "Scalar")
}
_ON_NUMBERS = {
    getattr(operator, name): name
    for name in ("add", "sub", "mul", "floordiv", "mod", "neg", "eq", "ne", "lt", "le", "gt", "ge")
}


def form_of(value: Any) -> Any:
    """What is known of a value: a tensor without content, a number, or nothing; its sizes may be others."""
    known = example_of(value)
    if known is not None or not isinstance(value, fx.Node):
        return known
    if value.op == "get_attr":
        return attrgetter(str(value.target))(value.graph.owning_module)
    return value.meta.get(FORM)


def move_of(node: fx.Node) -> Move | None:
    """The move that a node is; None if it is none."""
    if node.op not in ("call_function", "call_method"):
        return None
    if node.target is operator.getitem or (node.op == "call_method" and node.target == "__getitem__"):
        return ("getitem", tuple(node.args)) if _is_plain(node.args[1]) else None
    if node.target is check_size:
        return "check", tuple(node.args)
    if node.target in _ON_NUMBERS and all(_is_whole(each) or form_of(each) is None for each in node.args):
        return _ON_NUMBERS[node.target], tuple(node.args)
    if node.op == "call_method" and node.target == "size":
        return "size", (node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim"))
    if node.target is builtins.getattr and node.args[1] == "shape":
        return "size", (node.args[0], None)
    for function in (_listed, _squeezed, _converted, _made, _computed):
        found = function(node)
        if found is not None:
            return found
    return None


def _is_plain(index: Any) -> bool:
    """Whether an index has only what is known to be numbers, slices, None and ``...``."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        isinstance(part, int | slice | str | None | type(Ellipsis))
        or (isinstance(part, fx.Node) and isinstance(form_of(part), int | torch.SymInt))
        for part in parts
    )


def _listed(node: fx.Node) -> Move | None:
    for overloads, name, wanted in _ARGUMENTS:
        if not calls(node, *overloads):
            continue
        values = arguments_of(node, overloads[0])
        if node.op == "call_method" or (node.args and isinstance(form_of(node.args[0]), Tensor)):
            values = _with_sizes(node, values, wanted)
        return (name, tuple(values.get(each) for each in wanted)) if wanted[-1] in values else None
    return None


def _with_sizes(node: fx.Node, values: Mapping[str, Any], wanted: tuple[str, ...]) -> dict[str, Any]:
    """Methods are given sizes one by one as well: ``x.view(-1, 2)``."""
    listed = dict(values)
    if wanted[-1] in ("size", "shape", "dims") and not isinstance(listed.get(wanted[-1]), tuple | list):
        listed[wanted[-1]] = node.args[1:]
    return listed


def _squeezed(node: fx.Node) -> Move | None:
    if not calls(node, _aten.squeeze.default, _aten.squeeze.dim, _aten.squeeze.dims):
        return None
    dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    return "squeeze", (node.args[0], dim)


def _converted(node: fx.Node) -> Move | None:
    """Integers and booleans of another type."""
    source, wanted = (node.args[0] if node.args else None), form_of(node)
    if not isinstance(form_of(source), Tensor) or not isinstance(wanted, Tensor) or not _is_whole(source):
        return None
    is_so = calls(node, _aten._to_copy.default, _aten.to.dtype) or (
        node.op == "call_method" and node.target in ("long", "int", "to", "float", "bool")
    )
    return ("to", (source, _name(wanted.dtype))) if is_so else None


def _made(node: fx.Node) -> Move | None:
    """Zeros, and counts."""
    if calls(node, _aten.zeros.default, _aten.new_zeros.default):
        made = form_of(node)
        size = arguments_of(node, _aten.zeros.default).get("size")
        if calls(node, _aten.new_zeros.default):
            size = arguments_of(node, _aten.new_zeros.default).get("size")
        if not isinstance(size, tuple | list):
            size = tuple(each for each in node.args if not isinstance(form_of(each), Tensor))
        return ("zeros", (tuple(size), _name(made.dtype))) if isinstance(made, Tensor) else None
    if calls(node, _aten.arange.default, _aten.arange.start, _aten.arange.start_step):
        made, given = form_of(node), node.args
        if not isinstance(made, Tensor) or not _is_whole(node) or not 1 <= len(given) <= 3:
            return None
        start, stop, step = (0, *given, 1) if len(given) == 1 else (*given, 1) if len(given) == 2 else given
        return "arange", (start, stop, step, _name(made.dtype))
    return None


def _computed(node: fx.Node) -> Move | None:
    """Arithmetic on tensors of integers."""
    for overload, name in _ARITHMETIC.items():
        if calls(node, overload):
            is_so = all(_is_whole(each) for each in node.args[:2]) and not node.kwargs and len(node.args) == 2
            return (name, tuple(node.args)) if is_so else None
    return None


def _is_whole(value: Any) -> bool:
    """Whether it is known to be of integers or booleans."""
    known = form_of(value)
    if isinstance(known, Tensor):
        return not known.dtype.is_floating_point and not known.dtype.is_complex
    return isinstance(known, int | torch.SymInt)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def number_in(value: Any) -> Any:
    """A number of a graph as a file has it; sizes without an end are none."""
    return None if isinstance(value, int) and value >= (1 << 63) - 1 else value


def is_finite(value: Any) -> bool:
    """Whether a file can hold it as a number."""
    return not isinstance(value, float) or math.isfinite(value)
