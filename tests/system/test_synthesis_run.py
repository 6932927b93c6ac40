"""One unit through the tools: which clock its row has, and what an interrupted run leaves."""

from pathlib import Path

import pytest

from bench.synthesis import run, tools
from bench.synthesis.cells import Area
from bench.synthesis.units import UNITS
from daedal.hw.config import Config

CONFIG = Config.preset("ddr3")

LOG = """\
Info: Max frequency for clock '$glbnet$clk': 40.00 MHz (FAIL at 100.00 MHz)
Info: Max frequency for clock '$glbnet$clk': {mhz:.2f} MHz (FAIL at 100.00 MHz)
"""
"""nextpnr's, of a placement: the last estimate is that of what the placer leaves."""


def unit(name: str) -> run.Unit:
    return next(unit for unit in UNITS if unit.name == name)


@pytest.fixture
def placements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments that nextpnr got; a program in its place finds 61, 62, … MHz from seeds 1, 2, …"""
    calls: list[list[str]] = []

    def tool(program: str, arguments: list[str], folder: Path, log: str, *, timeout: float) -> None:
        if program == tools.NEXTPNR:
            calls.append(arguments)
            (folder / log).write_text(LOG.format(mhz=60 + int(arguments[arguments.index("--seed") + 1])))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tools, "run", tool)
    monkeypatch.setattr(run, "_synthesised", lambda folder, *_: Area(1, 1, 0, 0, 1, 0, 0, 0, [], []))
    monkeypatch.setattr(run, "promote_resets", lambda path: None)
    return calls


def test_without_routing_the_clock_is_nextpnrs_estimate(placements: list[list[str]]) -> None:
    row = run.measure(unit("record writer"), CONFIG, seeds=[1, 2, 5], route=False, timeout=60)
    assert (row["fmax_mhz"], row["fmax_mhz_each"]) == (62.0, [61.0, 62.0, 65.0])
    assert (row["routed"], row["clock"], row["critical_path"]) == (False, "estimated before routing", "")
    assert all("--no-route" in arguments for arguments in placements)
    again = run.measure(unit("record writer"), CONFIG, seeds=[1, 2, 5], route=False, timeout=60)
    assert (again, len(placements)) == (row, 3), "what was placed is kept"


def test_a_ring_that_was_interrupted_is_made_anew(placements: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between Yosys and its resets: the netlist is there, but not as on the boards."""
    resets: list[Path] = []

    def promote(path: Path) -> None:
        resets.append(path)
        if len(resets) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(run, "promote_resets", promote)
    with pytest.raises(KeyboardInterrupt):
        run.measure(unit("record writer"), CONFIG, seeds=[1], route=False, timeout=60)
    assert run.measure(unit("record writer"), CONFIG, seeds=[1, 2], route=False, timeout=60)["status"] == "ok"
    assert len(resets) == 2


@pytest.mark.full
def test_a_unit_by_the_real_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = run.measure(unit("iterative unit"), CONFIG, seeds=[1], route=False, timeout=1200)
    assert row["status"] == "ok", row
    assert row["fmax_mhz"] > 50
    assert row["clock"] == "estimated before routing"
