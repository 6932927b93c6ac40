"""Where pooling of 16-bit rows rounds, by rules written down in NumPy: device, PyTorch and these agree, on ties too."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import daedal
from daedal.hw.isa.spec.binary32 import fused
from daedal.hw.isa.spec.narrow import narrow, widen
from daedal.hw.isa.words import LengthField
from tests.compiler.layers.test_narrow_bags import DTYPES, EDGE, laid_out
from tests.compiler.torch.dynamo_support import Layer

EVEN = {"float16": LengthField.BINARY16, "bfloat16": LengthField.BFLOAT16}
AWAY = {"float16": LengthField.BINARY16, "bfloat16": LengthField.BFLOAT16_AWAY}
ROWS, WIDTH, BAGS = 40, 24, 30
Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def halves() -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


def ruled(
    table: Floats, bags: list[NDArray[Any]], weights: list[Floats] | None, mode: str, dtype: str, *, slow: bool,
    padding: int | None,
) -> NDArray[np.uint16]:  # fmt: skip
    """Patterns of the pooled rows. ``slow``: as PyTorch's kernels for padding rows and other layouts do."""
    first, results = (EVEN if slow else AWAY)[dtype], []
    for number, bag in enumerate(bags):
        acc, count = np.zeros(WIDTH, np.float32), 0
        for place, index in enumerate(bag):
            if index == padding:
                continue
            row, count = table[index], count + 1
            if mode == "max":
                acc = row if count == 1 else np.where(row > acc, row, acc)
            elif weights is None:
                acc = acc + row
            elif slow and dtype == "bfloat16":
                acc = acc + row * weights[number][place]
            else:
                acc = fused(row, np.full(WIDTH, weights[number][place]), acc)
        patterns = narrow(acc, first)
        if mode == "mean" and count:
            patterns = narrow(widen(patterns, first) / np.float32(count), EVEN[dtype])
        results.append(patterns)
    return np.array(results)


def rows_with_ties(dtype: str, rng: np.random.Generator) -> tuple[Tensor, Floats]:
    """Numbers of few bits, whose sums lie on halfway points often."""
    bits = 11 if dtype == "float16" else 8
    numbers = rng.integers(-(1 << bits), 1 << bits, (ROWS, WIDTH)).astype(np.float32) / 16
    tensor = torch.from_numpy(numbers).to(DTYPES[dtype])
    return tensor, tensor.float().numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["plain", "padded", "transposed", "sliced"])
@pytest.mark.parametrize("mode", ["sum", "weighted", "mean", "max"])
def test_rounds_as_the_rules_say(
    mode: str, layout: str, dtype: str, halves: daedal.Device, rng: np.random.Generator
) -> None:
    tensor, table = rows_with_ties(dtype, rng)
    padding, slow = (3 if layout == "padded" else None), layout in ("padded", "transposed")
    lengths = rng.choice([0, 1, 2, 3, 5, 9], BAGS)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, ROWS, ends[-1])
    factors = torch.from_numpy(rng.integers(-9, 9, len(indices)) / np.float32(4)).to(DTYPES[dtype])
    weights = np.split(factors.float().numpy(), ends[1:-1]) if mode == "weighted" else None
    kind = "sum" if mode == "weighted" else mode

    def layer(
        indices: torch.Tensor, offsets: torch.Tensor, table: torch.Tensor, *weights: torch.Tensor
    ) -> torch.Tensor:
        return nn.functional.embedding_bag(
            indices, table, offsets, mode=kind, include_last_offset=True, padding_idx=padding,
            per_sample_weights=weights[0] if weights else None,
        )  # fmt: skip

    inputs = (torch.from_numpy(indices), torch.from_numpy(ends), laid_out(tensor, layout))
    inputs += (factors,) if mode == "weighted" else ()
    bags = np.split(indices, ends[1:-1])
    expected = ruled(table, bags, weights, kind, dtype, slow=slow, padding=padding)
    executable = daedal.compile(Layer(layer), inputs, device=halves)
    for found in (layer(*inputs), executable(*inputs)):
        assert np.array_equal(found.view(torch.int16).numpy().view(np.uint16), expected)
    assert executable.offloaded
    other = ruled(table, bags, weights, kind, dtype, slow=not slow, padding=padding)
    is_told_apart = dtype == "bfloat16" and mode != "max"
    assert np.array_equal(other, expected) != is_told_apart  # there are ties, and they are what tells
