"""``daedal explore``: what it says limits a machine does limit it, and the command."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from torch import nn

import daedal
from bench.synthesis import history
from daedal.bench.explore import energy, limits, machines, page
from daedal.bench.explore.subject import of_module, of_workload
from daedal.bench.explore.sweep import Sweep
from daedal.cli import cli
from daedal.cosim.dram_times import DRAMS
from daedal.hw.config.core import PRESETS, Config

DDR3, EDGE = PRESETS["ddr3"], PRESETS["edge"]


def _bags(rows: int, dim: int, bags: int, pooling: int, mode: str = "sum") -> tuple[nn.Module, tuple[Any, ...]]:
    generator = torch.Generator().manual_seed(5)
    indices = torch.randint(0, rows, (bags * pooling,), generator=generator)
    offsets = torch.arange(0, bags * pooling + 1, pooling)
    return nn.EmbeddingBag(rows, dim, mode=mode, include_last_offset=True), (indices, offsets)


def _explore(
    shape: tuple[nn.Module, tuple[Any, ...]], config: Config, memory: str, *tiles: int
) -> list[dict[str, Any]]:
    sweep = Sweep(of_module("x.py", *shape), (memory,), (config,), tiles or (1,))
    return list(sweep.run(lambda text: None))


LONG, SHORT, NARROW = (4096, 64, 64, 20), (64, 64, 1, 1), (8192, 1, 128, 25)
SMALL, HBM = PRESETS["minimum"], machines.adapted("hbm2e")
MORE_PORTS = replace(EDGE, name="ports", ports=8, port_requests=64, port_outstanding=32, row_groups=32)


@pytest.mark.parametrize(
    ("shape", "before", "limit", "after", "times"),
    [
        (LONG, (DDR3, "ideal:lines=0.5"), limits.MEMORY, (DDR3, "ideal:lines=1"), 1.8),
        (LONG, (DDR3, "ideal:latency=1000"), "latency", (DDR3, "ideal:latency=100"), 1.7),
        (NARROW, (EDGE, "ideal"), "ports", (MORE_PORTS, "ideal"), 1.5),
        ((4096, 16, 64, 3), (SMALL, "ideal:latency=100"), "indices", (SMALL, "ideal:latency=10"), 5),
        ((4096, 16, 64, 3), (SMALL, "ideal:latency=10"), "levels", (DDR3, "ideal:latency=10"), 5),
        ((8192, 32, 256, 20), (HBM, "hbm2e"), limits.ROWS, (HBM, "ideal"), 1.4),
    ],
)  # fmt: skip
def test_what_limits_does(shape: Any, before: Any, limit: str, after: Any, times: float) -> None:
    (slow,), (fast,) = _explore(_bags(*shape), *before), _explore(_bags(*shape), *after)
    assert slow["limit"] == limit, slow["why"]
    assert slow["cycles"] >= times * fast["cycles"]


def test_lanes_limit_once_the_memory_does_not() -> None:
    (four,), (eight,) = (_explore(_bags(*LONG), DDR3, f"ideal:lines={lines}") for lines in (4, 8))
    assert four["limit"] == limits.LANES
    assert eight["cycles"] > 0.99 * four["cycles"]


def test_lanes_do_not_limit_what_passes_them_by() -> None:
    """Rows that are copied: memory reads and writes all of the time."""
    (row,) = _explore((nn.Embedding(4096, 64).eval(), (torch.arange(4096),)), DDR3, "litedram-ddr3-x16")
    assert row["limit"] == limits.MEMORY, row["why"]
    assert row["shares"][limits.LANES] < 0.1


def test_a_launch_of_one_row_is_its_start() -> None:
    (row,) = _explore(_bags(*SHORT), DDR3, "litedram-ddr3-x16")
    assert row["limit"] == limits.START
    assert 0.8 < row["shares"][limits.START] <= 1


def test_figures_are_of_calls_that_never_end() -> None:
    """Those of a call in the middle of a queue; those of one call alone are the other figure."""
    module, inputs = _bags(*SHORT)
    (row,) = _explore((module, inputs), DDR3, "litedram-ddr3-x16")
    with daedal.Device.open("model", DDR3, "litedram-ddr3-x16") as device:
        executable = daedal.compile(module, inputs, device=device)
        executable(*inputs)
        alone = executable.stats.cycles
        futures = [executable.submit(*inputs) for _ in range(9)]
        cycles = [future.result() is None or future.stats.cycles for future in futures]
    assert row["call_us"] == pytest.approx(alone / 100)
    assert row["cycles"] == pytest.approx(sum(cycles[2:-2]) / 5, rel=0.1)
    assert row["cycles"] < 0.9 * min(alone, cycles[0])


def test_tiles_share_the_work() -> None:
    one, four = _explore(_bags(4096, 64, 256, 20), DDR3, "litedram-ddr3-x16", 1, 4)
    assert 3.6 < four["lookups_per_s"] / one["lookups_per_s"] <= 4.05
    assert four["lut"] == 4 * one["lut"]
    assert four["launches"] == 4
    assert one["lookups"] == four["lookups"] == 256 * 20
    assert 0.9 < four["share"] <= 1.0


def test_tiles_that_wait_for_others_are_said() -> None:
    """A table of whose bags only copies could give more tiles a part."""
    shape = _bags(4096, 16, 256, 20)
    (few,) = Sweep(of_module("x.py", *shape), ("litedram-ddr3-x16",), (DDR3,), (4,)).run(lambda text: None)
    (shared,) = Sweep(of_module("x.py", *shape), ("litedram-ddr3-x16",), (DDR3,), (4,), 3.0).run(lambda text: None)
    assert few["limit"] == limits.TILES and "the plan: 1 of 4 tiles have work, the longest 4.0 ×" in few["why"]
    assert shared["limit"] == limits.MEMORY and shared["cycles"] < 0.3 * few["cycles"]


def test_a_table_that_fits_no_tile_is_said_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daedal.bench.explore.sweep.room_for", lambda module, config: 2 << 20)
    rows = _explore(_bags(65536, 64, 4, 4), DDR3, "ideal", 1, 16)
    assert rows[0]["note"].startswith("OutOfDeviceMemory: table 'weight' must fit a tile, but 1,048,576 bytes of it")
    assert rows[1]["cycles"] > 0


@pytest.mark.parametrize("config", ["ddr3", "edge", "minimum"])
def test_sizes_are_the_landed_ones(config: str) -> None:
    core = history.landed(history.read(), config)["core"]
    found = machines.size_of(PRESETS[config])
    assert {name: found[name] for name in history.RESOURCES} == {name: core[name] for name in history.RESOURCES}
    assert machines.size_of(replace(PRESETS[config], arguments=20)) == {}


def test_every_memory_has_a_machine_a_clock_and_an_energy() -> None:
    for memory in machines.DEFAULT_MEMORIES:
        for config, known in machines.fitting(memory, ()):
            assert machines.clock_of(known) >= 100_000_000
            assert config.bus_bytes in (16, 32, 64)
        assert energy.bit_of(memory) is not None
    assert {dram for dram in DRAMS if energy.bit_of(dram) is None} == set()
    assert energy.energy("ideal", 100, 10) is None


def test_energy_is_lines_and_additions() -> None:
    found = energy.energy("hbm2e", 1000, 100)
    assert found is not None
    assert found.dram_least == pytest.approx(1000 * 8 * 3.9e-3)
    assert found.least - found.dram_least == pytest.approx(1000 * 1.25 * 4e-3 + 100 * 0.9e-3)
    assert found.most > 2 * found.least


MODEL = """
import torch
from torch import nn

model = nn.EmbeddingBag(500, 32, mode="mean")
inputs = (torch.arange(400).reshape(20, 20),)
"""


LARGE = """
import torch
from torch import nn

class Click(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, 128, mode="sum") for rows in (40_000_000, 3, 70_000_000))
        self.top = nn.Sequential(nn.BatchNorm1d(384), nn.Linear(384, 1))

    def forward(self, bags):
        return self.top(torch.cat([table(each) for table, each in zip(self.tables, bags)], 1))

with torch.device("meta"):
    model = Click()
inputs = ([torch.randint(0, table.num_embeddings, (32, 4)) for table in model.tables],)
"""


def test_tables_that_no_host_has(tmp_path: Path) -> None:
    """56 GB that are nowhere: a model on device meta. What has no address is said of that machine."""
    source, found = tmp_path / "m.py", tmp_path / "x.json"
    for rows, fits_one in (("70_000_000", True), ("270_000_000", False)):
        source.write_text(LARGE.replace("70_000_000", rows))
        result = _invoke(source, "--memory", "hbm2e", "--tiles", "1,4", "--json", found, "-o", tmp_path / "x.html")
        assert result.exit_code == 0, result.output
        one, four = json.loads(found.read_text())["rows"]
        assert bool(one["note"]) is not fits_one
        assert not four["note"] and four["lookups"] == 384
        if fits_one:
            assert one["tile_bytes"] == 110_000_003 * 512
            assert "56,320.0" in result.output
            assert four["cycles"] < one["cycles"]
        else:
            assert one["note"].startswith("OutOfDeviceMemory: table 'tables.")


class Mixed(nn.Module):
    """Rows, and bags of another table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.bags = nn.Embedding(4096, 16), nn.EmbeddingBag(65536, 16, mode="sum", include_last_offset=True)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> Any:
        """Both."""
        return self.rows(indices), self.bags(indices, offsets)


def test_what_is_left_to_pytorch_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Mixed(), (torch.arange(48), torch.arange(0, 49, 8))
    monkeypatch.setattr("daedal.bench.explore.sweep.Planner", lambda *_: SimpleNamespace(plan=lambda: None))
    (all_of_it,) = _explore(shape, DDR3, "ideal")
    monkeypatch.setattr("daedal.bench.explore.sweep.room_for", lambda module, config: 1 << 20)
    (part,) = _explore(shape, DDR3, "ideal")
    assert (all_of_it["lookups"], part["lookups"]) == (96, 48)
    assert part["why"].endswith("; 1 of 2 operations are PyTorch's here, and not counted")
    assert "PyTorch" not in all_of_it["why"]


def test_a_machine_that_only_gathers() -> None:
    gatherer = replace(SMALL, name="gatherer", instructions=0, callbacks=0, lengths=0)
    (row,) = _explore((nn.Embedding(4096, 16), (torch.arange(48),)), gatherer, "ideal")
    assert row["cycles"] > 0 and row["lookups"] == 48
    (row,) = _explore((Mixed(), (torch.arange(48), torch.arange(0, 49, 8))), gatherer, "ideal")
    assert "gatherer has no execute unit" in row["note"]


def test_figures_are_those_of_tables_with_contents() -> None:
    shape = _bags(4096, 64, 64, 20)
    (row,) = _explore(shape, DDR3, "litedram-ddr3-x16")
    with daedal.Device.open("model", DDR3, "litedram-ddr3-x16") as device, torch.no_grad():
        executable = daedal.compile(shape[0], shape[1], device=device)
        executable(*shape[1])
        assert row["cycles_alone"] == executable.stats.cycles
    assert row["tile_bytes"] == 4096 * 256


def _invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["explore", *map(str, words)])


def test_a_file_gives_a_table_a_page_and_json(tmp_path: Path) -> None:
    source, out, found = tmp_path / "m.py", tmp_path / "x.html", tmp_path / "x.json"
    source.write_text(MODEL)
    result = _invoke(source, "--memory", "litedram-ddr3-x16", "--memory", "hbm2e", "--tiles", "1,2", "-o", out,
                     "--json", found)  # fmt: skip
    assert result.exit_code == 0, result.output
    document = json.loads(found.read_text())
    assert [(row["memory"], row["config"], row["tiles"]) for row in document["rows"]] == [
        ("litedram-ddr3-x16", "ddr3", 1), ("litedram-ddr3-x16", "ddr3", 2), ("litedram-ddr3-x16", "edge", 1),
        ("litedram-ddr3-x16", "edge", 2), ("litedram-ddr3-x16", "narrow16", 1), ("litedram-ddr3-x16", "narrow16", 2),
        ("hbm2e", "hbm", 1), ("hbm2e", "hbm", 2),
    ]  # fmt: skip
    assert all(row["lookups"] == 400 and row["lookups_per_s"] > 0 and row["why"] for row in document["rows"])
    assert "Horowitz" in document["energy"]["litedram-ddr3-x16"]
    assert "Most look-ups: " in result.output
    assert page.verdict(document["rows"]) in result.output
    text = out.read_text()
    assert text.count("<svg") == 4
    assert "what limits" in text
    assert "unchecked" in text


def test_a_workload_is_explored_on_what_is_for_the_configuration(tmp_path: Path) -> None:
    result = _invoke("kaggle", "--config", "edge", "--tiles", "1", "-o", tmp_path / "x.html")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("litedram-ddr3-x16") == 2  # its row, and the verdict


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("rm9",), 2, "'rm9' must be a file ending in .py, or a workload: rm1, "),
        (("gone.py",), 1, "gone.py cannot be read: there is no such file"),
        (("rm1", "--tiles", "0"), 2, "tiles must be numbers from 1 to 64, as 1,4,16, not '0'"),
        (("rm1", "--memory", "hbm9"), 2, "memory must be one of ideal, "),
        (("rm1", "--memory", "hbm2e", "--config", "ddr3"), 2, "bus_bytes of configuration ddr3 must be 32 for memory"),
        (("rm1", "--config", "minimum"), 2, "memory must be given for minimum: none of litedram-ddr3-x16, "),
        (("text", "--distribution", "zipf"), 2, "distribution must be left out for text, whose indices are its own"),
        (("rm1", "--config", "ddr9"), 2, "'ddr9' is not one of ddr3, "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(words: tuple[str, ...], status: int, message: str) -> None:
    result = _invoke(*words)
    assert result.exit_code == status
    assert message in " ".join(result.output.split())


def test_a_file_without_a_model_says_what_it_must_have(tmp_path: Path) -> None:
    source = tmp_path / "m.py"
    source.write_text("model = 3\n")
    result = _invoke(source)
    assert result.exit_code == 2
    assert "must have a module `model` with a tuple of its `inputs`, but has no inputs" in result.output


def test_a_model_without_tables_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "m.py"
    source.write_text("import torch\nmodel = torch.nn.Linear(4, 4)\ninputs = (torch.ones(2, 4),)\n")
    result = _invoke(source, "--memory", "ideal", "--tiles", "1")
    assert result.exit_code in (1, 2), result.output
    assert "operation" in result.output


def test_workloads_with_indices_of_their_own() -> None:
    assert of_workload("text", None, 1, None).name == "text, own indices"
    with pytest.raises(ValueError, match="distribution must be left out for text, whose indices are its own, not"):
        of_workload("text", "uniform", 1, None)
