"""What NumPy computes of graphs: attributes that a graph leaves out, batches, ragged tensors."""

from typing import Any

import numpy as np
import pytest

import daedal
from daedal.compiler.frontends.tensorflow.graph import Node
from daedal.compiler.frontends.tensorflow.saved.messages import message_class
from daedal.compiler.frontends.tensorflow.saved.program import OPERATORS


def computed(op: str, *given: Any, **attributes: Any) -> list[Any]:
    """The results of an operator; ``attributes`` are fields of their messages by name."""
    message = message_class("NodeDef")(name="op", op=op)
    for name, fields in attributes.items():
        for field, value in fields.items():
            setattr(message.attr[name], field, value)
    return list(OPERATORS[op](Node("op", op, (), (), message), [np.asarray(each) for each in given]))


def test_gathers_of_batches() -> None:
    x, indices = np.arange(24).reshape(2, 3, 4), np.array([[2, 0], [1, 1]])
    (rows,) = computed("GatherV2", x, indices, 1, batch_dims={"i": 1})
    assert np.array_equal(rows, np.stack([x[0][[2, 0]], x[1][[1, 1]]]))
    (numbers,) = computed("GatherV2", x, indices, -1, batch_dims={"i": 1})
    assert np.array_equal(numbers, np.stack([x[0][:, [2, 0]], x[1][:, [1, 1]]]))
    (of_handle,) = computed("ResourceGather", x, indices, batch_dims={"i": 1})
    assert np.array_equal(of_handle, rows)
    with pytest.raises(daedal.IndexOutOfRange, match="index 3 is out of range for 3 rows"):
        computed("GatherV2", x, [[3], [0]], 1, batch_dims={"i": 1})


def test_what_a_graph_leaves_out() -> None:
    assert np.array_equal(computed("OneHot", [1, 0], 3, 1.0, 0.0)[0], [[0, 1, 0], [1, 0, 0]])
    assert np.array_equal(computed("OneHot", [1, 0], 3, 1.0, 0.0, axis={"i": 0})[0], [[0, 1], [1, 0], [0, 0]])
    assert np.allclose(computed("LeakyRelu", [-1.0, 2.0])[0], [-0.2, 2.0])
    assert np.allclose(computed("LeakyRelu", [-1.0, 2.0], alpha={"f": 0.5})[0], [-0.5, 2.0])


def test_biases_of_channels() -> None:
    x = np.zeros((1, 2, 3, 3))
    assert np.array_equal(computed("BiasAdd", x, [1.0, 2.0], data_format={"s": b"NCHW"})[0][0, :, 0, 0], [1, 2])


def test_ragged_tensors_of_two_dimensions_of_rows() -> None:
    kinds = message_class("ListValue")(s=[b"FIRST_DIM_SIZE", b"VALUE_ROWIDS", b"ROW_SPLITS"])
    given = (-1, [1, 2, 3, 4], 0, 3, [0, 0, 2], [0, 1, 1, 4])
    (dense,) = computed("RaggedTensorToTensor", *given, row_partition_types={"list": kinds})
    assert dense.tolist() == [[[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]], [[2, 3, 4], [0, 0, 0]]]


def test_segments_and_places_that_are_none() -> None:
    assert np.array_equal(computed("UnsortedSegmentSum", [1, 2, 4], [1, -1, 1], 3)[0], [0, 5, 0])
    with pytest.raises(daedal.IndexOutOfRange, match="segment id 3 is out of range for 3 rows"):
        computed("UnsortedSegmentSum", [1], [3], 3)
    with pytest.raises(daedal.IndexOutOfRange, match=r"place \[0, 2\] is out of range for \[2, 2\]"):
        computed("GatherNd", np.zeros((2, 2)), [[0, 2]])
    with pytest.raises(daedal.IndexOutOfRange, match=r"place \[-1\] is out of range"):
        computed("SparseToDense", [[-1]], [3], [1.0], 0.0)


def test_reductions_of_one_number_and_of_none() -> None:
    assert np.signbit(computed("Sum", np.full((3, 1), -0.0, np.float32), -1)[0]).all()
    assert computed("Sum", np.full((3, 1), -0.0, np.float32), -1, keep_dims={"b": True})[0].shape == (3, 1)
    nothing = np.zeros((0, 2), np.float32)
    assert computed("Min", nothing, 0)[0].tolist() == [np.inf] * 2
    assert computed("Max", nothing, 0)[0].tolist() == [-np.inf] * 2
    assert computed("Max", nothing.astype(np.int32), 0)[0].tolist() == [-(2**31)] * 2
    assert computed("Min", [[3.0, np.nan], [1.0, 2.0]], 0)[0].tolist()[0] == 1.0
