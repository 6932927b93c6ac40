"""The widest machine, the smallest legal one and odd ones: RTL = emulator = PyTorch, bit for bit."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.hw.config.core import PRESETS, Config
from tests.compiler.layers.compiler_support import random_bags, wild_table
from tests.fuzz.configs import SMALL
from tests.system.test_rtl_layers import Pair, random_bag

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

UNEVEN = Config(
    name="uneven", bus_bytes=16, lanes=2, ports=2, levels=3, registers=6, sequential_loads=(2, 3, 1),
    random_loads=(1, 1, 2), alus=(2, 3, 1), shifters=(False, True, False), contexts=(0, 4, 0), dealt_bundles=128,
    arguments=19, steps=7, callbacks=9, instructions=23, lengths=3, vector_registers=5, register_beats=16,
    vector_beats=32, reorder_beats=37,
    token_depth=3, scalar_depth=5, store_address_depth=3, store_beats=37, lookahead_lines=8, lookahead_burst=2,
    random_outstanding=3, port_requests=3, port_outstanding=5, row_groups=8, banks=4, page_bytes=128, write_burst=5,
    write_batch=37,
)  # fmt: skip
"""Half as many lanes as a line has elements; pages of eight lines; depths that are no powers of two."""

BROAD = replace(Config.preset("wide"), name="broad", context_ahead=2)
"""The preset ``wide`` with entries for two rows ahead instead of four, which are half of what there is to compile."""

CONFIGS = {**PRESETS, **{config.name: config for config in (BROAD, SMALL, UNEVEN)}}
"""The machines of these tests by name."""

WIDE, ODD = "ideal:latency=60,stall=0.1,seed=3", "ideal:latency=30,stall=0.1,seed=2,mixed=0"
MACHINES = [
    pytest.param((BROAD, WIDE), id="broad"),
    pytest.param((Config.preset("wide"), WIDE), id="wide", marks=pytest.mark.full),
    pytest.param((Config.preset("minimum"), "ideal:latency=3,stall=0.3,seed=5"), id="minimum"),
    pytest.param((SMALL, ODD), id="small"),
    pytest.param((UNEVEN, ODD), id="uneven", marks=pytest.mark.full),
]


@pytest.fixture(scope="module", params=MACHINES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    config, memory = request.param
    with (
        daedal.Device.open("verilator", config=config, memory=memory) as rtl,
        daedal.Device.open("emulator", config=config) as emulator,
    ):
        yield Pair(rtl, emulator)


def test_random_bags(pair: Pair, seed: int) -> None:
    rng = np.random.default_rng([seed, 17])
    for _ in range(12):
        module, inputs = random_bag(rng)
        pair.check(module, *inputs)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 6, 15, 16, 17, 31, 32, 33, 100])
def test_every_way_to_end_a_line(pair: Pair, width: int, rng: np.random.Generator) -> None:
    """A gather, which the store stream takes past the lanes, and a sum, which goes through them."""
    indices = torch.from_numpy(rng.integers(0, 30, (4, 7)))
    table = wild_table(30, width, rng)
    pair.check(nn.Embedding.from_pretrained(table), indices)
    pair.check(nn.EmbeddingBag.from_pretrained(table, mode="sum"), indices)


def test_narrow_rows_come_from_bags_in_turn(pair: Pair, rng: np.random.Generator) -> None:
    """Long bags have streams of their own, where a level has contexts; short ones are dealt, where bundles can be."""
    module = nn.EmbeddingBag.from_pretrained(wild_table(40, 3, rng), mode="sum", include_last_offset=True)
    config = pair.emulator.config
    interleaves, deals = config.context_level is not None, config.dealt_bundles > 0
    for longest, turns in ((20, (False, deals)), (60, (interleaves, False))):
        inputs = random_bags(40, 30, rng, longest=longest, types=(torch.int32, torch.int32))
        pair.check(module, *inputs)
        asm = daedal.compile(module, inputs, device=pair.emulator).asm()
        assert ("interleave=1" in asm, "deal=1" in asm) == turns


def test_tables_of_different_shape_in_one_launch(pair: Pair, rng: np.random.Generator) -> None:
    shapes = ((20, 8, "sum"), (11, 8, "sum"), (30, 5, "mean"))
    tables = nn.ModuleList(
        nn.EmbeddingBag.from_pretrained(wild_table(rows, width, rng), mode=mode) for rows, width, mode in shapes
    )

    class Collection(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = tables

        def forward(self, indices: torch.Tensor) -> torch.Tensor:
            return torch.cat([table(indices) for table in self.tables], 1)

    pair.check(Collection(), torch.from_numpy(rng.integers(0, 11, (3, 5))))


def test_faults_leave_it_usable(pair: Pair, rng: np.random.Generator) -> None:
    """Also with half a line on its way to or from the lanes."""
    module = nn.EmbeddingBag.from_pretrained(wild_table(10, 7, rng), mode="sum")
    good = torch.from_numpy(rng.integers(0, 10, (6, 5)))
    pair.check(module, good)
    executable = daedal.compile(module, (good,), device=pair.rtl)
    for place in range(0, 30, 7):
        bad = good.clone()
        bad.view(-1)[place] = 1 << 41
        with pytest.raises(daedal.IndexOutOfRange, match=str(1 << 41)):
            executable(bad)
        pair.check(module, good)
