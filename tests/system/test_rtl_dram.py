"""The core with a DRAM behind it: RTL = emulator = PyTorch, bit for bit; every line that it reads is compared."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.cosim.litedram.memories import MEMORIES
from daedal.cosim.litedram.text import generate
from daedal.hw.config.core import PRESETS, Config
from tests.compiler.layers.compiler_support import wild_table
from tests.driver.test_driver_targets import copy
from tests.system.test_rtl_configs import BROAD
from tests.system.test_rtl_layers import Pair, random_bag

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

MACHINES = (
    (PRESETS["ddr3"], "litedram-ddr3-x16"),
    (PRESETS["ddr3"], "litedram-ddr3-x16:stall=0.3,seed=5,checks=1"),
    (BROAD, "litedram-ddr3-x64:stall=0.1,seed=3"),
    (BROAD, "litedram-ddr4-x64"),
)
MEMORY_BYTES = 64 << 20


@pytest.fixture(scope="module", params=MACHINES, ids=lambda machine: f"{machine[0].name}-{machine[1]}")
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    config, memory = request.param
    with (
        daedal.Device.open("verilator", config=config, memory=memory, memory_bytes=MEMORY_BYTES) as rtl,
        daedal.Device.open("emulator", config=config, memory_bytes=MEMORY_BYTES) as emulator,
    ):
        yield Pair(rtl, emulator)


def test_random_bags(pair: Pair, seed: int) -> None:
    rng = np.random.default_rng([seed, 23])
    for _ in range(8):
        module, inputs = random_bag(rng)
        pair.check(module, *inputs)


@pytest.mark.parametrize("width", [1, 20, 64, 1000])
def test_rows_over_many_pages(pair: Pair, width: int, rng: np.random.Generator) -> None:
    """Rows that begin anywhere before a 4 KiB boundary go on behind it; with 1000 elements every one does."""
    table = wild_table(3000 if width < 1000 else 200, width, rng)
    indices = torch.from_numpy(rng.integers(0, len(table), (6, 40)))
    pair.check(nn.Embedding.from_pretrained(table), indices)
    pair.check(nn.EmbeddingBag.from_pretrained(table, mode="sum"), indices)


def test_every_line_was_compared_and_refreshes_happened(pair: Pair, rng: np.random.Generator) -> None:
    target = pair.rtl.target
    before, start = target.dram_counts(), target.cycles
    table = wild_table(5000, 64, rng)
    indices = torch.from_numpy(rng.integers(0, 5000, (40, 32)))
    module = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    executable = daedal.compile(module, (indices,), device=pair.rtl)
    executable(indices)
    after, cycles = target.dram_counts(), target.cycles - start
    lines = after.reads - before.reads
    assert lines == after.checked - before.checked >= executable.stats.lines_read
    timing = generate(MEMORIES[target.dram], pair.rtl.config.ports).description.timing
    assert cycles > 3 * timing["tREFI"]
    assert abs(after.refreshes - before.refreshes - cycles / timing["tREFI"]) <= 1


def test_rows_that_straddle_the_end_of_memory(pair: Pair, rng: np.random.Generator) -> None:
    """The fault names the first line that is not there, and the device works on."""
    source = rng.random((8, 64), np.float32)
    end = MEMORY_BYTES - 3 * source[0].nbytes
    with pytest.raises(daedal.MemoryFault, match=f"{MEMORY_BYTES:#x}"):
        copy(pair.rtl, source, origin=end)
    assert np.array_equal(copy(pair.rtl, source), source)


@pytest.mark.parametrize(
    ("config", "memory", "message"),
    [
        ("wide", "litedram-ddr3-x16", "bus_bytes of configuration wide must be 16 for memory litedram-ddr3-x16"),
        ("ddr3", "litedram-ddr3-x64", "bus_bytes of configuration ddr3 must be 64 for memory litedram-ddr3-x64"),
    ],
)
def test_a_memory_for_another_core_is_refused(config: str, memory: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        daedal.Device.open("verilator", config=Config.preset(config), memory=memory)
