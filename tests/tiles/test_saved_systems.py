"""Files of executables on systems: with the plan of the one that was saved, or with one that the first call makes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn

import daedal
from daedal.cli import cli
from daedal.hw.config.core import Config
from daedal.runtime.tensors import array_of
from daedal.system.executable import SystemExecutable
from daedal.system.plan import Piece
from tests.compiler.layers.compiler_support import wild_table
from tests.compiler.saved.saved_support import arrays, check_same, state_of

DDR3 = replace(Config.preset("ddr3"), bfloat16=1)


class Parts(nn.Module):
    """Bags of two widths, joined, of bfloat16, with minima for empty ones, rows that are copied, and sums of rows."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(90, dim, mode="sum") for dim in (32, 64))
        self.narrow = nn.EmbeddingBag(50, 64, mode="mean", dtype=torch.bfloat16)
        self.rows, self.pooled = nn.Embedding(60, 48), nn.Embedding(60, 32)
        for module in (*self.bags, self.narrow, self.rows, self.pooled):
            table = wild_table(*module.weight.shape, rng).clamp(-1e9, 1e9)
            module.weight = nn.Parameter(table.to(module.weight.dtype))

    def forward(self, ids: Tensor, keys: Tensor, lengths: Tensor) -> Any:
        """All of them."""
        largest = torch.segment_reduce(self.rows.weight[keys], "max", lengths=lengths)
        joined = torch.cat([bag(ids) for bag in self.bags], 1)
        return joined, self.narrow(ids), self.rows(ids), self.pooled(ids).sum(1), largest


def inputs(rng: np.random.Generator, bags: int = 14, length: int = 4) -> tuple[Tensor, ...]:
    return (
        torch.from_numpy(rng.integers(0, 50, (bags, length))),
        torch.from_numpy(rng.integers(0, 60, 5)),
        torch.tensor([2, 0, 3]),
    )


@pytest.fixture
def model(rng: np.random.Generator) -> Iterator[Parts]:
    with torch.no_grad():
        yield Parts(rng).eval()


def opened(tiles: int = 3, **options: Any) -> daedal.System:
    return daedal.System.open("emulator", **{"config": DDR3, **options}, tiles=tiles)


def load(path: Path, system: daedal.System, model: nn.Module) -> SystemExecutable:
    return cast(SystemExecutable, daedal.load(path, device=system, tables=state_of(model)))


def test_a_system_s_file_has_its_plan(model: Parts, rng: np.random.Generator, tmp_path: Path) -> None:
    """Programs of slices of columns and of bags: as many launches for each tile, the same bits, and so once more."""
    first, path = inputs(rng), tmp_path / "model.daedal"
    with opened() as system:
        saved = daedal.compile(model, first, device=system)
        saved.save(path)
    for _ in range(2):
        with opened() as system, opened() as other:
            again = daedal.compile(model, first, device=other, plan=saved.plan)
            loaded = load(path, system, model)
            assert loaded.plan is not None and saved.plan is not None and loaded.plan.hash == saved.plan.hash
            for bags, length in ((14, 4), (2, 3), (33, 20), (2, 4)):
                given = inputs(rng, bags, length)
                again(*given)
                check_same(Told(model, again), loaded, given)
            loaded(*first)
            again(*first)
            assert [each.launches for each in loaded.stats.per_tile] == [each.launches for each in again.stats.per_tile]
            uploads = system.table_uploads
            loaded(*arrays(first))
            assert system.table_uploads == uploads
            assert f"plan {saved.plan.hash}" in loaded.explain()
            loaded.save(path)


class Told:
    """A module, whose launches are those of an executable of it."""

    def __init__(self, model: nn.Module, executable: SystemExecutable) -> None:
        self.model, self.stats = model, executable.stats

    def __call__(self, *given: Tensor) -> Any:
        """The module's results."""
        return self.model(*given)


def test_a_device_s_file_on_systems(model: Parts, rng: np.random.Generator, tmp_path: Path) -> None:
    """Whole tables, and bags of them, where a plan for programs of all kinds would cut columns."""
    first, path = inputs(rng), tmp_path / "model.daedal"
    with daedal.Device.open("emulator", config=DDR3) as device:
        daedal.compile(model, first, device=device).save(path)
    for tiles in (1, 2, 5):
        with opened(tiles) as system:
            loaded = load(path, system, model)
            assert loaded.plan is None
            for bags, length in ((14, 4), (2, 3), (33, 20)):
                given = inputs(rng, bags, length)
                found = loaded(*arrays(given))
                for expected, each in zip(model(*given), found, strict=True):
                    assert array_of(expected.contiguous()).tobytes() == each.tobytes()
            plan = loaded.plan
            assert plan is not None and all(piece.columns[0] == 0 for piece in plan.pieces)
            assert tiles == 1 or sum(each.launches > 0 for each in loaded.stats.per_tile) > 1


def test_changes_of_tables_are_seen_on_all_tiles(rng: np.random.Generator, tmp_path: Path) -> None:
    """A table that is cut by columns, and one of which two tiles have copies."""
    model, path = (
        nn.ModuleList([nn.EmbeddingBag(40, 64, mode="sum"), nn.EmbeddingBag(40, 16, mode="sum")]),
        tmp_path / "f",
    )
    both = Both(model).eval()
    ids = torch.from_numpy(rng.integers(0, 40, (8, 3)))
    with torch.no_grad(), opened(2) as system:
        made = daedal.plan(both, system, sample=ids)
        cuts = [Piece("0.weight", (first, first + 32), (0, 8), first // 32) for first in (0, 32)]
        cuts += [Piece("1.weight", (0, 16), (first, first + 4), first // 4) for first in (0, 4)]
        pieces = tuple(Piece(f"of.{each.table}", each.columns, each.bags, each.tile) for each in cuts)
        plan = daedal.Plan(pieces, made.tables, made.config, made.memory, 2, made.cycles, 1.0)
        daedal.compile(both, ids, device=system, plan=plan).save(path)
        tables = state_of(both)
        loaded = daedal.load(path, device=system, tables=tables)
        for change in range(3):
            for table in tables.values():
                table[ids[0, 0]] = change
            before = system.table_uploads
            expected = both(ids)
            for _ in range(2):
                assert all((a == b.numpy()).all() for a, b in zip(loaded(ids.numpy()), expected, strict=True))
            assert system.table_uploads == before + 4


class Both(nn.Module):
    """All of these, of the same indices."""

    def __init__(self, of: nn.ModuleList) -> None:
        super().__init__()
        self.of = of

    def forward(self, ids: Tensor) -> list[Tensor]:
        """Each of them."""
        return [each(ids) for each in self.of]


def test_other_systems(rng: np.random.Generator, tmp_path: Path) -> None:
    model, ids, path = nn.EmbeddingBag(40, 64, mode="sum"), torch.zeros(4, 3).long(), tmp_path / "model.daedal"
    with opened() as system:
        daedal.compile(model, ids, device=system).save(path)
        with pytest.raises(
            daedal.PlanMismatch, match=r"model.daedal must be loaded on a System with tiles=3, .*a Device"
        ):
            daedal.load(path, device=system.tiles[0], tables=state_of(model))
        system.close()
        with pytest.raises(daedal.DeviceClosed):
            load(path, system, model)
    for options, message in (
        ({"tiles": 2}, "tiles=3, memory='ideal', for which it was compiled, not on a System with tiles=2"),
        (
            {"memory": "ideal:latency=9"},
            "not on a System with tiles=3, memory='ideal:latency=9': open such a system, or",
        ),
    ):
        with opened(**options) as other, pytest.raises(daedal.PlanMismatch, match=message):  # type: ignore[arg-type]
            load(path, other, model)
    with opened(config="edge") as other, pytest.raises(daedal.ConfigMismatch, match="not 'edge'"):
        load(path, other, model)
    shown = CliRunner().invoke(cli, ["inspect", str(path)])
    assert shown.exit_code == 0 and ": for a System with tiles=3, memory='ideal'\n" in shown.output


def test_faults_are_told_of_the_whole(rng: np.random.Generator, tmp_path: Path) -> None:
    model, (ids, *_), path = nn.EmbeddingBag(90, 64, mode="sum"), inputs(rng), tmp_path / "model.daedal"
    with opened(2) as system:
        daedal.compile(model, (ids,), device=system).save(path)
        loaded = load(path, system, model)
        ids[9, 2] = 90
        with pytest.raises(daedal.IndexOutOfRange, match=r"index 90 .*it is number 38 of the indices") as caught:
            loaded(ids)
        assert caught.value.tile in (0, 1)
        ids[9, 2] = 89
        assert torch.equal(loaded(ids), model(ids))


def test_what_no_program_is_for(rng: np.random.Generator, tmp_path: Path) -> None:
    """A file of lists alone, as it may be of other versions of the compiler."""
    model, path = (
        Both(nn.ModuleList([nn.EmbeddingBag(40, 16, mode="sum"), nn.EmbeddingBag(40, 32, mode="sum")])),
        tmp_path / "f",
    )
    ids = torch.zeros(4, 3).long()
    with daedal.Device.open("emulator", config=DDR3) as device:
        executable = daedal.compile(model, ids, device=device)
        executable._seen.clear()
        executable.save(path)
    with opened(2) as system, pytest.raises(daedal.UnsupportedOperation, match="compile and save for a System"):
        load(path, system, model)(ids)
