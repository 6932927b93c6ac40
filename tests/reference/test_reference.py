"""The C reference of the numeric contract against eager PyTorch on this processor."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.reference import embedding_bag, same_bits
from tests.reference.layers import Layer, random_layer, random_values


def without_unused(layer: Layer) -> Layer:
    """The layer without indices beyond the last offset, which PyTorch does not ignore in every mode."""
    end = int(layer.offsets[-1]) if layer.include_last else len(layer.indices)
    weights = None if layer.weights is None else layer.weights[:end]
    return replace(layer, indices=layer.indices[:end], weights=weights)


def by_torch(layer: Layer, *, contiguous: bool = True) -> np.ndarray:
    if layer.mode != "sum" or layer.padding is not None or not contiguous:
        layer = without_unused(layer)
    table = torch.from_numpy(layer.table.copy())
    if not contiguous:
        table = torch.from_numpy(np.repeat(layer.table, 2, axis=1))[:, ::2]
    weights = None if layer.weights is None else torch.from_numpy(layer.weights)
    # Both kinds of index must be one type for PyTorch.
    indices, offsets = (torch.from_numpy(a.astype(np.int64)) for a in (layer.indices, layer.offsets))
    result = functional.embedding_bag(
        indices, table, offsets, mode=layer.mode, per_sample_weights=weights,
        padding_idx=layer.padding, include_last_offset=layer.include_last,
    )  # fmt: skip
    return result.numpy()


def by_reference(layer: Layer, *, contiguous: bool = True) -> np.ndarray:
    return embedding_bag(
        layer.table, layer.indices, layer.offsets, mode=layer.mode, weights=layer.weights,
        padding=layer.padding, include_last_offset=layer.include_last, contiguous=contiguous,
    )  # fmt: skip


@pytest.mark.parametrize("part", range(8))
def test_random_layers(rng: np.random.Generator, part: int) -> None:
    rng = np.random.default_rng([part, int(rng.integers(1 << 30))])
    for _ in range(40):
        layer = random_layer(rng)
        if layer.bags:
            assert same_bits(by_reference(layer), by_torch(layer)), layer


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257])
def test_dims(rng: np.random.Generator, dim: int) -> None:
    for _ in range(4):
        layer = random_layer(rng, dim=dim)
        if layer.bags:
            assert same_bits(by_reference(layer), by_torch(layer)), layer


def test_tables_that_are_not_contiguous(rng: np.random.Generator) -> None:
    for _ in range(40):
        layer = random_layer(rng, special=False, longest=40)
        if layer.bags and layer.table.shape[1] > 1 and len(layer.table) > 1:
            assert same_bits(by_reference(layer, contiguous=False), by_torch(layer, contiguous=False)), layer


@pytest.mark.parametrize("bits", [torch.int32, torch.int64])
def test_index_types_make_no_difference(rng: np.random.Generator, bits: torch.dtype) -> None:
    table = random_values(rng, (20, 33), special=True)
    indices, offsets = rng.integers(0, 20, 50), np.array([0, 7, 7, 30])
    result = functional.embedding_bag(
        torch.from_numpy(indices).to(bits),
        torch.from_numpy(table),
        torch.from_numpy(offsets).to(bits),
        mode="sum",
    )
    assert same_bits(embedding_bag(table, indices, offsets), result.numpy())


def test_a_single_last_offset_gives_an_empty_result() -> None:
    table = np.ones((3, 4), dtype=np.float32)
    result = embedding_bag(table, np.zeros(0), np.array([0]), include_last_offset=True)
    assert result.shape == (0, 4)


@pytest.mark.parametrize(("mode", "expected"), [("sum", 1.0), ("max", 5.0), ("mean", 0.5)])
def test_pytorch_does_not_ignore_indices_beyond_the_last_offset(mode: str, expected: float) -> None:
    # Our contract is to ignore them in every mode. PyTorch does so only in a plain sum: its last maximum
    # takes them in, and its last mean divides by their number as well.
    table, indices, offsets = np.array([[1.0], [5.0]], dtype=np.float32), np.array([0, 1]), np.array([0, 1])
    result = functional.embedding_bag(
        *map(torch.from_numpy, (indices, table, offsets)), mode=mode, include_last_offset=True
    )
    assert result.item() == expected
    assert embedding_bag(table, indices, offsets, mode=mode, include_last_offset=True).item() == 1.0


def test_index_out_of_range_is_named() -> None:
    table = np.ones((3, 4), dtype=np.float32)
    with pytest.raises(IndexError, match="index 3 at position 1"):
        embedding_bag(table, np.array([0, 3]), np.array([0]))


def test_weights_are_fused_only_without_padding() -> None:
    # The product needs 25 bits; only a fused multiply-add keeps the last one.
    x = np.float32(1 + 2**-12)
    table, weights = np.array([[-1.0], [x]], dtype=np.float32), np.array([1.0, x], dtype=np.float32)
    args = table, np.array([0, 1]), np.array([0])
    fused = embedding_bag(*args, weights=weights)
    twice = embedding_bag(*args, weights=weights, contiguous=False)
    assert fused[0, 0] == np.float32(2**-11 + 2**-24)
    assert twice[0, 0] == np.float32(2**-11)
