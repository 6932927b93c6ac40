"""A fault on one tile: the call raises it once, with the tile, and all tiles are as usable as before."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.system.plan import Piece, Plan
from tests.tiles.models import same


class Two(nn.Module):
    """Two tables, whose results are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.EmbeddingBag(50, 16, mode="sum"), nn.EmbeddingBag(70, 32, mode="sum")

    def forward(self, a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """Bags of both; ``ends`` are where they begin."""
        return torch.cat([self.a(a, ends), self.b(b, ends)], 1)


BAGS = 8
PIECES = (
    Piece("a.weight", (0, 16), (0, BAGS), 0),
    Piece("b.weight", (0, 32), (0, 5), 1),
    Piece("b.weight", (0, 32), (5, BAGS), 2),
)


@pytest.fixture
def system() -> Iterator[daedal.System]:
    with daedal.System.open("emulator", config="edge", tiles=4) as opened:
        yield opened


def inputs_of(rng: np.random.Generator) -> list[torch.Tensor]:
    a, b = (torch.from_numpy(rng.integers(0, rows, 3 * BAGS)) for rows in (50, 70))
    return [a, b, torch.arange(0, 3 * BAGS, 3)]


def compiled(system: daedal.System, inputs: list[torch.Tensor], bounds: str = "fatal") -> tuple[Two, object]:
    model = Two()
    made = daedal.plan(model, system, sample=inputs)
    plan = Plan(PIECES, made.tables, made.config, made.memory, made.tiles, made.cycles, 0.0)
    return model, daedal.compile(model, inputs, device=system, plan=plan, bounds=bounds)


@pytest.mark.parametrize(("which", "place", "tile"), [(0, 20, 0), (1, 4, 1), (1, 17, 2)])
def test_the_error_is_in_terms_of_the_whole(
    system: daedal.System, rng: np.random.Generator, which: int, place: int, tile: int
) -> None:
    inputs = inputs_of(rng)
    model, executable = compiled(system, inputs)
    assert callable(executable)
    bad = [each.clone() for each in inputs]
    bad[which][place] = 70 + place
    with pytest.raises(daedal.IndexOutOfRange, match=f"index {70 + place} .*number {place} of the indices") as caught:
        executable(*bad)
    assert caught.value.tile == tile
    assert caught.value.record is not None
    assert same([executable(*inputs)], [model(*inputs)])


def test_the_lowest_tile_and_only_this_call(system: daedal.System, rng: np.random.Generator) -> None:
    """Calls that were submitted before and after one with a fault give their results."""
    inputs = inputs_of(rng)
    model, executable = compiled(system, inputs)
    bad = [each.clone() for each in inputs]
    bad[0][3], bad[1][22] = 99, -1
    others = [inputs_of(rng) for _ in range(3)]
    submit = executable.submit  # type: ignore[attr-defined]
    futures = [submit(*others[0]), submit(*bad), submit(*others[1])]
    for call in futures[1].calls:
        call._cancelled = threading.Event()  # so that no tile is stopped before it has its own fault
    with pytest.raises(daedal.IndexOutOfRange) as caught:
        futures[1].result()
    assert caught.value.tile == 0
    assert futures[1].exception() is caught.value
    futures.append(submit(*others[2]))
    for future, given in zip([futures[0], *futures[2:]], others, strict=True):
        assert same([future.result()], [model(*given)])


def test_launches_of_the_call_on_other_tiles_are_withdrawn(system: daedal.System, rng: np.random.Generator) -> None:
    inputs = inputs_of(rng)
    model, executable = compiled(system, inputs)
    submit = executable.submit  # type: ignore[attr-defined]
    before, future, behind = submit(*inputs), submit(*inputs), submit(*inputs)
    launches = [call._pending[0].launch for call in future.calls if call.has_work]
    assert len(launches) == 3
    future.cancel()
    with pytest.raises(daedal.LaunchCancelled, match="given up"):
        future.result()
    for launch in launches:
        assert isinstance(launch.exception(), daedal.LaunchCancelled)
    for other in (before, behind):
        assert same([other.result()], [model(*inputs)])
    assert not any(tile.flying for tile in system.tiles)


def test_tiles_see_that_their_call_is_given_up(system: daedal.System, rng: np.random.Generator) -> None:
    inputs = inputs_of(rng)
    _, executable = compiled(system, inputs)
    future = executable.submit(*inputs)  # type: ignore[attr-defined]
    future._cancelled.set()
    assert isinstance(future.exception(), daedal.LaunchCancelled)
    assert [call.was_stopped for call in future.calls] == [True, True, True, False]


def test_bad_offsets(system: daedal.System, rng: np.random.Generator) -> None:
    """Bags that cannot be told from each other are no parts: the host says so, as the machine would."""
    inputs = inputs_of(rng)
    model, executable = compiled(system, inputs)
    assert callable(executable)
    bad = [*inputs[:2], inputs[2].clone()]
    bad[2][4] = 3
    with pytest.raises(daedal.InvalidOffsets, match=r"offsets must not decrease, but 3 is below .*number 4 of the off"):
        executable(*bad)
    bad[2][4] = 1 << 40
    with pytest.raises(daedal.InvalidOffsets, match=r"outside the indices.*number 4"):
        executable(*bad)
    assert same([executable(*inputs)], [model(*inputs)])


def test_warnings_of_tiles(system: daedal.System, rng: np.random.Generator) -> None:
    inputs = inputs_of(rng)
    model, executable = compiled(system, inputs, bounds="warn")
    assert callable(executable)
    inputs[1][2] = 70
    with pytest.warns(daedal.BoundsWarning, match="70"):
        found = executable(*inputs)
    inputs[1][2] = 0
    assert same([found], [model(*inputs)])
    assert executable.stats.bounds_warnings == 1  # type: ignore[attr-defined]


def test_an_interrupt_stops_all_tiles(
    system: daedal.System, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = inputs_of(rng)
    model, executable = compiled(system, inputs)
    assert callable(executable)
    real = daedal.System.in_threads
    calls = []

    def interrupted(self: daedal.System, works: object) -> object:
        calls.append(works)
        if len(calls) == 2:  # the launches are submitted, and waited for
            raise KeyboardInterrupt
        return real(self, works)  # type: ignore[arg-type]

    system_threads = executable.system.in_threads  # type: ignore[attr-defined]
    assert system_threads
    monkeypatch.setattr(daedal.System, "in_threads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        executable(*inputs)
    monkeypatch.undo()
    assert not any(tile.flying for tile in system.tiles)
    assert same([executable(*inputs)], [model(*inputs)])


@pytest.mark.parametrize("way", ["columns", "bags"])
def test_look_ups_that_are_out_of_range_count_once(way: str, rng: np.random.Generator) -> None:
    """One warning, which is that of a device: it counts look-ups, not slices of rows, and of two tiles both."""
    model, inputs = nn.EmbeddingBag(40, 64, mode="sum"), torch.from_numpy(rng.integers(0, 40, (8, 3)))
    inputs[1, 1], inputs[6, 2] = 77, -5
    with daedal.System.open("emulator", config="edge", tiles=2) as system, torch.no_grad():
        made = daedal.plan(model, system, sample=inputs)
        halves = [(0, 32), (32, 64)] if way == "columns" else [(0, 4), (4, 8)]
        cuts = [(half, (0, 8)) if way == "columns" else ((0, 64), half) for half in halves]
        pieces = tuple(Piece("weight", *cut, tile) for tile, cut in enumerate(cuts))
        said = []
        for device, options in ((system.tiles[0], {}), (system, {"plan": replace(made, pieces=pieces)})):
            executable = daedal.compile(model, inputs, device=device, bounds="warn", **options)
            with pytest.warns(daedal.BoundsWarning) as caught:
                executable(inputs)
            said += [str(each.message) for each in caught]
            future = executable.submit(inputs)
            with pytest.warns(daedal.BoundsWarning) as caught:
                future.result()
            said += [str(each.message) for each in caught]
        assert len(said) == 4 and len(set(said)) == 1 and "2 lookups of indices that are out of range, " in said[0]


def test_look_ups_of_long_rows_count_once(rng: np.random.Generator) -> None:
    """A device takes rows of more elements than it has registers for in parts."""
    model, inputs = nn.EmbeddingBag(40, 1000, mode="sum"), torch.full((2, 2), 40)
    with daedal.Device.open("emulator", config="edge") as device, torch.no_grad():
        executable = daedal.compile(model, inputs, device=device, bounds="warn")
        with pytest.warns(daedal.BoundsWarning, match="4 lookups of indices that are out of range"):
            executable(inputs)
        assert executable.stats.bounds_warnings > 4
