"""What does not fit, or stays in TensorFlow: errors of one line that name it, and reasons."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daedal
from daedal.errors import IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from tests.frameworks.tensorflow.comparing import ROWS, WIDTH, same_bits, table
from tests.frameworks.tensorflow.models import two_towers

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


def ints(*shape: int | None) -> Any:
    import tensorflow as tf

    return tf.TensorSpec(list(shape or (None,)), tf.int64)


def compiled(function: Callable[..., Any], device: daedal.Device, arguments: int = 1) -> Any:
    return daedal.tensorflow.compile(function, [ints()] * arguments, device=device)


def variable() -> Any:
    import tensorflow as tf

    return tf.Variable(table(), name="users")


@pytest.mark.parametrize("bad", [-1, ROWS, 2**40])
def test_ids_out_of_range(bad: int, device: daedal.Device) -> None:
    import tensorflow as tf

    v = variable()
    exe = compiled(lambda i: tf.gather(v, i), device)
    with pytest.raises(
        IndexOutOfRange, match=rf"^Gather of users: index {bad} is out of range .* {ROWS} rows.* number 1"
    ):
        exe([0, bad])
    assert same_bits(exe([0, 1]), tf.gather(v, [0, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(lambda i: tf.gather(v, i))(tf.constant([0, bad], tf.int64))


def test_segments(device: daedal.Device) -> None:
    import tensorflow as tf

    v = variable()
    exe = compiled(lambda i, s: tf.sparse.segment_sum(v, i, s), device, 2)
    with pytest.raises(
        InvalidOffsets, match=r"^SparseSegmentSum of users: segment ids must not .* number 1.* is 0: sort them"
    ):
        exe([1, 2], [1, 0])
    with pytest.raises(InvalidOffsets, match="number 0, counted from 0, is -1"):
        exe([1, 2], [-1, 0])
    into = compiled(lambda i, s: tf.math.unsorted_segment_sum(tf.gather(v, i), s, 3), device, 2)
    with pytest.raises(IndexOutOfRange, match="segment id 3 is out of range for a result of 3 rows"):
        into([1, 2], [0, 3])


def test_features_that_do_not_fit(device: daedal.Device) -> None:
    model, data = two_towers()
    exe = daedal.tensorflow.compile(model, device=device)
    given = data(3, 0)
    bad: list[tuple[Any, str]] = [
        (
            {key: given[key] for key in ("user", "item")},
            "must be a dictionary of history, item, user, not ['item', 'user']",
        ),
        ({**given, "age": given["user"]}, "must be a dictionary of history, item, user, not ['age', 'history'"),
        ({**given, "history": given["history"][:, :2]}, "['history'] must have the shape (None, 6), not (3, 2)"),
        ({**given, "user": np.array(["a"])}, "['user'] must be of int32, not"),
        ([given["user"]], "must be a dictionary"),
    ]
    for each, message in bad:
        with pytest.raises(UnsupportedOperation, match=re.escape(message)):
            exe(each)
    with pytest.raises(UnsupportedOperation, match=r"the inputs must be .*, not 0 by position"):
        exe()


def test_models_and_signatures_that_are_none(device: daedal.Device) -> None:
    import tensorflow as tf

    v = variable()
    bad: list[tuple[Any, Any, str]] = [
        (3, None, "model must be a Keras model or a function of tensors, not 3"),
        (lambda i: tf.gather(v, i), None, "input_signature must be given"),
        (lambda i: tf.gather(v, i), 7, "input_signature must have a tf.TensorSpec for each argument, not 7"),
        (lambda i: i + 1, [ints()], "the model must look up, gather or reduce rows, but has only AddV2"),
        (lambda i: tf.gather(v, i, axis=1), [ints()], "axis must be 0, not 1"),
        (lambda i: tf.matmul(i, i), [ints()], "the model must be one that TensorFlow traces"),
    ]
    for model, signature, message in bad:
        with pytest.raises(UnsupportedOperation, match=re.escape(message)):
            daedal.tensorflow.compile(model, signature, device=device)
    with pytest.raises(UnsupportedOperation, match=r"device must be what daedal\.Device\.open gives"):
        daedal.tensorflow.compile(lambda i: tf.gather(v, i), [ints()], device="emulator")  # type: ignore[arg-type]


def test_what_stays_says_why(device: daedal.Device) -> None:
    import tensorflow as tf

    v, other = variable(), tf.Variable(table(seed=1), name="items")
    halves = tf.Variable(table().astype(np.float16), name="halves")

    def model(i: Any) -> Any:
        rows = tf.gather(v, i)
        branch = tf.cond(tf.size(i) > 3, lambda: tf.gather(other, i), lambda: tf.gather(other, i + 1))
        places = tf.gather_nd(v, i[:, None])
        summed = tf.math.segment_sum(tf.gather(halves, i), tf.zeros_like(i))
        return rows + branch, tf.gather(rows * 2, i % 2), places, summed

    exe = compiled(model, device)
    i = tf.constant([4, 0, 4], tf.int64)
    assert same_bits(exe(i), tf.function(model, input_signature=[ints()])(i))
    text = exe.explain()
    for reason in (
        "ResourceGather is inside of a branch or loop, of which TensorFlow decides what runs",
        "the rows that it gathers are computed by TensorFlow",
        "ResourceGatherNd is a gather of places, not of rows, which the front end does not take",
        "sums must be of float32, not float16",
    ):
        assert f"in TensorFlow, because {reason}" in text, text
    assert exe.stats.launches == 1


def test_tables_that_a_loop_reads_do_not_stay(device: daedal.Device) -> None:
    import tensorflow as tf

    v = variable()

    def model(i: Any) -> Any:
        total = tf.zeros([WIDTH])
        for number in tf.range(tf.size(i)):
            total += tf.gather(v, i[number])
        return total, tf.gather(v, i)

    exe = compiled(model, device)
    i = tf.constant([4, 0, 4], tf.int64)
    assert same_bits(exe(i), tf.function(model, input_signature=[ints()])(i))
    assert exe.stats.rows == 3 and "ResourceGather is inside of a branch or loop" in exe.explain()
    assert "the model changes its table" not in exe.explain()


def test_tables_that_a_branch_changes_stay(device: daedal.Device) -> None:
    import tensorflow as tf

    v, other = variable(), tf.Variable(table(seed=1), name="items")

    def model(i: Any) -> Any:
        tf.cond(tf.size(i) > 1, lambda: v.assign_add(tf.ones_like(v)), lambda: v.read_value())
        return tf.gather(v, i), tf.gather(other, i)

    exe = compiled(model, device)
    for i in ([3], [3, 4], [5]):
        assert same_bits(exe(i)[0], tf.gather(v, i)), i
    assert "the model changes its table, users, in the same call" in exe.explain()


def test_tables_that_the_model_changes_stay(device: daedal.Device) -> None:
    import tensorflow as tf

    v, other = variable(), tf.Variable(table(seed=1), name="items")

    def model(i: Any) -> Any:
        before = tf.gather(v, i)
        v.assign_add(tf.ones_like(v))
        return before, tf.gather(v, i), tf.gather(other, i)

    exe = compiled(model, device)
    for call in range(2):
        before, behind, _ = exe([3, 4])
        assert same_bits(behind, before + 1.0), call
    assert "the model changes its table, users, in the same call" in exe.explain()
