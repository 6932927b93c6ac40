"""Sums in TensorFlow's orders, on the golden model against the rules in NumPy, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.requests.orders import Order, ordered_request
from daedal.runtime.operations import Bag
from tests.compiler.layers.compiler_support import ddr3, device
from tests.compiler.orders.order_support import executable, lengths, numbers, run
from tests.reference.tensorflow_sums import bags, by_blocks, by_lanes, divided, mean_of_segment

__all__ = ["ddr3", "device"]

Array = NDArray[Any]

ROWS = 50

CASES: dict[str, tuple[Order, str, bool, Callable[[Array], Array]]] = {
    "blocks": (Order.BLOCKS, "sum", False, lambda rows: by_blocks(rows, "sum")),
    "blocks, mean": (Order.BLOCKS, "mean", False, lambda rows: by_blocks(rows, "mean")),
    "blocks, root": (Order.BLOCKS, "sqrtn", False, lambda rows: by_blocks(rows, "sqrtn")),
    "lanes": (Order.LANES, "sum", False, by_lanes),
    "lanes, weighted": (Order.LANES, "sum", True, by_lanes),
    "lanes, mean": (Order.LANES, "mean", False, lambda rows: by_lanes(rows, "mean")),
    "segment": (Order.SEGMENT, "mean", False, mean_of_segment),
    "chain": (Order.CHAIN, "sum", False, lambda rows: divided(rows, "sum")),
    "chain, mean": (Order.CHAIN, "mean", False, lambda rows: divided(rows, "mean")),
    "chain, weighted": (Order.CHAIN, "sum", True, lambda rows: divided(rows, "sum")),
}
"""Order, mode, whether rows are weighted, and the rule."""


def case(rng: np.random.Generator, table: Array, many: Array, name: str) -> tuple[Any, Array]:
    """A request of bags of so many rows, and what it gives."""
    order, mode, is_weighted, rule = CASES[name]
    offsets = np.concatenate([[0], many.cumsum()])
    keys = np.repeat(np.arange(len(many)), many)
    indices = rng.integers(0, len(table), len(keys))
    weights = rng.standard_normal(len(keys)).astype(np.float32) if is_weighted else None
    rows = table[indices] if weights is None else table[indices] * weights[:, None]
    request = ordered_request(name, table, indices, weights, keys, len(many), mode, order)
    return request, np.stack([rule(each) for each in bags(rows, offsets)])


def same(ours: Array, theirs: Array) -> bool:
    return ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("width", [7, 17, 64])
def test_bags_of_all_lengths(device: daedal.Device, rng: np.random.Generator, width: int) -> None:
    table = numbers(rng, ROWS, width)
    table[:4] = -0.0
    many = lengths(rng, 20, 120)
    made = [case(rng, table, many, name) for name in CASES]
    for (_, expected), result in zip(made, run(device, *(request for request, _ in made)), strict=True):
        assert same(result, expected)


@pytest.mark.parametrize("name", CASES)
def test_few_rows_are_a_chain_from_the_first_row(ddr3: daedal.Device, rng: np.random.Generator, name: str) -> None:
    """Bags of nothing but -0.0 are the ones that tell what a sum begins with."""
    table = np.full((5, 12), -0.0, np.float32)
    request, expected = case(rng, table, np.array([1, 0, 2, 9, 10, 0, 15, 16, 17, 33]), name)
    assert same(run(ddr3, request)[0], expected)


@pytest.mark.parametrize(("name", "longest"), [("blocks, mean", 9), ("lanes, weighted", 15), ("blocks", 0)])
def test_a_batch_of_short_bags_runs_the_program_of_a_chain(
    ddr3: daedal.Device, rng: np.random.Generator, name: str, longest: int
) -> None:
    table = np.abs(numbers(rng, ROWS, 16)) + np.float32(1)
    runs = executable(ddr3)

    def program(name: str, many: list[int]) -> Any:
        request, expected = case(rng, table, np.array(many), name)
        assert same(runs(request)[0], expected)
        return runs.ir("mach", "op0")

    short, long = program(name, [0, longest, longest // 2, 1]), program(name, [0, longest + 16, 3, 1])
    assert short != long
    assert program(name, [longest]) == short == program(f"chain{', weighted' * ('weighted' in name)}", [longest, 2])


def test_several_tables_are_one_launch(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    made = [case(rng, numbers(rng, 20 + n, 16), lengths(rng, 10, 40), "blocks, mean") for n in range(26)]
    runs = executable(ddr3)
    for (_, expected), result in zip(made, runs(*(request for request, _ in made)), strict=True):
        assert same(result, expected)
    assert runs.stats.launches == 1


def test_three_widths_with_negative_zeros_are_one_launch(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    made = []
    for width in (8, 16, 32):
        table = numbers(rng, ROWS, width)
        table[: ROWS - 10] = -0.0
        made.append(case(rng, table, np.concatenate([lengths(rng, 20, 60), [0, 1, 2, 3]]), "blocks, mean"))
        assert np.signbit(made[-1][1][made[-1][1] == 0]).any()
    runs = executable(ddr3)
    for (_, expected), result in zip(made, runs(*(request for request, _ in made)), strict=True):
        assert same(result, expected)
    assert runs.stats.launches == 1


@pytest.mark.parametrize("negative_zeros", [0, 1, 4], ids=["normal", "one with -0.0", "all with -0.0"])
def test_several_widths_with_and_without_weights_are_one_launch(
    ddr3: daedal.Device, rng: np.random.Generator, negative_zeros: int
) -> None:
    """Callbacks of nests that do the same are the same ones: so many others would not fit into a program."""
    kinds = [("blocks", 16), ("blocks, mean", 16), ("blocks, root", 16), ("blocks", 8), ("lanes, weighted", 16)]
    made = []
    for n, (name, width) in enumerate(kinds):
        table = numbers(rng, ROWS, width)
        table[:4] = -0.0 if n < negative_zeros else 1.0
        made.append(case(rng, table, lengths(rng, 20, 60), name))
    runs = executable(ddr3)
    for (_, expected), result in zip(made, runs(*(request for request, _ in made)), strict=True):
        assert same(result, expected)
    assert runs.stats.launches == 1


def test_no_bags_and_no_rows(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table = numbers(rng, ROWS, 8)
    for many in (np.zeros(0, np.int64), np.zeros(3, np.int64)):
        for name in CASES:
            order, mode, is_weighted, _ = CASES[name]
            none = np.zeros(0, np.int64)
            weights = np.zeros(0, np.float32) if is_weighted else None
            request = ordered_request(name, table, none, weights, none, len(many), mode, order)
            assert same(run(ddr3, request)[0], np.zeros((len(many), 8), np.float32))


def test_rows_in_their_own_order_and_segments_in_none(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Without indices all rows are taken; keys in any order are the bags of their rows in the order that they have."""
    table, keys = numbers(rng, 120, 8), rng.integers(0, 4, 120)
    (result,) = run(ddr3, ordered_request("op", table, None, None, keys, 4, "sum", Order.LANES))
    assert same(result, np.stack([by_lanes(table[keys == key]) for key in range(4)]))


def test_an_index_out_of_range_is_the_index_that_was_given(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    table, keys = numbers(rng, ROWS, 8), np.repeat(np.arange(3), [20, 2, 30])
    for place in (3, 21, 40):
        indices = rng.integers(0, ROWS, len(keys))
        indices[place] = 77
        for order in (Order.BLOCKS, Order.LANES):
            with pytest.raises(daedal.IndexOutOfRange, match="77"):
                run(ddr3, ordered_request("op", table, indices, None, keys, 3, "sum", order))


def test_what_cannot_be_asked_for(rng: np.random.Generator) -> None:
    table, keys = numbers(rng, ROWS, 8), np.zeros(ROWS, np.int64)
    with pytest.raises(daedal.UnsupportedOperation, match="op: mode must be one of sum, mean, sqrtn, not 'max'"):
        ordered_request("op", table, None, None, keys, 1, "max", Order.BLOCKS)
    with pytest.raises(daedal.UnsupportedOperation, match="op: the table must be of float32 for sums in this order"):
        ordered_request("op", table.astype(np.float16), None, None, keys, 1, "sum", Order.BLOCKS)


def test_a_machine_without_room_says_so(rng: np.random.Generator) -> None:
    request = ordered_request("op", numbers(rng, ROWS, 8), None, None, np.zeros(ROWS, np.int64), 1, "sum", Order.BLOCKS)
    assert isinstance(request.operation, Bag)
    with daedal.Device.open("emulator", config="minimum") as device:
        with pytest.raises(daedal.UnsupportedOperation, match=r"^op0: .*configuration minimum"):
            run(device, request)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("width", [7, 64])
def test_bags_on_rtl(rng: np.random.Generator, width: int) -> None:
    table = numbers(rng, ROWS, width)
    table[:4] = -0.0
    many = lengths(rng, 20, 60)
    made = [case(rng, table, many, name) for name in CASES]
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        for (_, expected), result in zip(made, run(rtl, *(request for request, _ in made)), strict=True):
            assert same(result, expected)
        for request, expected in made:
            assert same(run(rtl, request)[0], expected)
