"""What NumPy computes of TensorFlow's operators: those around look-ups, and small dense layers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daedal.compiler.frontends.tensorflow.graph import TYPES, Node
from daedal.compiler.frontends.tensorflow.saved.operators import Array, Operator, Operators, Values
from daedal.errors import FileError, IndexOutOfRange

OPERATORS = Operators()

_FIELDS = {
    1: "float_val", 2: "double_val", 3: "int_val", 4: "int_val", 5: "int_val", 6: "int_val", 9: "int64_val",
    10: "bool_val", 17: "int_val", 22: "uint32_val", 23: "uint64_val",
}  # fmt: skip
"""Where messages have elements of these types, if not as bytes."""


def constant(tensor: Any, name: str) -> Array:
    """The content of a tensor's message; FileError, of the node ``name``, for one that is none."""
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    dtype = TYPES.get(tensor.dtype)
    if dtype is None or tensor.dtype not in _FIELDS:
        return np.full(shape, "", object)  # of strings, which nothing here takes
    size = int(np.prod(shape)) if shape else 1
    content = tensor.tensor_content
    try:
        if content:
            return np.frombuffer(content, dtype).reshape(shape)
        given = np.array(getattr(tensor, _FIELDS[tensor.dtype])[:size], dtype)
        last = given[-1:] if given.size else np.zeros(1, dtype)
        return np.concatenate([given, np.repeat(last, size - given.size)]).reshape(shape)  # what follows repeats it
    except (ValueError, OverflowError) as error:
        raise FileError(f"{name} must be a constant of {shape} {dtype}, and is damaged: {error}") from error


def _sigmoid(x: Array) -> Array:
    with np.errstate(all="ignore"):
        found: Array = x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x))
    return found


def _softmax(x: Array) -> Array:
    raised: Array = np.exp(x - x.max(-1, keepdims=True))
    found: Array = raised / raised.sum(-1, keepdims=True)
    return found


def _divided_or_zero(a: Array, b: Array) -> Array:
    return np.where(b == 0, np.zeros((), a.dtype), a / np.where(b == 0, np.ones((), b.dtype), b))


OPERATORS.elementwise({
    "Identity": lambda x: x, "StopGradient": lambda x: x, "Snapshot": lambda x: x, "PreventGradient": lambda x: x,
    "AddV2": np.add, "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "RealDiv": np.divide,
    "DivNoNan": _divided_or_zero, "FloorDiv": np.floor_divide, "FloorMod": np.mod, "Maximum": np.maximum,
    "Minimum": np.minimum, "Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt, "Square": np.square, "Exp": np.exp,
    "Log": np.log, "Log1p": np.log1p, "Tanh": np.tanh, "Sigmoid": _sigmoid, "Softmax": _softmax,
    "Rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x), "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "Less": np.less, "LessEqual": np.less_equal, "Greater": np.greater, "GreaterEqual": np.greater_equal,
    "Equal": np.equal, "NotEqual": np.not_equal, "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or,
    "LogicalNot": np.logical_not, "ZerosLike": np.zeros_like, "OnesLike": np.ones_like,
    "SelectV2": np.where, "Where": lambda x: np.argwhere(x).astype(np.int64),
    "Fill": lambda shape, value: np.full(shape, value), "BroadcastTo": lambda x, shape: np.broadcast_to(x, shape),
    "Reshape": lambda x, shape: x.reshape(shape), "Tile": np.tile, "Transpose": np.transpose,
    "ExpandDims": lambda x, axis: np.expand_dims(x, int(axis)), "Range": lambda a, b, step: np.arange(a, b, step),
})  # fmt: skip


@OPERATORS.of("Select")
def _select(node: Node, given: Values) -> Values:
    condition, a, b = given
    shape = condition.shape + (1,) * (a.ndim - condition.ndim)
    return [np.where(condition.reshape(shape), a, b)]


@OPERATORS.of("BiasAdd")
def _bias_add(node: Node, given: Values) -> Values:
    x, bias = given
    is_behind = node.attribute("data_format").s == b"NCHW" and x.ndim > 2
    return [x + bias.reshape(-1, *[1] * (x.ndim - 2)) if is_behind else x + bias]


@OPERATORS.of("Cast")
def _cast(node: Node, given: Values) -> Values:
    return [given[0].astype(node.type_of("DstT"))]


@OPERATORS.of("Shape")
def _shape(node: Node, given: Values) -> Values:
    return [np.array(given[0].shape, node.type_of("out_type") or "int32")]


@OPERATORS.of("Size")
def _size(node: Node, given: Values) -> Values:
    return [np.array(given[0].size, node.type_of("out_type") or "int32")]


@OPERATORS.of("Pack")
def _pack(node: Node, given: Values) -> Values:
    return [np.stack(given, node.attribute("axis").i)]


@OPERATORS.of("Unpack")
def _unpack(node: Node, given: Values) -> Values:
    axis = node.attribute("axis").i
    return [given[0].take(n, axis) for n in range(given[0].shape[axis])]


@OPERATORS.of("ConcatV2")
def _concat(node: Node, given: Values) -> Values:
    *parts, axis = given
    return [np.concatenate(parts, int(axis))]


@OPERATORS.of("Squeeze")
def _squeeze(node: Node, given: Values) -> Values:
    axes = tuple(node.attribute("squeeze_dims").list.i)
    return [np.squeeze(given[0], axes or None)]


@OPERATORS.of("Slice")
def _slice(node: Node, given: Values) -> Values:
    x, begin, size = given
    ends = [b + s if s >= 0 else n for b, s, n in zip(begin, size, x.shape, strict=True)]
    return [x[tuple(slice(int(b), int(e)) for b, e in zip(begin, ends, strict=True))]]


@OPERATORS.of("StridedSlice")
def _strided_slice(node: Node, given: Values) -> Values:
    x, begin, end, strides = given
    names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    no_begin, no_end, rest, new, shrink = (node.attribute(name).i for name in names)
    index: list[Any] = []
    for n, (first, last, step) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
        bit = 1 << n
        if rest & bit:
            index.append(Ellipsis)
        elif new & bit:
            index.append(None)
        elif shrink & bit:
            index.append(first)
        else:
            index.append(slice(None if no_begin & bit else first, None if no_end & bit else last, step))
    return [np.asarray(x[tuple(index)])]


def _reduction(function: Callable[..., Any]) -> Operator:
    def reduce(node: Node, given: Values) -> Values:
        x, axes = given
        keeps, along = bool(node.attribute("keep_dims").b), tuple(np.atleast_1d(axes).tolist())
        if all(x.shape[axis] == 1 for axis in along):  # NumPy would add -0.0 to 0.0
            return [x if keeps else np.squeeze(x, along)]
        return [np.asarray(function(x, axis=along, keepdims=keeps)).astype(x.dtype, copy=False)]

    return reduce


def _largest(x: Array, **how: Any) -> Any:
    return np.max(x, initial=-np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min, **how)


def _smallest(x: Array, **how: Any) -> Any:
    return np.min(x, initial=np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max, **how)


for _name, _function in (("Sum", np.sum), ("Mean", np.mean), ("Prod", np.prod), ("Max", _largest), ("Min", _smallest),
                         ("All", np.all), ("Any", np.any)):  # fmt: skip
    OPERATORS[_name] = _reduction(_function)


@OPERATORS.of("MatMul", "BatchMatMulV2", "BatchMatMulV3")
def _matmul(node: Node, given: Values) -> Values:
    a, b = given
    a = a.swapaxes(-1, -2) if node.attribute("transpose_a").b or node.attribute("adj_x").b else a
    b = b.swapaxes(-1, -2) if node.attribute("transpose_b").b or node.attribute("adj_y").b else b
    return [np.matmul(a, b)]


@OPERATORS.of("GatherV2", "ResourceGather")
def _gather(node: Node, given: Values) -> Values:
    x, indices = given[:2]
    batch = node.attribute("batch_dims").i
    batch += indices.ndim if batch < 0 else 0
    axis = int(given[2]) if len(given) > 2 else batch
    axis += x.ndim if axis < 0 else 0
    rows = x.shape[axis]
    if indices.size and not 0 <= indices.min() <= indices.max() < rows:
        bad = indices[(indices < 0) | (indices >= rows)].reshape(-1)[0]
        raise IndexOutOfRange(f"{node.name}: index {bad} is out of range for {rows} rows: correct it")
    if not batch:
        return [x.take(indices, axis)]
    result = np.empty((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]), x.dtype)
    for place in np.ndindex(x.shape[:batch]):
        result[place] = x[place].take(indices[place], axis - batch)
    return [result]


@OPERATORS.of("Unique", "UniqueV2")
def _unique(node: Node, given: Values) -> Values:
    """In the order in which they come."""
    values, first, inverse = np.unique(given[0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), node.type_of("out_idx") or "int32")
    place[order] = np.arange(len(order))
    return [values[order], place[inverse.reshape(-1)]]


@OPERATORS.of("SparseReshape")
def _sparse_reshape(node: Node, given: Values) -> Values:
    places, shape, wanted = given
    size, known = int(np.prod(shape)), int(np.prod(wanted[wanted >= 0]))
    new = np.where(wanted < 0, size // known if known else 0, wanted).astype(np.int64)
    flat = np.ravel_multi_index(tuple(places.T), tuple(shape)) if len(places) else np.zeros(0, np.int64)
    return [np.stack(np.unravel_index(flat, tuple(new)), 1).astype(np.int64).reshape(-1, len(new)), new]


@OPERATORS.of("SparseFillEmptyRows")
def _fill_empty_rows(node: Node, given: Values) -> Values:
    places, values, shape, default = given
    is_empty = np.bincount(places[:, 0], minlength=int(shape[0])) == 0
    missing = np.flatnonzero(is_empty)
    more = np.zeros((len(missing), places.shape[1]), places.dtype)
    more[:, 0] = missing
    rows = np.concatenate([places, more])
    order = np.argsort(rows[:, 0], kind="stable")
    filled = np.concatenate([values, np.full(len(missing), default, values.dtype)])
    target = np.empty(len(order), np.int64)
    target[order] = np.arange(len(order))
    return [rows[order], filled[order], is_empty, target[: len(places)]]
