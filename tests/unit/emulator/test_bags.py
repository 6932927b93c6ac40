"""Embedding bags and gathers, written by hand for the machine, against the numeric contract in C."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.launch import Counter, State
from daedal.hw.isa.words import StepField
from tests.reference import bag_limits, embedding_bag, same_bits
from tests.reference.layers import Layer, random_layer, random_values
from tests.unit.emulator.programs import Bag, Bench, gather, place_table


def place_bag(bench: Bench, layer: Layer, **changes: Any) -> Bag:
    """The layer in device memory."""
    limits = bag_limits(layer.offsets, len(layer.indices), layer.include_last).astype(layer.offsets.dtype)
    rows, dim = layer.table.shape
    values: dict[str, Any] = {
        "table": place_table(bench, layer.table), "rows": rows, "dim": dim,
        "indices": bench.place(layer.indices), "index_bytes": layer.indices.itemsize,
        "index_count": len(layer.indices), "offsets": bench.place(limits), "offset_bytes": limits.itemsize,
        "bags": layer.bags, "out": bench.reserve(layer.bags * dim * BINARY32.bytes), "mode": layer.mode,
        "weights": None if layer.weights is None else bench.place(layer.weights),
        "padding": None if layer.padding is None else layer.padding % rows,
    }  # fmt: skip
    return Bag(**values | changes)


def by_reference(layer: Layer) -> np.ndarray[Any, Any]:
    return embedding_bag(
        layer.table, layer.indices, layer.offsets, mode=layer.mode, weights=layer.weights,
        padding=layer.padding, include_last_offset=layer.include_last,
    )  # fmt: skip


@pytest.mark.parametrize("part", range(4))
def test_random_bags(bench: Bench, rng: np.random.Generator, part: int) -> None:
    rng = np.random.default_rng([part, int(rng.integers(1 << 30))])
    for _ in range(12):
        layer = random_layer(rng, longest=100)
        bag = place_bag(bench, layer)
        record = bench.run(bag.words(bench.config))
        assert record.state is State.DONE, record
        assert same_bits(bench.floats(bag.out, (bag.bags, bag.dim)), by_reference(layer)), layer


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 16, 63, 64, 65, 255, 256, 257])
def test_dims(bench: Bench, rng: np.random.Generator, dim: int, mode: str) -> None:
    table, indices = random_values(rng, (30, dim), special=True), rng.integers(0, 30, 60)
    layer = Layer(table, indices, np.array([0, 0, 1, 31]), mode, None, None, False)
    bag = place_bag(bench, layer)
    assert bench.run(bag.words(bench.config)).state is State.DONE
    assert same_bits(bench.floats(bag.out, (4, dim)), by_reference(layer))


@pytest.mark.parametrize("dim", [1, 3, 4, 7, 64, 300])
def test_gather_as_store_stream(bench: Bench, rng: np.random.Generator, dim: int) -> None:
    table, indices = random_values(rng, (50, dim), special=True), rng.integers(0, 50, 77).astype(np.int32)
    out = bench.reserve(77 * dim * BINARY32.bytes)
    words = gather(bench.config, place_table(bench, table), 50, dim, bench.place(indices), 77, out)
    record = bench.run(words)
    assert record.state is State.DONE
    # A gather copies bits, also those of NaNs.
    assert bench.floats(out, (77, dim)).tobytes() == table[indices].tobytes()
    assert record.counter(Counter.BYTES_WRITTEN) == 77 * dim * BINARY32.bytes


def test_nan_results_are_canonical(bench: Bench) -> None:
    payload = np.array([0xFFC12345], dtype=np.uint32).view(np.float32)
    layer = Layer(payload.reshape(1, 1), np.array([0]), np.array([0]), "sum", None, None, False)
    bag = place_bag(bench, layer)
    bench.run(bag.words(bench.config))
    assert bench.floats(bag.out, (1,)).view(np.uint32)[0] == 0x7FC00000


def test_first_row_of_a_maximum_keeps_its_bits(bench: Bench) -> None:
    payload = np.array([0xFFC12345], dtype=np.uint32).view(np.float32)
    table = np.array([payload[0], 1.0], dtype=np.float32).reshape(2, 1)
    layer = Layer(table, np.array([0, 1]), np.array([0]), "max", None, None, False)
    bag = place_bag(bench, layer)
    bench.run(bag.words(bench.config))
    assert bench.floats(bag.out, (1,)).view(np.uint32)[0] == 0xFFC12345


def test_counters(bench: Bench, rng: np.random.Generator) -> None:
    table, indices = random_values(rng, (30, 16), special=False), rng.integers(0, 30, 60)
    layer = Layer(table, indices, np.array([0, 10, 10, 25]), "sum", None, None, False)
    bag = place_bag(bench, layer)
    record = bench.run(bag.words(bench.config))
    lines = 16 * BINARY32.bytes // bench.config.bus_bytes
    expected = {
        Counter.ROWS: 60, Counter.LOOKUPS: 60, Counter.BUNDLES: 61, Counter.TOKENS: 64,
        Counter.BYTES_WRITTEN: 4 * 64, Counter.LINES_WRITTEN: 4 * lines, Counter.CYCLES: 0,
        Counter.STALL_LOAD: 0,
    }  # fmt: skip
    assert {counter: record.counter(counter) for counter in expected} == expected
    # Rows, 60 indices of 8 bytes, offsets twice, launch block and program.
    least = 60 * lines + 60 * 8 // bench.config.bus_bytes
    assert least < record.counter(Counter.LINES_READ) < 2 * least


def test_lines_of_adjacent_stores_are_counted_once(bench: Bench, rng: np.random.Generator) -> None:
    table, indices = random_values(rng, (30, 1), special=False), rng.integers(0, 30, 32)
    layer = Layer(table, indices, np.arange(32), "sum", None, None, False)
    record = bench.run(place_bag(bench, layer).words(bench.config))
    assert record.counter(Counter.LINES_WRITTEN) == 32 * BINARY32.bytes // bench.config.bus_bytes


def test_a_beat_that_is_not_full_counts(bench: Bench, rng: np.random.Generator) -> None:
    table = random_values(rng, (30, bench.config.lanes + 1), special=False)
    layer = Layer(table, rng.integers(0, 30, 10), np.array([0]), "sum", None, None, False)
    record = bench.run(place_bag(bench, layer).words(bench.config))
    assert record.counter(Counter.LANE_BEATS) == 2 * 10


def test_arguments_are_added(bench: Bench, rng: np.random.Generator) -> None:
    table, indices = random_values(rng, (30, 16), special=False), rng.integers(0, 30, 60)
    layer = Layer(table, indices, np.array([0, 10]), "sum", None, None, False)
    bag = place_bag(bench, layer)
    words = [
        replace(word, value=word.value - 1000, argument=5) if word.field is StepField.STORE_BASE else word
        for word in bag.words(bench.config)
    ]
    assert bench.run(words, [0] * 5 + [1000]).state is State.DONE
    assert same_bits(bench.floats(bag.out, (2, 16)), by_reference(layer))
