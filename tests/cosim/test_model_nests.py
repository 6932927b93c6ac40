"""The target ``model`` beside the RTL: nests that follow each other, lines at each port, depth and latency."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import daedal
from daedal.bench.suite import Machine
from daedal.bench.suites import model_check
from daedal.bench.workloads import shape_list
from daedal.hw.config.core import Config

LANDED = Path(__file__).parents[2] / "bench" / "results" / "model.json"
SEED = 20261201
"""Of random shapes whose lines at each port are landed too."""


def _landed(config: str, memory: str, seed: int, number: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = json.loads(LANDED.read_text(encoding="utf-8"))["results"][model_check.NAME]
    (row,) = [
        row for row in rows
        if (row["config"], row["memory"], row["seed"]) == (config, memory, seed)
        and row["workload"].startswith(f"{number}: ")
    ]  # fmt: skip
    return row


def _predicted(config: str, memory: str, seed: int, number: int) -> model_check.Figures:
    shape = list(shape_list.drawn(40, seed))[number]
    machine = Machine(Config.preset(config), memory)
    return model_check.figures(shape.sized(machine.config).make(seed), machine, "model")


NESTS = [
    ("ddr3", "ideal", 20261129, 13), ("ddr3", "ideal", 20261129, 23), ("ddr3", "litedram-ddr3-x16", 20261129, 30),
    ("wide", "litedram-ddr3-x64", 20261129, 23), ("ddr3", "ideal", SEED, 1), ("ddr3", "ideal", SEED, 22),
]  # fmt: skip
"""Many tables of many widths: nests that follow each other, and the lines that are read for nothing (decision 010)."""


@pytest.mark.parametrize(("config", "memory", "seed", "number"), NESTS)
def test_nests_begin_while_those_before_them_are_at_work(config: str, memory: str, seed: int, number: int) -> None:
    """Each unit goes on to the next nest by itself, and asks for lines as soon as its port has room for them."""
    row, predicted = _landed(config, memory, seed, number), _predicted(config, memory, seed, number).stats
    assert model_check.is_within(row["cycles"], predicted.cycles), (row["cycles"], predicted.cycles)
    assert abs(predicted.lines_read - row["lines_read"]) <= 0.04 * row["lines_read"]


@pytest.mark.parametrize("number", [1, 13])
@pytest.mark.parametrize("memory", ["ideal", "litedram-ddr3-x16"])
def test_lines_at_each_port_are_near_the_landed_ones(memory: str, number: int) -> None:
    """Rows are in the ports that their addresses say, and so are lines that are read ahead."""
    row, figures = _landed("ddr3", memory, SEED, number), _predicted("ddr3", memory, SEED, number)
    assert sum(figures.port_lines) == figures.stats.lines_read
    for found, wanted in zip(figures.port_lines, row["port_lines"], strict=True):
        assert abs(found - wanted) <= 0.05 * wanted + 16, (figures.port_lines, row["port_lines"])


SHALLOW = replace(Config.preset("ddr3"), name="shallow", reorder_beats=128)
"""A quarter of the places for lines."""

RTL_CYCLES = {("ddr3", 100): 12_405, ("ddr3", 400): 13_564, ("shallow", 100): 13_071, ("shallow", 400): 35_901}
"""By configuration and latency: of 64 bags of 10 rows of 256 bytes on `ideal`, the second launch of a machine."""


def _by_depth_and_latency(target: str) -> dict[tuple[str, int], int]:
    torch.manual_seed(3)
    module = nn.EmbeddingBag(1000, 64, mode="sum", include_last_offset=True)
    inputs = torch.randint(0, 1000, (640,)), torch.arange(0, 641, 10)
    found = {}
    for config in (Config.preset("ddr3"), SHALLOW):
        for latency in (100, 400):
            with daedal.Device.open(target, config=config, memory=f"ideal:latency={latency}") as device:
                executable = daedal.compile(module, inputs, device=device)
                for _ in range(2):
                    executable(*inputs)
                found[config.name, latency] = executable.stats.cycles
    return found


def test_depth_and_latency_move_predictions_as_they_move_the_rtl() -> None:
    found = _by_depth_and_latency("model")
    for key, cycles in RTL_CYCLES.items():
        assert model_check.is_within(cycles, found[key]), (key, cycles, found[key])
    for moved in (("shallow", 100), ("ddr3", 400)):
        change = RTL_CYCLES["shallow", 400] - RTL_CYCLES[moved]
        assert abs(found["shallow", 400] - found[moved] - change) <= 0.05 * change, (moved, change, found)


@pytest.mark.rtl
@pytest.mark.full
def test_depth_and_latency_move_the_rtl_so() -> None:
    assert _by_depth_and_latency("verilator") == RTL_CYCLES
