"""``daedal::row_bags``, which FBGEMM's modules become, by itself: FBGEMM is only in ``tests/frameworks``."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.compiler.frontends.torch.ops import row_bags
from daedal.driver.tables.quantised import QuantisedRows
from tests.compiler.layers.test_quantised_bags import EDGE

assert row_bags.LIBRARY is not None

ROWS, DIM, FEATURES = 20, 12, 3


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    """The golden model of a machine that has rows of all types."""
    with daedal.Device.open("emulator", config=replace(EDGE, name="edge-all", binary16=1, bfloat16=1)) as opened:
        yield opened


def table_of(kind: str, rng: np.random.Generator) -> Tensor:
    if not kind.startswith("int"):
        return torch.from_numpy(rng.standard_normal((ROWS, DIM))).to(getattr(torch, kind))
    form = QuantisedRows(int(kind[3:]), DIM, "float16", is_first=True)
    rows = rng.integers(0, 256, (ROWS, form.row_bytes), dtype=np.uint8)
    rows[:, :4] = rng.standard_normal((ROWS, 2)).astype(np.float16).view(np.uint8)
    return torch.from_numpy(rows)


class Tables(nn.Module):
    """A table for each feature of a batch."""

    def __init__(self, kinds: list[str], rng: np.random.Generator) -> None:
        super().__init__()
        self.bits = [int(kind[3:]) if kind.startswith("int") else 0 for kind in kinds]
        for number, kind in enumerate(kinds):
            self.register_buffer(f"table_{number}", table_of(kind, rng))

    def forward(self, indices: Tensor, offsets: Tensor | None, weights: Tensor | None = None) -> Tensor:
        results = [
            torch.ops.daedal.row_bags.default(
                getattr(self, f"table_{feature}"), indices, offsets, weights, feature, len(self.bits), bits, DIM, False
            )
            for feature, bits in enumerate(self.bits)
        ]
        return torch.cat(results, 1)


def batch(samples: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Indices of which some were pruned, offsets, weights."""
    lengths = rng.integers(0, 6, FEATURES * samples)
    offsets = torch.from_numpy(np.concatenate([[0], lengths.cumsum()]))
    indices = torch.from_numpy(rng.integers(-1, ROWS, int(offsets[-1])))
    return indices, offsets, torch.from_numpy(rng.standard_normal(len(indices)).astype(np.float32))


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kinds", ["float16 float32 bfloat16", "int8 int4 int2", "int8 float32 float16"])
def test_sums(kinds: str, is_weighted: bool, device: daedal.Device, rng: np.random.Generator) -> None:
    """Those of PyTorch's own operators on the rows that were not pruned: one launch, one trace for all sizes."""
    module, executable, code = Tables(kinds.split(), rng), None, ""
    for samples in (4, 2, 7):
        inputs = batch(samples, rng)[: 3 if is_weighted else 2]
        with torch.no_grad():
            executable = executable or daedal.compile(module, inputs, device=device)
            assert torch.equal(executable(*inputs), module(*inputs))
        assert executable.stats.launches == 1 and code in ("", executable.code)
        code = executable.code


def test_single_rows(device: daedal.Device, rng: np.random.Generator) -> None:
    module, indices = Tables(["int8", "float16"], rng), torch.tensor([[3], [-1], [19], [3]])
    executable = daedal.compile(module, (indices, None), device=device)
    found = executable(indices, None)
    assert torch.equal(found, module(indices, None)) and not found[1].any() and found[0, :DIM].any()
    assert torch.equal(found[0, DIM:], module.table_1[3].float())


def test_bad_inputs(device: daedal.Device, rng: np.random.Generator) -> None:
    module, (indices, offsets, weights) = Tables(["int8", "int4", "int2"], rng), batch(3, rng)
    executable = daedal.compile(module, (indices, offsets, weights), device=device)
    wrong = indices.clone()
    wrong[-1] = ROWS
    with pytest.raises(daedal.IndexOutOfRange, match=rf"of table_2: index {ROWS} is out of range"):
        executable(wrong, offsets, weights)
    for given, reason in ((offsets[:-1], "a bag for each sample of 3 features"), (offsets.flip(0), "not decrease")):
        with pytest.raises(daedal.InvalidOffsets, match=reason):
            executable(indices, given, weights)
    with pytest.raises(daedal.UnsupportedOperation, match="weights must be one for each of"):
        executable(indices, offsets, weights[1:])
