"""Random layers: RTL = emulator = C reference = PyTorch, bit for bit, over configurations; faults leave it usable."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import random_bags, same_bits, wild_table
from tests.reference import embedding_bag

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

MEMORIES = ("ideal", "ideal:stall=0.3,seed=5", "ideal:latency=3,lines=4", "ideal:latency=300,stall=0.05,seed=2")
WIDTHS = (1, 2, 3, 4, 5, 8, 16, 31, 64, 100, 257, 300)
COUNTED = ("rows", "lookups", "bytes_written")


class Pair:
    """The RTL and the emulator with the same configuration."""

    def __init__(self, rtl: daedal.Device, emulator: daedal.Device) -> None:
        self.rtl, self.emulator = rtl, emulator

    def check(self, module: nn.Module, *inputs: Any) -> None:
        """Both give PyTorch's bits from the same program, and count the same."""
        executables = [daedal.compile(module, inputs, device=device) for device in (self.rtl, self.emulator)]
        expected = module(*inputs)
        if isinstance(module, nn.EmbeddingBag):
            assert same_bits(torch.from_numpy(by_reference(module, *inputs)), expected)
        for executable in executables:
            assert same_bits(executable(*inputs), expected)
        assert executables[0].program == executables[1].program
        for name in COUNTED:
            assert executables[0].stats[name] == executables[1].stats[name], name
        assert executables[0].stats["cycles"] > 0


def by_reference(module: nn.EmbeddingBag, indices: Tensor, offsets: Tensor | None = None,
                 weights: Tensor | None = None) -> np.ndarray[Any, Any]:  # fmt: skip
    """What the numeric contract in C gives."""
    if indices.dim() == 2:
        offsets = torch.arange(0, indices.numel(), indices.shape[1])
    assert offsets is not None
    return embedding_bag(
        module.weight.detach().numpy(), indices.numpy().ravel(), offsets.numpy(), mode=module.mode,
        weights=None if weights is None else weights.numpy().ravel(), padding=module.padding_idx,
        include_last_offset=module.include_last_offset and indices.dim() == 1,
    )  # fmt: skip


@pytest.fixture(scope="module", params=[("ddr3", m) for m in MEMORIES] + [("edge", MEMORIES[1])], ids=str)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    config, memory = request.param
    with (
        daedal.Device.open("verilator", config=config, memory=memory) as rtl,
        daedal.Device.open("emulator", config=config) as emulator,
    ):
        yield Pair(rtl, emulator)


def random_bag(rng: np.random.Generator) -> tuple[nn.Module, tuple[Any, ...]]:
    """A layer and inputs for it: mode, width, padding, weights, types, 1-D or 2-D."""
    rows, width = int(rng.integers(1, 60)), int(rng.choice(WIDTHS))
    weighted = bool(rng.integers(2))
    mode = "sum" if weighted else str(rng.choice(["sum", "mean", "max"]))
    padding = None if rng.integers(2) else int(rng.integers(-rows, rows))
    with_end, flat = bool(rng.integers(2)), bool(rng.integers(4))
    integer = torch.int32 if rng.integers(2) else torch.int64
    module = nn.EmbeddingBag.from_pretrained(
        wild_table(rows, width, rng), mode=mode, padding_idx=padding, include_last_offset=flat and with_end
    )
    if flat:
        indices, offsets = random_bags(rows, int(rng.integers(1, 12)), rng, types=(integer, integer))
        inputs: tuple[Any, ...] = (indices, offsets if with_end else offsets[:-1])
    else:
        shape = int(rng.integers(1, 9)), int(rng.integers(1, 7))
        inputs = (torch.from_numpy(rng.integers(0, rows, shape)).to(integer), None)
    if weighted:
        return module, (*inputs, torch.from_numpy(rng.standard_normal(tuple(inputs[0].shape)).astype(np.float32)))
    return module, tuple(value for value in inputs if value is not None)


@pytest.mark.parametrize("part", range(3))
def test_random_bags(pair: Pair, part: int) -> None:
    rng = np.random.default_rng([11, part])
    for _ in range(6):
        module, inputs = random_bag(rng)
        pair.check(module, *inputs)


@pytest.mark.parametrize("width", [1, 3, 4, 20, 64, 300])
def test_gathers(pair: Pair, width: int, rng: np.random.Generator) -> None:
    module = nn.Embedding.from_pretrained(wild_table(40, width, rng))
    pair.check(module, torch.from_numpy(rng.integers(0, 40, (5, 9))))


def test_a_long_bag_and_an_empty_batch(pair: Pair, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(wild_table(40, 12, rng), mode="sum")
    executable = daedal.compile(module, (torch.zeros(4, dtype=torch.long), torch.tensor([0, 2])), device=pair.rtl)
    for inputs in (
        (torch.from_numpy(rng.integers(0, 40, 700)), torch.tensor([0])),
        (torch.zeros(0, dtype=torch.long), torch.tensor([0, 0, 0])),
        (torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)),
    ):
        assert same_bits(executable(*inputs), module(*inputs))


def test_faults_name_the_value_and_leave_the_device_usable(pair: Pair, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(wild_table(10, 8, rng), mode="sum")
    indices, offsets = torch.tensor([1, 2, 3, 9]), torch.tensor([0, 2])
    executable = daedal.compile(module, (indices, offsets), device=pair.rtl)
    for bad in (10, -1, 1 << 40, -(1 << 62)):
        wrong = torch.tensor([1, 2, bad, 3])
        with pytest.raises(daedal.IndexOutOfRange, match=str(bad)):
            executable(wrong, offsets)
        assert same_bits(executable(indices, offsets), module(indices, offsets))
    for listed in ([0, 3, 2], [0, 5, 1], [0, -1]):
        with pytest.raises(daedal.InvalidOffsets):
            executable(indices, Tensor(listed).long())
        assert same_bits(executable(indices, offsets), module(indices, offsets))
