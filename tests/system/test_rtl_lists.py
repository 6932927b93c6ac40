"""Lists of tables and maxima on the RTL: RTL = emulator = PyTorch, bit for bit, in one launch; corners of the numeric
contract.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.bench.workloads import dlrm
from tests.compiler.layers.compiler_support import random_bags, same_bits, wild_table
from tests.compiler.layers.test_compiler_corners import LAYOUTS, Bags
from tests.compiler.layers.test_compiler_lists import Collection, inputs_for, of_all_kinds
from tests.compiler.layers.test_compiler_max import special_table
from tests.system.test_rtl_layers import Pair

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

INT64 = (torch.int64, torch.int64)
COUNTED = ("rows", "lookups", "bytes_written", "launches")


@contextmanager
def opened(config: str, memory: str) -> Iterator[Pair]:
    with (
        daedal.Device.open("verilator", config=config, memory=memory) as rtl,
        daedal.Device.open("emulator", config=config) as emulator,
    ):
        yield Pair(rtl, emulator)


@pytest.fixture(scope="module", params=[("ddr3", "ideal"), ("edge", "ideal:latency=300,stall=0.05,seed=2")], ids=str)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with opened(*request.param) as found:
        yield found


def check(pair: Pair, module: nn.Module, inputs: Any) -> None:
    """One launch on both, with the bits of PyTorch and the same counts."""
    found = []
    for device in (pair.rtl, pair.emulator):
        executable = daedal.compile(module, (inputs,), device=device)
        results, expected = executable(inputs), module(inputs)
        if isinstance(expected, Tensor):
            results, expected = [results], [expected]
        assert all(same_bits(*both) for both in zip(results, expected, strict=True))
        assert executable.stats.launches == 1
        found.append((executable.program, *(executable.stats[name] for name in COUNTED)))
    assert found[0] == found[1]


@pytest.mark.parametrize("ending", ["tuple", "concatenated"])
def test_tables_of_all_kinds(pair: Pair, ending: str, rng: np.random.Generator) -> None:
    module = Collection(of_all_kinds(rng), ending)
    for batch in (1, 7):
        check(pair, module, inputs_for(module, batch, rng))


def test_many_tables_of_one_kind(pair: Pair, rng: np.random.Generator) -> None:
    bags = [nn.EmbeddingBag.from_pretrained(wild_table(3 + n, 8, rng), mode="mean") for n in range(25)]
    module = Collection(bags, "concatenated")
    check(pair, module, inputs_for(module, 5, rng, weighted=()))


def test_a_recommender(pair: Pair) -> None:
    generator = torch.Generator().manual_seed(4)
    bags = [
        nn.EmbeddingBag.from_pretrained(torch.randn(min(rows, 500), dim, generator=generator), mode="sum")
        for rows, dim, _ in dlrm.TABLES
    ]
    module = Collection(bags, "concatenated")
    check(pair, module, inputs_for(module, 9, np.random.default_rng(5), weighted=()))


def test_a_bad_index_leaves_the_device_usable(pair: Pair, rng: np.random.Generator) -> None:
    module = Collection(of_all_kinds(rng), "concatenated")
    inputs = inputs_for(module, 3, rng)
    executable = daedal.compile(module, (inputs,), device=pair.rtl)
    indices, offsets = torch.tensor([1, 2, 20]), torch.tensor([0, 1, 2])
    with pytest.raises(daedal.IndexOutOfRange, match=r"_3 of bags.3.weight: index 20 is out of range .* 20 rows"):
        executable([(indices, offsets) if n == 3 else each for n, each in enumerate(inputs)])
    assert same_bits(executable(inputs), module(inputs))


@pytest.mark.parametrize("width", [1, 4, 20, 300])
def test_maxima(pair: Pair, width: int, rng: np.random.Generator) -> None:
    for padding in (None, 3):
        module = nn.EmbeddingBag.from_pretrained(
            special_table(9, width, rng), mode="max", padding_idx=padding, include_last_offset=True
        )
        pair.check(module, *random_bags(9, 8, rng, types=INT64))


@pytest.mark.parametrize("mode", ["sum", "mean", "weighted"])
def test_layouts(pair: Pair, mode: str, rng: np.random.Generator) -> None:
    for layout in ("every second column", "transposed", "every second row"):
        module = Bags(LAYOUTS[layout](wild_table(9, 12, rng)), mode, 2)
        inputs: tuple[Any, ...] = random_bags(9, 5, rng, longest=20, types=INT64)
        if mode == "weighted":
            inputs = (*inputs, wild_table(1, len(inputs[0]), rng)[0])
        pair.check(module, *inputs)


@pytest.mark.parametrize(
    ("config", "memory"),
    [("ddr3", "ideal"), pytest.param("edge", "ideal:latency=20,stall=0.05,seed=2", marks=pytest.mark.full)],
)
def test_a_bag_of_100000_rows(config: str, memory: str, rng: np.random.Generator) -> None:
    """Memory is quick where queues are short, since a bag of its own waits for memory every few rows there."""
    module = Bags(wild_table(300, 4, rng), "sum", None)
    inputs = torch.from_numpy(rng.integers(0, 300, 100_001)), torch.tensor([0, 100_000, 100_001])
    with opened(config, memory) as pair:
        pair.check(module, *inputs)


def test_rows_of_5000_elements(pair: Pair, rng: np.random.Generator) -> None:
    module = Bags(wild_table(6, 5000, rng), "mean", 1)
    pair.check(module, *random_bags(6, 3, rng, types=INT64))
