"""The clock of a unit that is placed: cells are moved, nextpnr's word on it counts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.synthesis import placed, run, tools
from bench.synthesis.cells import Area
from bench.synthesis.units import UNITS
from daedal.hw.config import Config
from tests.unit.boards.placement.design import longest_ps, scattered, sdf

SEED = 7

Runs = list[list[str]]


def nextpnr(monkeypatch: pytest.MonkeyPatch, *, says: float | None = None, wires: Callable[[str], str] = str) -> Runs:
    """Put a program in nextpnr's place that has placed ``scattered(SEED)``; the arguments that it gets.

    ``says``: what it claims of the clock, MHz; ``wires`` changes the delays that it writes for the moved design.
    """
    calls: Runs = []

    def tool(program: str, arguments: list[str], folder: Path, log: str, *, timeout: float) -> None:
        calls.append(arguments)
        if program == tools.YOSYS:
            return
        if "--no-place" in arguments:
            cells = json.loads((folder / arguments[arguments.index("--json") + 1]).read_text())["modules"]["top"][
                "cells"
            ]
            (folder / arguments[arguments.index("--sdf") + 1]).write_text(wires(sdf(cells)))
            return
        design = scattered(SEED)
        netlist, delays = design.write(folder)
        netlist.rename(folder / arguments[arguments.index("--write") + 1])
        delays.rename(folder / arguments[arguments.index("--sdf") + 1])
        mhz = says or 1e6 / longest_ps(design.cells)
        text = f"Info: Max frequency for clock 'clk': {mhz:.2f} MHz (FAIL at 100.00 MHz)\nInfo: {placed.FINISHED}.\n"
        (folder / log).write_text(text)

    monkeypatch.setattr(tools, "run", tool)
    return calls


def test_the_clock_is_that_of_the_moved_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = nextpnr(monkeypatch)
    found = placed.clock(tmp_path, SEED, 60)
    assert found["placer_mhz"] == round(1e6 / longest_ps(scattered(SEED).cells), 1)
    assert found["fmax_mhz"] > found["placer_mhz"] + 10
    assert found["moves"] > 0
    start, end = found["critical_path"].split(" (")[0].split(" → ")
    assert {start, end} <= set(scattered(SEED).cells)
    assert "not routed" in found["critical_path"]
    assert len(calls) == 2
    assert not list(tmp_path.glob("*.sdf")), "a core's take half a gigabyte"


def test_a_placement_that_was_interrupted_before_its_moves_is_used(tmp_path: Path, monkeypatch) -> None:
    calls = nextpnr(monkeypatch, wires=lambda text: "nothing")
    with pytest.raises(tools.ToolFailed, match="must be a file of delays"):
        placed.clock(tmp_path, SEED, 60)
    again = nextpnr(monkeypatch)
    assert placed.clock(tmp_path, SEED, 60)["moves"] > 0
    assert (len(calls), len(again)) == (2, 1)


def test_a_placement_that_was_not_finished_is_made_anew(tmp_path: Path, monkeypatch) -> None:
    nextpnr(monkeypatch, wires=lambda text: "nothing")
    with pytest.raises(tools.ToolFailed):
        placed.clock(tmp_path, SEED, 60)
    log = tmp_path / f"place-{SEED}-placed.log"
    log.write_text(log.read_text().replace(placed.FINISHED, "Program st"))
    again = nextpnr(monkeypatch)
    assert placed.clock(tmp_path, SEED, 60)["moves"] > 0
    assert len(again) == 2


@pytest.mark.parametrize("says", [20.0, 200.0])
def test_other_times_than_nextpnrs_are_an_error(tmp_path: Path, monkeypatch, says: float) -> None:
    nextpnr(monkeypatch, says=says)
    with pytest.raises(
        tools.ToolFailed, match=rf"nextpnr says {says:.2f} MHz of a placement that has \d+\.\d\d MHz here"
    ):
        placed.clock(tmp_path, SEED, 60)


def test_wires_that_nextpnr_does_not_confirm_are_an_error(tmp_path: Path, monkeypatch) -> None:
    nextpnr(monkeypatch, wires=lambda text: text.replace("(480:480:480)", "(481:481:9480)"))
    with pytest.raises(tools.ToolFailed, match=r"from seed 7: a wire of \d+ steps takes"):
        placed.clock(tmp_path, SEED, 60)
    nextpnr(monkeypatch, wires=_twice)
    with pytest.raises(tools.ToolFailed, match="nextpnr says"):
        placed.clock(tmp_path, SEED, 60)


def _twice(text: str) -> str:
    """All wires take twice as long."""
    lines = []
    for line in text.splitlines():
        if "INTERCONNECT" in line:
            start, ps, *_ = line.split(":")
            line = f"{start}:{ps}:{2 * int(ps)}) (0:0:0))"
        lines.append(line)
    return "\n".join(lines)


def test_a_ring_that_was_interrupted_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between Yosys and its resets: the netlist is there, but not as on the boards."""
    monkeypatch.chdir(tmp_path)
    nextpnr(monkeypatch)
    unit, config = next(unit for unit in UNITS if unit.name == "record writer"), Config.preset("ddr3")
    monkeypatch.setattr(run, "_synthesised", lambda folder, *_: Area(1, 1, 0, 0, 1, 0, 0, 0, [], []))
    resets: list[Path] = []

    def promote(path: Path) -> None:
        resets.append(path)
        if len(resets) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(run, "promote_resets", promote)
    with pytest.raises(KeyboardInterrupt):
        run.measure(unit, config, seeds=[1], route=False, timeout=60)
    assert run.measure(unit, config, seeds=[1, 2], route=False, timeout=60)["status"] == "ok"
    assert len(resets) == 2


@pytest.mark.full
def test_a_unit_by_the_real_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    unit = next(unit for unit in UNITS if unit.name == "iterative unit")
    row = run.measure(unit, Config.preset("ddr3"), seeds=[1], route=False, timeout=1200)
    assert row["status"] == "ok", row
    assert row["fmax_mhz"] >= row["placer_mhz"] > 50
    assert row["moves"] > 0
