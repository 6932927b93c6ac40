"""Plans: balance, bytes for copies, time, determinism, files, and what does not belong to them."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.hw.config.core import Config
from daedal.system.demand import Demand
from daedal.system.plan import Piece, Plan, PlannedTable
from daedal.system.planner import Planner
from tests.tiles.test_systems import lists

DDR3 = Config.preset("ddr3")
LITEDRAM = "litedram-ddr3-x16"
LARGE = 1 << 33


def demand(name: str, rows: int, row_bytes: int, bags: int, pooling: float) -> Demand:
    lookups = round(bags * pooling)
    table = PlannedTable(name, rows, row_bytes // 4, "float32", bags, lookups)
    return Demand(table, rows, 1, 4, row_bytes, bags, lookups, 8 * (lookups + bags))


def fleet(name: str) -> list[Demand]:
    """The tables of a model: rows, bytes of a row, and look-ups of a bag."""
    if name == "rm1":
        shapes: Sequence[tuple[int, int, float]] = [(65536, 128, 80)] * 8
    elif name == "rm2":
        shapes = [(65536, 256, 32)] * 4
    elif name == "kaggle":
        shapes = [(int(rows), 64, 1) for rows in np.geomspace(10, 60000, 26).round()]
    elif name == "mixed100":
        shapes = mixed(100)
    else:
        shapes = [(50_000, 256, 100)] + [(1_000_000, 256, 2)] * 4 + [(500, 128, 1)] * 21
    bags = {"rm1": 64, "kaggle": 512, "mixed100": 64}.get(name, 128)
    return [demand(f"t{number:04}", *shape[:2], bags, shape[2]) for number, shape in enumerate(shapes)]


def mixed(count: int) -> list[tuple[int, int, float]]:
    draw = np.random.default_rng(11)
    rows = np.clip(np.exp(draw.normal(np.log(20000), 2.5, count)), 10, 4_000_000).astype(int)
    pooling = np.clip(np.exp(draw.normal(np.log(6), 1.2, count)), 1, 120)
    dims = draw.choice([64, 128, 256, 512], count, p=[0.3, 0.35, 0.25, 0.1])
    return [(int(r), int(d), float(p)) for r, d, p in zip(rows, dims, pooling, strict=True)]


def plan_for(demands: Sequence[Demand], tiles: int, extra: float = 0.1, memory_bytes: int = LARGE) -> Plan:
    return Planner(demands, DDR3, LITEDRAM, tiles, memory_bytes, extra).plan()


@pytest.mark.parametrize("tiles", [3, 5, 8])
def test_loads_of_random_tables_are_equal_within_the_bytes_for_copies(tiles: int, rng: np.random.Generator) -> None:
    """Slices of columns round their bytes up, which is no copy; rows are long enough for that to be little."""
    for _ in range(6):
        bags, sizes = int(rng.choice([16, 64, 512])), np.exp(rng.uniform(np.log(1000), np.log(2e6), 30)).astype(int)
        rows = [int(each) for each in rng.choice([128, 256, 512], 30)]
        pooling = np.clip(np.exp(rng.normal(np.log(6), 1.4, 30)), 1, 200)
        tables = enumerate(zip(sizes, rows, pooling, strict=True))
        plan = plan_for([demand(f"t{n:04}", int(r), w, bags, float(p)) for n, (r, w, p) in tables], tiles)
        assert plan.extra <= 0.1
        assert plan.balance <= 1.05


def test_each_part_of_a_table_has_a_beginning_and_an_end() -> None:
    """Many small tables on a tile take longer than one that moves as many lines."""
    one, many = demand("t", 1000, 256, 64, 24), [demand(f"t{n}", 1000, 256, 64, 2) for n in range(12)]
    bytes_of_results = 11 * 64 * 256 / DDR3.bus_bytes
    apart = max(plan_for(many, 1).load) - max(plan_for([one], 1).load)
    assert apart > 1.05 * bytes_of_results + 11 * 100


@pytest.mark.parametrize("tiles", [2, 4, 8, 16])
@pytest.mark.parametrize("name", ["rm1", "rm2", "kaggle", "mixed100", "skew"])
def test_loads_are_equal_within_the_bytes_for_copies(name: str, tiles: int) -> None:
    plan = plan_for(fleet(name), tiles)
    assert plan.extra <= 0.1
    assert max(plan.load) <= 1.08 * min(plan.load)


@pytest.mark.parametrize("tiles", [2, 3, 5, 16])
def test_a_tile_has_bags_of_a_slice_that_follow_each_other(tiles: int, rng: np.random.Generator) -> None:
    """Each range that a tile has takes time of its own."""
    for name in ("kaggle", "skew"):
        seen = [(piece.table, piece.columns, piece.tile) for piece in plan_for(fleet(name), tiles, 3.0).pieces]
        assert len(set(seen)) == len(seen)
    for count in (1, 4, 9):
        demands = [demand(f"t{n}", 50, 64, 9, float(rng.integers(1, 60))) for n in range(count)]
        plan = plan_for([replace(each, step=0) for each in demands], tiles, 9.0)
        seen = [(piece.table, piece.columns, piece.tile) for piece in plan.pieces]
        assert len(set(seen)) == len(seen)


def test_a_hot_table_is_shared_out() -> None:
    """Round robin leaves the hot table to one tile; within a tenth more bytes the plan is at least 8 times as fast."""
    demands = fleet("skew")
    alone = plan_for(demands[:1], 1)
    assert max(alone.load) >= 8 * max(plan_for(demands, 16).load)


def test_a_thousand_tables_take_two_seconds() -> None:
    demands = [demand(f"t{n:04}", *shape[:2], 64, shape[2]) for n, shape in enumerate(mixed(1000))]
    start = time.process_time()
    plan = plan_for(demands, 16)
    assert time.process_time() - start <= 2
    assert plan.balance <= 1.02


def test_the_same_arguments_give_the_same_plan() -> None:
    assert plan_for(fleet("skew"), 7) == plan_for(fleet("skew"), 7)
    assert plan_for(fleet("skew"), 7).hash == plan_for(fleet("skew"), 7).hash
    assert plan_for(fleet("skew"), 7).hash != plan_for(fleet("skew"), 6).hash


def test_no_copies_without_bytes_for_them() -> None:
    plan = plan_for(fleet("mixed100"), 8, extra=0)
    assert plan.extra == 0
    assert all(piece.bags == (0, plan.table[piece.table].bags) for piece in plan.pieces)


def test_a_table_that_is_larger_than_a_tile_is_cut() -> None:
    demands = [demand("large", 1 << 18, 256, 64, 8), demand("small", 100, 64, 64, 1)]
    plan = plan_for(demands, 3, memory_bytes=48 << 20)
    assert len(plan.pieces_of["large"]) >= 2
    with pytest.raises(daedal.OutOfDeviceMemory, match=r"table 'large' must fit a tile.*larger memory_bytes"):
        plan_for(demands, 3, memory_bytes=1 << 20)
    with pytest.raises(daedal.OutOfDeviceMemory, match="more tiles than 2"):
        plan_for([demand(f"t{n}", 1 << 14, 64, 8, 1) for n in range(9)], 2, memory_bytes=4 << 20)
    whole = [replace(each, step=0) for each in demands]
    with pytest.raises(daedal.OutOfDeviceMemory, match="it takes 67,108,864 of the"):
        plan_for(whole, 3, memory_bytes=48 << 20)


# ---------------------------------------------------------------------- of models


@pytest.fixture
def system() -> Iterator[daedal.System]:
    with daedal.System.open("emulator", config="edge", tiles=2) as opened:
        yield opened


@pytest.fixture
def model() -> nn.EmbeddingBag:
    return nn.EmbeddingBag(90, 64, mode="sum")


def test_a_plan_is_of_shapes_not_of_values(system: daedal.System, model: nn.Module, rng: np.random.Generator) -> None:
    plan = daedal.plan(model, system, sample=lists(rng))
    with torch.no_grad():
        model.weight.mul_(3)
    assert daedal.plan(model, system, sample=lists(rng)) == plan
    assert plan.config == ("edge", system.config.hash)
    assert plan.tables[0].name == "weight"
    with pytest.raises(AttributeError):
        plan.tiles = 3  # type: ignore[misc]


def test_files(system: daedal.System, model: nn.Module, rng: np.random.Generator, tmp_path: Path) -> None:
    plan, path = daedal.plan(model, system, sample=lists(rng)), tmp_path / "plan.json"
    plan.save(path)
    found = daedal.Plan.load(path)
    assert found == plan
    assert found.hash == plan.hash
    assert found.explain() == plan.explain()
    document = json.loads(path.read_text())
    for change, message in (
        ({"schema": 2}, "schema must be 1, not 2"),
        ({"tiles": 0}, "tiles must be a whole number from 1 on, not 0"),
        ({"pieces": []}, "the pieces of 'weight' must be all"),
        ({"pieces": document["pieces"][:1]}, "the pieces of 'weight' must be all"),
        ({"pieces": document["pieces"] + document["pieces"][:1]}, "must not overlap"),
        ({"pieces": [dict(document["pieces"][0], tile=2)]}, "must lie within"),
        ({"pieces": [dict(document["pieces"][0], table="x")]}, "the pieces of 'weight'"),
        ({"tables": document["tables"] * 2}, "each table must be there once"),
        ({"cycles": [1]}, "cycles must be 2 whole numbers"),
        ({"memory": "hbm"}, "its hash must be"),
        ({"extra": "no"}, "extra must be a number"),
    ):
        path.write_text(json.dumps(document | change))
        with pytest.raises(daedal.FileError, match=re.escape(message)):
            daedal.Plan.load(path)
    path.write_text("[]")
    with pytest.raises(daedal.FileError, match="a plan must be an object"):
        daedal.Plan.load(path)
    with pytest.raises(daedal.FileError, match="cannot be written"):
        plan.save(tmp_path / "plan.json" / "below")


def test_a_plan_for_another_system_or_model(system: daedal.System, model: nn.Module, rng: np.random.Generator) -> None:
    inputs = lists(rng)
    plan = daedal.plan(model, system, sample=inputs)
    with daedal.System.open("emulator", config="edge", tiles=3) as other:
        with pytest.raises(daedal.PlanMismatch, match="the plan's tiles must be that of the system, 3, not 2"):
            daedal.compile(model, inputs, device=other, plan=plan)
    with daedal.System.open("emulator", config="edge", memory="ideal:latency=9", tiles=2) as other:
        with pytest.raises(daedal.PlanMismatch, match="memory must be that of the system, ideal:latency=9, not ideal"):
            daedal.compile(model, inputs, device=other, plan=plan)
    with daedal.System.open("emulator", config="ddr3", tiles=2) as other:
        with pytest.raises(daedal.PlanMismatch, match=r"configuration must be .*ddr3 .*, not edge"):
            daedal.compile(model, inputs, device=other, plan=plan)
    for changed, message in (
        (nn.EmbeddingBag(90, 32, mode="sum"), "table 'weight' must be the model's, 90 × 32 float32, not 90 × 64"),
        (nn.EmbeddingBag(91, 64, mode="sum"), "91 × 64 float32, not 90 × 64"),
        (nn.Sequential(nn.EmbeddingBag(90, 64, mode="sum")), "table '0.weight' must be .* not none"),
    ):
        given: Any = inputs[0].reshape(-1, 4) if isinstance(changed, nn.Sequential) else inputs
        with pytest.raises(daedal.PlanMismatch, match=message):
            daedal.compile(changed, given, device=system, plan=plan)


def test_what_is_no_plan_no_sample_no_system(system: daedal.System, model: nn.Module, rng: np.random.Generator) -> None:
    inputs = lists(rng)
    plan = daedal.plan(model, system, sample=inputs)
    with pytest.raises(daedal.UnsupportedOperation, match=r"plan must be what daedal.plan gives, not 'best'"):
        daedal.compile(model, inputs, device=system, plan="best")  # type: ignore[call-overload]
    with pytest.raises(daedal.UnsupportedOperation, match="plan must be left out for a Device"):
        daedal.compile(model, inputs, device=system.tiles[0], plan=plan)  # type: ignore[call-overload]
    with pytest.raises(daedal.UnsupportedOperation, match=r"system must be what daedal.System.open gives, not <Device"):
        daedal.plan(model, system.tiles[0], sample=inputs)  # type: ignore[arg-type]
    with pytest.raises(daedal.UnsupportedOperation, match="sample must be a tensor, a tuple of inputs or a dictionary"):
        daedal.plan(model, system, sample=None)  # type: ignore[arg-type]
    with pytest.raises(daedal.UnsupportedOperation, match=r"number of inputs .* must be 1 to 3, not 4"):
        daedal.plan(model, system, sample=(*inputs, *inputs))
    with pytest.raises(daedal.UnsupportedOperation, match=r"model must be a torch.nn.Module"):
        daedal.plan(print, system, sample=inputs)  # type: ignore[arg-type]
    for extra in (-1, float("nan"), "much", True):
        with pytest.raises(daedal.InvalidSystem, match="extra_bytes must be a share"):
            daedal.plan(model, system, sample=inputs, extra_bytes=extra)  # type: ignore[arg-type]
    with pytest.raises(daedal.InvalidSystem, match="a piece's table must be one of the plan's, not 'x'"):
        replace(plan, pieces=(*plan.pieces, Piece("x", (0, 1), (0, 1), 0)))


def test_a_plan_needs_no_memory_for_tables(system: daedal.System, rng: np.random.Generator) -> None:
    """A model on device meta has the plan of the same one with memory, and stays where it is."""
    shape = {"num_embeddings": 90, "embedding_dim": 64, "mode": "sum"}
    inputs, there = lists(rng), nn.EmbeddingBag(**shape, device="meta")
    assert daedal.plan(there, system, sample=inputs) == daedal.plan(nn.EmbeddingBag(**shape), system, sample=inputs)
    assert there.weight.is_meta
    large = nn.EmbeddingBag(30_000_000, 1024, mode="sum", device="meta")
    with pytest.raises(daedal.OutOfDeviceMemory, match="table 'weight' must fit a tile"):
        daedal.plan(large, system, sample=inputs)


def test_plans_made_by_hand(system: daedal.System, model: nn.Module, rng: np.random.Generator) -> None:
    plan = daedal.plan(model, system, sample=lists(rng))
    whole = Piece("weight", (0, 64), (0, plan.tables[0].bags), 0)
    assert replace(plan, pieces=(whole,)).pieces == (whole,)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"tiles": "2"}, "tiles must be a whole number from 1 to 1024, not '2'"),
        ({"cycles": ()}, r"cycles must be 2 whole numbers, not \(\)"),
        ({"extra": "x"}, "extra must be a number, not 'x'"),
        ({"memory": None}, "memory must be a text, not None"),
        ({"config": ("edge", "x")}, "config must be a name and a hash"),
        ({"pieces": [whole]}, r"pieces of a plan must be a tuple of Piece, not \["),
        ({"pieces": (replace(whole, columns=(0, 64.0)),)}, "columns must be a first and the one behind the last"),
        ({"pieces": (replace(whole, bags=7),)}, "bags must be a first and the one behind the last, not 7"),
        ({"pieces": (replace(whole, tile=True),)}, "tile must be a whole number from 0 on, not True"),
        ({"pieces": (replace(whole, table=0),)}, "table must be a text, not 0"),
        ({"tables": (replace(plan.tables[0], bags=0),)}, "bags must be a whole number from 1 on, not 0"),
        ({"tables": None}, "tables of a plan must be a tuple of PlannedTable, not None"),
    ]
    for change, message in changes:
        with pytest.raises(daedal.InvalidSystem, match=message):
            replace(plan, **change)
    for use in (plan.save, plan.picture, daedal.Plan.load):
        for path in (None, 3, "", b"plan"):
            with pytest.raises(daedal.FileError, match="a plan's file must be a path, not"):
                use(path)  # type: ignore[arg-type]


def test_systems_made_by_hand(system: daedal.System) -> None:
    with daedal.Device.open("emulator", config="ddr3") as other:
        with pytest.raises(daedal.InvalidSystem, match="tiles must be of one configuration, not of ddr3, edge"):
            daedal.System([other, *system.tiles], "ideal")
        for tiles in ([], [other, None]):
            with pytest.raises(daedal.InvalidSystem, match=r"tiles must be one device or more, not \["):
                daedal.System(tiles, "ideal")  # type: ignore[arg-type]
    with pytest.raises(daedal.InvalidSystem, match="target of a system must be one of"):
        daedal.System.open(["emulator"], tiles=1)  # type: ignore[arg-type]


class ByName(nn.Module):
    """A bag of integers, and one whose inputs go by name only."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.ao.nn.quantized.EmbeddingBag(50, 64, mode="sum", include_last_offset=True)
        self.bag = nn.EmbeddingBag(60, 64, mode="sum")

    def forward(self, *, ids: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """Both, side by side."""
        return torch.cat([self.rows(ids, ends), self.bag(ids, ends[:-1])], 1)


@pytest.mark.filterwarnings("ignore:.*torch.quantize_per:UserWarning")
def test_samples_by_name_and_quantised_modules() -> None:
    """A plan for them is taken by daedal.compile."""
    named = {"ids": torch.arange(40), "ends": torch.arange(0, 41, 4)}
    model, config = ByName().eval(), replace(Config.preset("ddr3"), quantised=1)
    with daedal.System.open("emulator", config=config, tiles=2) as system, torch.no_grad():
        plan = daedal.plan(model, system, sample=named)
        assert len(plan.tables) == 2
        executable = daedal.compile(model, named, device=system, plan=plan)
        assert torch.equal(executable(**named), model(**named))
        assert len(daedal.fleet(model, system, sample=named, link=1.0, devices=(8, 64))) == 2
        with pytest.raises(daedal.UnsupportedOperation, match=r"sample must be a tensor, a tuple .* by name, not 5"):
            daedal.plan(model, system, sample=5)  # type: ignore[arg-type]
