"""What NumPy computes of layers around look-ups: activations, products, parts of tensors."""

import math

import numpy as np

from daedal.compiler.frontends.tensorflow.graph import Node
from daedal.compiler.frontends.tensorflow.saved.operators import Array, Operators, Values

OPERATORS = Operators()

_SELU = 1.0507009873554805, 1.6732632423543772
"""Scale and alpha of Klambauer et al., Self-Normalizing Neural Networks, 2017."""

_LEAK = 0.2
"""TensorFlow's alpha of a leaky ReLU, which a graph leaves out."""

_erf, _erfc = (np.vectorize(each, [float]) for each in (math.erf, math.erfc))


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def _selu(x: Array) -> Array:
    scale, alpha = (x.dtype.type(each) for each in _SELU)
    found: Array = scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))
    return found


def _log_softmax(x: Array) -> Array:
    less: Array = x - x.max(-1, keepdims=True)
    found: Array = less - np.log(np.exp(less).sum(-1, keepdims=True))
    return found


OPERATORS.elementwise({
    "Pow": np.power, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Expm1": np.expm1, "Floor": np.floor,
    "Ceil": np.ceil, "Round": np.rint, "Rint": np.rint, "Sign": np.sign, "IsNan": np.isnan, "IsFinite": np.isfinite,
    "Reciprocal": np.reciprocal, "SquaredDifference": lambda a, b: np.square(a - b),
    "Erf": lambda x: _erf(x).astype(x.dtype), "Erfc": lambda x: _erfc(x).astype(x.dtype),
    "Elu": _elu, "Selu": _selu, "LogSoftmax": _log_softmax, "Softplus": lambda x: np.logaddexp(x, x.dtype.type(0)),
    "Softsign": lambda x: x / (1 + np.abs(x)), "Relu6": lambda x: np.clip(x, 0, 6), "ClipByValue": np.clip,
    "ReverseV2": lambda x, axes: np.flip(x, tuple(axes.tolist())),
})  # fmt: skip


@OPERATORS.of("IdentityN")
def _identities(node: Node, given: Values) -> Values:
    return list(given)


@OPERATORS.of("LeakyRelu")
def _leaky_relu(node: Node, given: Values) -> Values:
    (x,) = given
    alpha = node.attribute("alpha").f if "alpha" in node.message.attr else _LEAK
    return [np.where(x > 0, x, x * x.dtype.type(alpha))]


@OPERATORS.of("Einsum")
def _einsum(node: Node, given: Values) -> Values:
    return [np.einsum(node.attribute("equation").s.decode(), *given)]


@OPERATORS.of("OneHot")
def _one_hot(node: Node, given: Values) -> Values:
    indices, depth, on, off = given
    axis = node.attribute("axis").i if "axis" in node.message.attr else -1
    hot = indices[..., None] == np.arange(int(depth))
    return [np.moveaxis(np.where(hot, on, off), -1, axis)]


@OPERATORS.of("Split")
def _split(node: Node, given: Values) -> Values:
    axis, x = given
    return np.split(x, node.attribute("num_split").i, int(axis))


@OPERATORS.of("SplitV")
def _split_at(node: Node, given: Values) -> Values:
    x, sizes, axis = given
    known = int(sizes[sizes >= 0].sum())
    whole = np.where(sizes < 0, x.shape[int(axis)] - known, sizes)
    return np.split(x, whole.cumsum()[:-1], int(axis))


@OPERATORS.of("Pad", "PadV2")
def _pad(node: Node, given: Values) -> Values:
    x, widths, *value = given
    return [np.pad(x, widths, constant_values=value[0] if value else 0)]


@OPERATORS.of("Cumsum")
def _cumsum(node: Node, given: Values) -> Values:
    x, axis = given[0], int(given[1])
    x = np.flip(x, axis) if node.attribute("reverse").b else x
    found = np.cumsum(x, axis, x.dtype)
    if node.attribute("exclusive").b:
        zero = np.zeros_like(x.take([0] if x.shape[axis] else [], axis))
        found = np.concatenate([zero, found.take(range(max(x.shape[axis] - 1, 0)), axis)], axis)
    return [np.flip(found, axis) if node.attribute("reverse").b else found]


@OPERATORS.of("ArgMax", "ArgMin")
def _arg(node: Node, given: Values) -> Values:
    function = np.argmax if node.op == "ArgMax" else np.argmin
    return [np.asarray(function(given[0], int(given[1]))).astype(node.type_of("output_type") or "int64")]


@OPERATORS.of("TopKV2")
def _top(node: Node, given: Values) -> Values:
    """Of equal ones those come first that lie first."""
    x, count = given[0], int(given[1])
    behind = np.argsort(x[..., ::-1], -1, kind="stable")[..., ::-1]
    places = (x.shape[-1] - 1 - behind)[..., :count]
    return [np.take_along_axis(x, places, -1), places.astype(node.type_of("index_type") or "int32")]


@OPERATORS.of("Bucketize")
def _bucketize(node: Node, given: Values) -> Values:
    ends = np.array(node.attribute("boundaries").list.f, np.float32)
    return [np.searchsorted(ends, given[0], "right").astype(np.int32)]


@OPERATORS.of("DenseBincount")
def _bincount(node: Node, given: Values) -> Values:
    """Those that lie outside are left out."""
    x, size, weights = given
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    result = np.zeros((len(rows), int(size)), node.type_of("T") or "float32")
    row, column = np.nonzero((rows >= 0) & (rows < size))
    factors = weights.reshape(rows.shape)[row, column] if weights.size else result.dtype.type(1)
    if node.attribute("binary_output").b:
        result[row, rows[row, column]] = 1
    else:
        np.add.at(result, (row, rows[row, column]), factors)
    return [result if x.ndim > 1 else result[0]]
