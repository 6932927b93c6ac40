"""What NumPy computes of ragged and sparse tensors: their parts, counts of rows, and dense tensors of them."""

import numpy as np

from daedal.compiler.frontends.tensorflow.graph import Node
from daedal.compiler.frontends.tensorflow.saved.operators import Array, Operators, Values
from daedal.errors import IndexOutOfRange, UnsupportedOperation

OPERATORS = Operators()


@OPERATORS.of("UnsortedSegmentSum", "SegmentSum")
def _segment_sum(node: Node, given: Values) -> Values:
    """One row after the other; rows of negative segments are left out."""
    data, segments = given[:2]
    count = int(given[2]) if len(given) > 2 else int(segments.max(initial=-1)) + 1
    rows, keys = data.reshape(segments.size, *data.shape[segments.ndim :]), segments.reshape(-1)
    if keys.size and keys.max() >= count:
        raise IndexOutOfRange(f"{node.name}: segment id {keys.max()} is out of range for {count} rows: correct it")
    result = np.zeros((count, *rows.shape[1:]), data.dtype)
    np.add.at(result, keys[keys >= 0], rows[keys >= 0])
    return [result]


@OPERATORS.of("SparseToDense")
def _sparse_to_dense(node: Node, given: Values) -> Values:
    places, shape, values, default = given
    result = np.full(tuple(shape), default, values.dtype)
    places = places.reshape(values.size, -1)
    _check_places(node, places, result.shape)
    result[tuple(places.T)] = values
    return [result]


@OPERATORS.of("SparseReorder")
def _sparse_reorder(node: Node, given: Values) -> Values:
    places, values = given[:2]
    order = np.lexsort(places.T[::-1])
    return [places[order], values[order]]


@OPERATORS.of("GatherNd", "ResourceGatherNd")
def _gather_nd(node: Node, given: Values) -> Values:
    x, places = given
    _check_places(node, places.reshape(-1, places.shape[-1]), x.shape)
    return [x[tuple(np.moveaxis(places, -1, 0))]]


@OPERATORS.of("RaggedRange")
def _ragged_range(node: Node, given: Values) -> Values:
    starts, limits, steps = np.broadcast_arrays(*(np.atleast_1d(each) for each in given))
    parts = [np.arange(a, b, step).astype(starts.dtype) for a, b, step in zip(starts, limits, steps, strict=True)]
    splits = np.cumsum([0, *map(len, parts)], dtype=node.type_of("Tsplits") or "int64")
    return [splits, np.concatenate([*parts, np.zeros(0, starts.dtype)])]


@OPERATORS.of("RaggedTensorToTensor")
def _ragged_to_dense(node: Node, given: Values) -> Values:
    shape, values, default, *partitions = given
    splits = _splits(node, partitions)
    sizes = [len(splits[0]) - 1, *(int(np.diff(each).max(initial=0)) for each in splits)]
    item, places = np.arange(len(values)), list[Array]()
    for each in reversed(splits):
        row = np.repeat(np.arange(len(each) - 1), np.diff(each))
        places.insert(0, (np.arange(len(row)) - each[row])[item])
        item = row[item]
    places.insert(0, item)
    if shape.ndim:
        sizes = [own if wanted < 0 else int(wanted) for wanted, own in zip(shape, sizes, strict=False)]
    inside = np.all([place < size for place, size in zip(places, sizes, strict=True)], axis=0)
    result = np.full((*sizes, *values.shape[1:]), default, values.dtype)
    result[tuple(place[inside] for place in places)] = values[inside]
    return [result]


def _splits(node: Node, partitions: Values) -> list[Array]:
    """Where the rows of each dimension begin and the last ends."""
    found, rows = list[Array](), 0
    for kind, partition in zip(node.attribute("row_partition_types").list.s, partitions, strict=True):
        if kind == b"FIRST_DIM_SIZE":
            rows = int(partition)
        elif kind == b"VALUE_ROWIDS":
            found.append(np.cumsum([0, *np.bincount(partition, minlength=int(found[-1][-1]) if found else rows)]))
        elif kind == b"ROW_SPLITS":
            found.append(partition)
        else:
            raise UnsupportedOperation(f"{node.name}: rows must be given by splits or row ids, not by {kind.decode()}")
    return found


def _check_places(node: Node, places: Array, shape: tuple[int, ...]) -> None:
    ends = np.array(shape[: places.shape[1]])
    wrong = np.flatnonzero(((places < 0) | (places >= ends)).any(1))
    if wrong.size:
        raise IndexOutOfRange(
            f"{node.name}: place {places[wrong[0]].tolist()} is out of range for {ends.tolist()}: correct it"
        )
