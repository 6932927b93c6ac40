"""Sixteen lanes, on narrow lines and on wide ones: RTL = emulator = PyTorch, bit for bit, for rows of every type."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.hw.config.core import Config
from tests.compiler.layers import test_narrow_bags as narrow
from tests.compiler.layers import test_quantised_bags as quantised
from tests.compiler.layers.compiler_support import same_bits
from tests.compiler.torch.dynamo_support import Layer
from tests.fuzz.configs import WIDE_TYPES
from tests.system.test_rtl_layers import Pair, random_bag

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

BAGS, LONG, WIDTH = 64, 32, 64


NARROW16 = Config.preset("narrow16")
TWO_PASS = [
    replace(config, name=f"{config.name}-two-pass", preadder=0, two_pass=1) for config in (NARROW16, WIDE_TYPES)
]
MACHINES = [
    pytest.param((NARROW16, "ideal"), id="narrow16"),
    pytest.param((NARROW16, "ideal:latency=30,stall=0.2,seed=3,mixed=0"), id="narrow16-stalls"),
    *(pytest.param((config, "ideal"), id=config.name, marks=pytest.mark.full) for config in TWO_PASS),
    pytest.param((WIDE_TYPES, "ideal"), id="wide", marks=pytest.mark.full),
    pytest.param((WIDE_TYPES, "litedram-ddr3-x64"), id="wide-ddr3", marks=pytest.mark.full),
]


@pytest.fixture(scope="module", params=MACHINES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    config, memory = request.param
    with (
        daedal.Device.open("verilator", config=config, memory=memory) as rtl,
        daedal.Device.open("emulator", config=config) as emulator,
    ):
        yield Pair(rtl, emulator)


def both(pair: Pair, layer: nn.Module, inputs: tuple[Any, ...], same: Callable[[Tensor, Tensor], bool]) -> None:
    """Both machines give PyTorch's bits, and have looked up the same."""
    executables = [daedal.compile(layer, inputs, device=device) for device in (pair.rtl, pair.emulator)]
    for executable in executables:
        assert same(executable(*inputs), layer(*inputs))
        assert executable.offloaded
    assert executables[0].stats.lookups == executables[1].stats.lookups


@pytest.mark.parametrize("dtype", narrow.DTYPES)
def test_bags_of_halves(dtype: str, pair: Pair, seed: int) -> None:
    rng = np.random.default_rng([seed, 471])
    for _ in range(8):
        layer, inputs = narrow.random_layer(narrow.DTYPES[dtype], rng)
        both(pair, Layer(layer), inputs, narrow.same)


def test_quantised_bags(pair: Pair, seed: int) -> None:
    rng = np.random.default_rng([seed, 472])
    for _ in range(16):
        both(pair, *quantised.random_layer(rng), same_bits)


@pytest.mark.parametrize("bits", quantised.NAMES)
def test_every_end_of_a_quantised_row(bits: int, pair: Pair, rng: np.random.Generator) -> None:
    """Integers behind a head end in each part of a beat, and begin the next one."""
    step = 4 * 8 // bits
    for width in range(step, 40 * step, 3 * step):
        table = quantised.table_of(bits, 9, width, rng)
        inputs = (torch.from_numpy(rng.integers(0, 9, 12)), torch.tensor([0, 3, 5]))
        both(pair, quantised.Layer(bits, table), inputs, same_bits)


def test_words_and_copies(pair: Pair, seed: int) -> None:
    """Rows of binary32, of which several lines are a beat; and rows that pass the lanes."""
    rng = np.random.default_rng([seed, 473])
    for _ in range(6):
        module, inputs = random_bag(rng)
        pair.check(module, *inputs)
    for width in (1, 7, 33):
        table = torch.from_numpy(rng.standard_normal((20, width)).astype(np.float16))
        both(pair, nn.Embedding.from_pretrained(table), (torch.tensor([3, 19, 3]),), narrow.same)


def test_halves_take_half_of_the_time() -> None:
    """Both are as fast as their lines come: more lanes than a line has words keep up with them."""
    rng, cycles = np.random.default_rng(1), {}
    indices, offsets = torch.from_numpy(rng.integers(0, 500, BAGS * LONG)), torch.arange(0, BAGS * LONG, LONG)
    with daedal.Device.open("verilator", config="narrow16") as device:
        for dtype in (torch.float32, torch.bfloat16):
            table = torch.from_numpy(rng.standard_normal((500, WIDTH)).astype(np.float32)).to(dtype)
            layer = nn.EmbeddingBag.from_pretrained(table, mode="sum")
            executable = daedal.compile(layer, (indices, offsets), device=device)
            executable(indices, offsets)
            assert torch.equal(executable(indices, offsets), layer(indices, offsets))
            cycles[dtype] = executable.stats["cycles"]
    assert cycles[torch.bfloat16] < 0.6 * cycles[torch.float32]
