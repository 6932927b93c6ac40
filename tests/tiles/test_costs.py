"""Predicted loads beside the cycles of the target ``model``: rows of all widths, on machines of all sizes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.bench.explore.machines import adapted
from daedal.cosim.dram_times import DRAMS
from daedal.hw.config.core import PRESETS, Config
from daedal.system.cost import Costs, costs_of
from daedal.system.demand import Demand
from daedal.system.memory_times import channel_of
from daedal.system.plan import PlannedTable
from daedal.system.planner import Planner

DDR3, X64 = "litedram-ddr3-x16", "litedram-ddr3-x64"


class Each(nn.Module):
    """Bags, or rows, of several tables."""

    def __init__(self, tables: nn.ModuleList) -> None:
        super().__init__()
        self.tables = tables

    def forward(self, indices: list[torch.Tensor]) -> list[torch.Tensor]:
        """Those of each."""
        return [table(each) for table, each in zip(self.tables, indices, strict=True)]


def _error(
    config: Config, memory: str, dim: int, length: int, lookups: int, tables: int = 1, rows: int = 100_000
) -> float:
    """Predicted ÷ the model's cycles, less 1; a ``length`` of 0 copies rows."""
    rng = np.random.default_rng(dim + length)
    kinds = [nn.Embedding(rows, dim) if not length else nn.EmbeddingBag(rows, dim, mode="sum") for _ in range(tables)]
    shape = (lookups // tables // max(length, 1),) + ((length,) if length else ())
    indices = [torch.from_numpy(rng.integers(0, rows, shape)) for _ in range(tables)]
    with daedal.System.open("model", config, memory, tiles=1, table_check="shapes") as system, torch.no_grad():
        executable = daedal.compile(Each(nn.ModuleList(kinds)), (indices,), device=system)
        executable(indices)
        assert executable.plan is not None
        assert executable.stats.cycles > 9_000
        return executable.plan.load[0] / executable.stats.cycles - 1


@pytest.mark.parametrize(
    ("config", "memory", "lookups"),
    [
        ("minimum", "ideal", 1200), ("minimum", "ideal:latency=10", 1200), ("edge", "ideal", 4000),
        ("edge", DDR3, 6000), ("ddr3", "ideal:latency=300", 12000), ("ddr3", "ideal:lines=4", 12000),
        ("ddr3", DDR3, 12000), ("wide", X64, 12000), ("wide", "ddr4-3200-x64", 12000), ("hbm", "hbm2e", 9000),
        ("narrow16", DDR3, 9000),
    ],
)  # fmt: skip
def test_rows_shorter_than_64_bytes(config: str, memory: str, lookups: int) -> None:
    """They wait for ports, for rows that a DRAM opens, for steps: not for the memory's pins."""
    for dim, length in ((1, 1), (1, 40), (4, 0), (4, 5), (8, 2)):
        assert abs(_error(PRESETS[config], memory, dim, length, lookups)) < 0.16, (dim, length)


@pytest.mark.parametrize(
    ("config", "memory"),
    [
        ("minimum", "ideal"), ("edge", "ideal"), ("edge", DDR3), ("ddr3", DDR3), ("ddr3", "ideal"), ("wide", X64),
        ("hbm", "hbm2e"), ("ddr5-3200-x32", "ddr5-3200-x32"), ("lpddr4x", "lpddr4x"),
    ],
)  # fmt: skip
def test_rows_of_64_bytes_and_more(config: str, memory: str) -> None:
    shape = adapted(memory) if config in DRAMS else PRESETS[config]
    errors = {}
    for dim, length, tables in ((16, 1, 2), (16, 20, 1), (32, 5, 4), (64, 20, 2), (128, 50, 1)):
        lookups = 400 if config == "minimum" else 16_000 * shape.bus_bytes // dim // 4
        errors[dim, length, tables] = abs(_error(shape, memory, dim, length, lookups, tables))
    assert max(errors.values()) < 0.16 and np.mean(list(errors.values())) < 0.07, errors


@pytest.mark.parametrize(("config", "memory"), [("edge", DDR3), ("ddr3", DDR3), ("wide", X64), ("hbm", "hbm2e")])
def test_rows_that_are_copied(config: str, memory: str) -> None:
    for dim in (32, 64):
        assert abs(_error(PRESETS[config], memory, dim, 0, 10_000 * PRESETS[config].bus_bytes // dim // 4)) < 0.11


def _demand(lookups: int, bags: int, dim: int, **fields: object) -> Demand:
    table = PlannedTable("t", 1 << 20, dim, "float32", bags, lookups)
    found = Demand(table, 1 << 20, 1, 4, 4 * dim, bags, lookups, 8 * (lookups + bags))
    return replace(found, **fields)  # type: ignore[arg-type]


def test_what_takes_longest_decides() -> None:
    """More of what a machine has too little of saves cycles; more of anything else does not."""
    short, edge = _demand(6000, 150, 1), PRESETS["edge"]
    before = costs_of("ideal", edge).cycles_of(short, 1)
    assert costs_of("ideal", replace(edge, port_outstanding=16)).cycles_of(short, 1) < 0.55 * before
    assert costs_of("ideal", replace(edge, reorder_beats=128)).cycles_of(short, 1) > 0.99 * before
    assert costs_of("ideal:latency=50", edge).cycles_of(short, 1) < 0.55 * before
    hbm = costs_of("hbm2e", PRESETS["hbm"])
    assert hbm.cycles_of(short, 1) > 0.9 * hbm.cycles_of(_demand(6000, 150, 16), 16), "rows are opened one by one"
    assert hbm.cycles_of(replace(short, rows=64), 1) < 0.5 * hbm.cycles_of(short, 1), "and these are open"


def test_rows_of_integers_take_the_lanes_longer() -> None:
    config = replace(PRESETS["ddr3"], quantised=1)
    plain, headed = _demand(6000, 100, 256), _demand(6000, 100, 256, has_heads=True, step=0, row_bytes=264)
    assert costs_of(DDR3, config).cycles_of(headed, 256) > 1.8 * 6000 * 64
    assert costs_of(DDR3, replace(config, preadder=1)).cycles_of(headed, 256) < 1.1 * 6000 * 64
    assert costs_of(DDR3, config).cycles_of(plain, 256) < 1.2 * 6000 * 64


def test_memories_that_the_model_has_not() -> None:
    """Those that are random cost what they would be otherwise; of others than the configuration's the time is ideal."""
    ddr3 = PRESETS["ddr3"]

    def latency(memory: str) -> tuple[int, float]:
        found = channel_of(memory, ddr3)
        return found.parameters.latency, found.line_cycles

    assert latency("ideal:latency=40,stall=0.1,lines=0.5,seed=3") == latency("ideal:latency=40,lines=0.5") == (40, 2.0)
    assert latency(f"{DDR3}:stall=0.2,checks=1") == latency(DDR3)
    assert latency("ideal:pause_after=9") == latency(X64) == latency("ideal")
    assert isinstance(costs_of(X64, ddr3), Costs)
    assert _demand(0, 0, 4).bags == costs_of("ideal", ddr3).cycles_of(_demand(0, 0, 4), 4) == 0


def test_offsets_that_a_list_of_bags_reads_count() -> None:
    one, listed = _demand(6000, 3000, 1), _demand(6000, 3000, 1, listed=8 * 3001)
    costs = costs_of("ideal", PRESETS["ddr3"])
    assert costs.cycles_of(listed, 1) - costs.cycles_of(one, 1) == pytest.approx(1500, rel=0.3)
    least = costs_of("ideal", PRESETS["minimum"])
    assert least.cycles_of(listed, 1) == least.cycles_of(one, 1), "which it has not"


def test_a_table_is_not_cut_where_narrow_slices_take_as_long() -> None:
    """``hbm2e`` opens a row in 6 cycles, in which it could give 6 lines of 32 bytes."""
    hbm = PRESETS["hbm"]
    demands = [replace(_demand(2560, 128, 128), table=PlannedTable(name, 65536, 128, "float32", 128, 2560))
               for name in "ab"]  # fmt: skip
    plan = Planner(demands, hbm, "hbm2e", 4, 1 << 33, 0.1).plan()
    assert len(plan.pieces) == 4
    assert plan.balance < 1.01
