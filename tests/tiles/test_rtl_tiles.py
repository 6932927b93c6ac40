"""Two and three tiles on the RTL: PyTorch's bits, the emulator's counts, faults in one of them, cycles as planned."""

import numpy as np
import pytest
import torch

import daedal
from tests.tiles.models import same
from tests.tiles.test_tile_faults import Two, inputs_of

pytestmark = [pytest.mark.rtl, pytest.mark.slow]


@pytest.mark.parametrize("tiles", [2, 3])
def test_tiles_on_the_rtl(tiles: int, rng: np.random.Generator) -> None:
    model, inputs = Two(), inputs_of(rng)
    found = []
    for target in ("verilator", "emulator"):
        with daedal.System.open(target, config="edge", tiles=tiles) as system:
            plan = daedal.plan(model, system, sample=inputs, extra_bytes=2)
            executable = daedal.compile(model, inputs, device=system, plan=plan)
            assert same([executable(*inputs)], [model(*inputs)])
            stats = executable.stats
            found.append([(each.lookups, each.rows, each.bytes_written) for each in stats.per_tile])
            assert stats.cycles == max(each.cycles for each in stats.per_tile)
            bad = [each.clone() for each in inputs]
            bad[0][0] = -5
            with pytest.raises(daedal.IndexOutOfRange, match="index -5"):
                executable(*bad)
            futures = [executable.submit(*inputs) for _ in range(3)]
            assert all(same([future.result()], [model(*inputs)]) for future in futures)
    assert found[0] == found[1]


def test_cycles_are_about_those_of_the_plan(rng: np.random.Generator) -> None:
    model = torch.nn.EmbeddingBag(2000, 32, mode="sum")
    indices = torch.from_numpy(rng.integers(0, 2000, (256, 16)))
    with daedal.System.open("verilator", config="edge", memory="ideal", tiles=2) as system:
        executable = daedal.compile(model, indices, device=system)
        assert same([executable(indices)], [model(indices)])
        assert executable.plan is not None
        for planned, each in zip(executable.plan.load, executable.stats.per_tile, strict=True):
            assert abs(each.cycles / planned - 1) < 0.2
