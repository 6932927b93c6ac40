"""A system's own interface: opening, closing, figures, idle tiles, threads."""

import copy
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.driver.launch.record import Stats
from daedal.driver.tables.table_sources import TableCheck
from daedal.system.plan import Piece
from daedal.system.stats import together
from tests.tiles.models import same


@pytest.fixture
def system() -> Iterator[daedal.System]:
    with daedal.System.open("emulator", config="edge", tiles=3) as opened:
        yield opened


def lists(rng: np.random.Generator, rows: int = 90, bags: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    offsets = torch.arange(0, 4 * bags, 4)
    return torch.from_numpy(rng.integers(0, rows, 4 * bags)), offsets


def test_a_system_is_what_its_tiles_are(system: daedal.System) -> None:
    assert len(system.tiles) == 3
    assert all(isinstance(tile, daedal.Device) for tile in system.tiles)
    assert system.config.name == "edge"
    assert system.free_bytes == sum(tile.free_bytes for tile in system.tiles)
    assert repr(system) == f"<System of 3 × edge {system.config.hash:#010x}, 0 tables>"
    assert copy.deepcopy(system) is copy.copy(system) is system
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(system)
    system.reset()


@pytest.mark.parametrize(
    ("tiles", "message"),
    [(0, "from 1 to 1024, not 0"), (-1, "from 1 to 1024"), (2.5, "a whole number, not 2.5"), (True, "a whole number")],
)
def test_numbers_of_tiles(tiles: object, message: str) -> None:
    with pytest.raises(daedal.InvalidSystem, match=f"tiles must be {message}"):
        daedal.System.open("emulator", tiles=tiles)  # type: ignore[arg-type]


def test_options_that_there_are_not() -> None:
    with pytest.raises(daedal.InvalidSystem, match=r"memory must be one of ideal, .*, not 'hbm9'"):
        daedal.System.open("emulator", memory="hbm9", tiles=2)
    with pytest.raises(
        daedal.InvalidSystem, match=r"target of a system must be one of emulator, .*, not 'uart:/dev/x'"
    ):
        daedal.System.open("uart:/dev/x", tiles=2)
    with pytest.raises(daedal.InvalidSystem, match="not 'nonsense'"):
        daedal.System.open("emulator", config="nonsense", tiles=2)


def test_figures_are_of_the_longest_tile_and_of_all(system: daedal.System, rng: np.random.Generator) -> None:
    """Idle tiles are no error: here is work for one."""
    model = nn.EmbeddingBag(90, 16, mode="sum")
    inputs = lists(rng)
    executable = daedal.compile(model, inputs, device=system)
    assert executable.plan is not None
    assert same([executable(*inputs)], [model(*inputs)])
    stats = executable.stats
    assert len(stats.per_tile) == 3
    assert stats.lookups == sum(each.lookups for each in stats.per_tile) == 48
    assert stats.launches == sum(each.launches for each in stats.per_tile)
    assert stats.cycles == max(each.cycles for each in stats.per_tile)
    assert dict(stats)["per_tile"] == stats.per_tile
    only = daedal.Plan(
        (Piece("weight", (0, 16), (0, 12), 1),), executable.plan.tables, executable.plan.config, "ideal", 3,
        (0, 5, 0), 0.0,
    )  # fmt: skip
    executable = daedal.compile(model, inputs, device=system, plan=only)
    assert same([executable(*inputs)], [model(*inputs)])
    assert [each.lookups for each in executable.stats.per_tile] == [0, 48, 0]
    assert [key for key in system.tables if key.startswith("1:")] == ["1:weight"]


class Gathers(nn.Module):
    """Gathers of rows of several types, two of them joined, and a bag."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.a, self.b = nn.EmbeddingBag(90, 8, mode="sum"), nn.Embedding(90, 16), nn.Embedding(90, 8)
        self.odd = nn.Embedding(90, 13, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> object:
        """All of them."""
        return self.bag(x), torch.cat([self.a(x), self.b(x)], -1), self.odd(x)


def test_all_that_a_tile_has_is_one_launch(system: daedal.System, rng: np.random.Generator) -> None:
    """Gathers and bags, here half of each on tiles 0 and 2."""
    model, inputs = Gathers().eval(), torch.from_numpy(rng.integers(0, 90, (12, 4)))
    made = daedal.plan(model, system, sample=inputs)
    halves = [(table, bags) for table in made.tables for bags in ((0, 5), (5, table.bags))]
    pieces = tuple(Piece(table.name, (0, table.dim), bags, 2 * (bags[0] > 0)) for table, bags in halves)
    with torch.no_grad():
        executable = daedal.compile(model, inputs, device=system, plan=replace(made, pieces=pieces))
        assert same(executable(inputs), model(inputs))
        assert [each.launches for each in executable.stats.per_tile] == [1, 0, 1]


def test_explain_names_tiles(system: daedal.System, rng: np.random.Generator) -> None:
    model = nn.EmbeddingBag(90, 64, mode="sum")
    executable = daedal.compile(model, lists(rng), device=system)
    text = executable.explain()
    assert "device: 1 of 1 operation, in 3 launches" in text
    assert "tile   0" in text
    assert "weight (90 rows × 64 float32): cut by" in text


def test_a_closed_system_says_so(rng: np.random.Generator) -> None:
    model, inputs = nn.EmbeddingBag(90, 16, mode="sum"), lists(rng)
    system = daedal.System.open("emulator", config="edge", tiles=2)
    executable = daedal.compile(model, inputs, device=system)
    future = executable.submit(*inputs)
    system.close()
    system.close()
    with pytest.raises(daedal.DeviceClosed, match="tile 0 of the system is closed"):
        executable(*inputs)
    with pytest.raises(daedal.DeviceClosed):
        future.result()
    with pytest.raises(daedal.DeviceClosed), system:
        pass
    for what in (system.reset, lambda: system.free_bytes, lambda: system.table_changed(model.weight)):
        with pytest.raises(daedal.DeviceClosed, match="of the system is closed: open a new system"):
            what()


def test_calls_of_several_threads(system: daedal.System, rng: np.random.Generator) -> None:
    model = nn.EmbeddingBag(90, 48, mode="sum")
    executable = daedal.compile(model, lists(rng), device=system)
    given = [lists(rng, bags=int(rng.integers(1, 30))) for _ in range(12)]
    found: dict[int, torch.Tensor] = {}

    def call(first: int) -> None:
        for number in range(first, len(given), 3):
            run = executable.submit(*given[number]).result if number % 2 else lambda n=number: executable(*given[n])
            found[number] = run()

    threads = [threading.Thread(target=call, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(given)
    assert all(same([found[n]], [model(*each)]) for n, each in enumerate(given))


def test_futures(system: daedal.System, rng: np.random.Generator) -> None:
    model = nn.EmbeddingBag(90, 16, mode="sum")
    inputs = lists(rng)
    executable = daedal.compile(model, inputs, device=system)
    future = executable.submit(*inputs)
    assert "in work" in repr(future)
    with pytest.raises(TimeoutError, match=r"within 0\.0 s"):
        future.result(0.0)
    assert future.exception() is None
    assert future.done()
    assert repr(future) == "<SystemSubmitted, 3 tiles, done>"
    assert same([future.result()], [model(*inputs)])
    assert future.stats.lookups == 48

    async def wait() -> torch.Tensor:
        found: torch.Tensor = await executable.submit(*inputs)
        return found

    import asyncio

    assert same([asyncio.run(wait())], [model(*inputs)])


def test_quantised_rows_are_for_one_tile(system: daedal.System) -> None:
    rows = daedal.quantized.Table.from_rows(bytes(200), format="fbgemm-int8", rows=10, dim=16)
    with pytest.raises(daedal.UnsupportedOperation, match=r"not <System of 3 .*: a System takes PyTorch modules"):
        rows.bags(system, np.zeros((1, 1), int))


def test_figures_of_tiles_together() -> None:
    tiles = [Stats(cycles=5, launches=1, rows=3, marks={"token": 4}), Stats(), Stats(cycles=9, launches=2, rows=1)]
    total = together(tiles)
    assert (total.cycles, total.launches, total.rows, total.marks) == (9, 3, 4, {"token": 4})
    assert total.per_tile == tuple(tiles)
    assert together([]).cycles == 0


def test_indices_of_slices_are_short_where_they_fit(rng: np.random.Generator) -> None:
    """Each slice reads all indices: as many bytes whatever their type; and what does not fit is said as it is."""
    model, inputs = nn.EmbeddingBag(90, 32, mode="sum"), lists(rng)
    with daedal.System.open("emulator", config="edge", tiles=2) as system, torch.no_grad():
        plan = daedal.plan(model, system, sample=inputs, extra_bytes=0)
        assert {piece.columns for piece in plan.pieces} == {(0, 16), (16, 32)}
        executable = daedal.compile(model, inputs, device=system, plan=plan)
        read = []
        for indices, dtype in ((inputs[0], torch.int64), (inputs[0].int(), torch.int32)):
            assert same([executable(indices, inputs[1].to(dtype))], [model(indices, inputs[1].to(dtype))])
            read.append(executable.stats.bytes_read)
        assert read[0] - read[1] < 4 * len(inputs[0]) * len(system.tiles)  # of offsets, not of indices
        for bad in (1 << 40, -(1 << 33), 90):
            inputs[0][7] = bad
            with pytest.raises(daedal.IndexOutOfRange, match=f"index {bad} .*number 7 of the indices"):
                executable(*inputs)


def test_plans_know_that_indices_of_slices_are_short() -> None:
    """Loads are the same for indices of either type if all columns are cut, and differ if none are."""
    model, short = nn.EmbeddingBag(90, 32, mode="sum"), torch.zeros(64, 8, dtype=torch.int32)
    for tiles in (1, 2):
        with daedal.System.open("emulator", config="ddr3", tiles=tiles) as system:
            plans = [daedal.plan(model, system, sample=given, extra_bytes=0) for given in (short, short.long())]
        assert [len(plan.pieces) for plan in plans] == [tiles, tiles]
        assert (plans[0].load == plans[1].load) is (tiles == 2)


@pytest.mark.parametrize("check", ["contents", "versions"])
def test_slices_of_columns_are_of_the_memory_that_a_table_has(check: TableCheck, rng: np.random.Generator) -> None:
    """A parameter stays the same object when another tensor is put into it."""
    model, inputs = nn.EmbeddingBag(90, 64, mode="sum"), lists(rng)
    with daedal.System.open("emulator", config="edge", tiles=2, table_check=check) as system, torch.no_grad():
        plan = daedal.plan(model, system, sample=inputs, extra_bytes=0)
        assert len(plan.pieces) == 2
        executable = daedal.compile(model, inputs, device=system, plan=plan)
        for change in (
            lambda: None,
            lambda: setattr(model.weight, "data", torch.randn(90, 64)),
            lambda: model.weight.set_(torch.randn(90, 64)),
            lambda: setattr(model.weight, "data", torch.randn(64, 90).t()),
            lambda: torch.utils.swap_tensors(model.weight, nn.Parameter(torch.randn(90, 64))),
        ):
            change()
            assert same([executable(*inputs)], [model(*inputs)])


def test_slices_of_columns_are_known_again_where_changes_are_counted(rng: np.random.Generator) -> None:
    model, inputs = nn.EmbeddingBag(90, 64, mode="sum"), lists(rng)
    with daedal.System.open("emulator", config="edge", tiles=2, table_check="versions") as system, torch.no_grad():
        plan = daedal.plan(model, system, sample=inputs, extra_bytes=0)
        assert len(plan.pieces) == 2
        executable = daedal.compile(model, inputs, device=system, plan=plan)
        for change, uploads in ((False, 2), (False, 2), (True, 4)):
            if change:
                model.weight.mul_(1.5)
            assert same([executable(*inputs)], [model(*inputs)])
            assert system.table_uploads == uploads


class Dot(nn.Module):
    """The product of two rows."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(50, 128), nn.Embedding(60, 128)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """A number for each pair."""
        return (self.users(users) * self.items(items)).sum(-1)


def test_what_adds_rows_up_is_left_to_the_host() -> None:
    model, inputs = Dot(), (torch.arange(40), torch.arange(40) + 3)
    with daedal.System.open("emulator", config="ddr3", tiles=3) as system, torch.no_grad():
        plan = daedal.plan(model, system, sample=inputs)
        executable = daedal.compile(model, inputs, device=system, plan=plan, exact=False)
        assert torch.equal(executable(*inputs), model(*inputs))
        assert "rows are not added up by a System, of which tiles have columns of them" in executable.explain()
        alone = daedal.compile(model, inputs, device=system.tiles[0], exact=False)
        assert alone.offloaded == ("sum_1",)
