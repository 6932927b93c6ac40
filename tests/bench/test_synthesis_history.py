"""Figures of synthesis against the landed ones: what has grown, and what the changelog says of it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.synthesis import __main__ as command
from bench.synthesis import history, suite, units_table
from bench.synthesis.units import UNITS
from daedal.bench.report.table import markdown
from daedal.hw.config.core import PRESETS, Config

LONGEST = ("store unit", "vector queues", "loader", "statistics")
"""Two thirds of the time that all units take."""

FACTS = {"date": "2026-01-01", "revision": "abc", "tools": {}, "flags": []}


def row(unit: str = "lane", config: str = "ddr3", *, status: str = "ok", **figures: int) -> history.Row:
    base = {"lut": 1000, "ff": 500, "bram": 0, "dsp": 4, "marks": [], "fmax_mhz": None, "place_seeds": []}
    return {"unit": unit, "config": config, "status": status, "reason": "", **base, **figures}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "history.json"
    history.land([row(), row("loader", lut=100, bram=2)], FACTS, path)
    return path


def grown(kept: Path, *rows: history.Row, config: str = "ddr3") -> list[str]:
    return [str(each) for each in history.growths(rows, history.landed(history.read(kept), config))]


def test_up_to_five_percent_is_no_growth(kept: Path) -> None:
    assert grown(kept, row(lut=1050, ff=525), row("loader", lut=100, bram=2)) == []
    assert grown(kept, row(lut=900, ff=400)) == []


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"lut": 1051}, "lane (ddr3) takes 1,051 LUT; 1,000 were landed: 5.1 % more"),
        ({"ff": 600}, "lane (ddr3) takes 600 FF; 500 were landed: 20.0 % more"),
        ({"bram": 1}, "lane (ddr3) takes 1 BRAM; 0 were landed: none before"),
        ({"dsp": 5}, "lane (ddr3) takes 5 DSP; 4 were landed: 25.0 % more"),
    ],
)
def test_growth_says_what_grew(kept: Path, figures: dict[str, int], said: str) -> None:
    assert grown(kept, row(**figures)) == [said]


def test_what_failed_or_is_new_or_of_another_configuration_is_not_compared(kept: Path) -> None:
    rows = [row(lut=9999, status="failed"), row("core", lut=9999)]
    assert grown(kept, *rows) == []
    assert grown(kept, row(config="edge", lut=9999), config="edge") == []


def test_the_last_landing_of_a_unit_counts(kept: Path) -> None:
    history.land([row(lut=1200)], FACTS, kept)
    assert [len(landing["units"]) for landing in history.read(kept)] == [2, 1]
    assert grown(kept, row(lut=1260), row("loader", lut=100, bram=2)) == []
    assert len(grown(kept, row("loader", lut=106, bram=2))) == 1


def test_a_landing_keeps_clocks_and_leaves_out_what_failed(kept: Path) -> None:
    placed = row(fmax_mhz=83, place_seeds=[1, 2, 3]) | {"routed": True}
    history.land([placed, row("core", status="failed")], FACTS, kept)
    last = history.read(kept)[-1]
    assert last["units"] == {
        "lane": {"lut": 1000, "ff": 500, "bram": 0, "dsp": 4, "fmax_mhz": 83, "place_seeds": [1, 2, 3], "routed": True}
    }
    assert (last["config"], last["revision"]) == ("ddr3", "abc")


def test_a_landing_is_of_one_configuration(kept: Path) -> None:
    with pytest.raises(ValueError, match=r"not of \['ddr3', 'edge'\]"):
        history.land([row(), row(config="edge")], FACTS, kept)
    with pytest.raises(ValueError, match="rows must be of one configuration"):
        history.land([row(status="failed")], FACTS, kept)


def test_a_history_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text('{"schema": 7}')
    with pytest.raises(ValueError, match="must have schema 1, not 7"):
        history.read(tmp_path / "h.json")
    assert history.read(tmp_path / "none.json") == []


CHANGELOG = """\
# Changelog

## Unreleased

- Something else (ddr3): 9,999 LUT.
- Area of lane (ddr3): 1,100 LUT, 600 FF, for
  rounding, and 5 DSP.
- Area of level 2 (edge): 7 BRAM.

## 0.1.0

- Area of loader (ddr3): 900 LUT, long ago.
"""


def test_what_the_changelog_states() -> None:
    assert history.stated(CHANGELOG) == {
        ("ddr3", "lane", "lut"): 1100, ("ddr3", "lane", "ff"): 600, ("ddr3", "lane", "dsp"): 5,
        ("edge", "level 2", "bram"): 7,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "left"),
    [
        (row(lut=1100), 0),
        (row(lut=1101), 1),  # an entry is for what it says, not for whatever comes later
        (row(lut=1100, ff=601, dsp=6), 2),
        (row("loader", lut=200, bram=2), 1),  # said of an earlier release
    ],
)
def test_an_entry_explains_as_much_as_it_states(kept: Path, measured: history.Row, left: int) -> None:
    found = history.growths([measured], history.landed(history.read(kept), "ddr3"))
    assert len(history.unexplained(found, CHANGELOG)) == left


@pytest.fixture
def bench(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command, with what it measures, the history and the changelog in files of this test's."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    monkeypatch.setattr(history, "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(command.history, "read", lambda path=kept, read=history.read: read(path))
    monkeypatch.setattr(command.history, "land", lambda rows, facts, land=history.land: land(rows, facts, kept))
    return kept


def run(monkeypatch: pytest.MonkeyPatch, measured: list[history.Row], *words: str) -> int:
    asked = []

    def measure_units(
        config: Config, units: tuple[str, ...], *, place_seeds: int, route_large: bool, with_lut6: bool
    ) -> list[history.Row]:
        assert not with_lut6
        asked.append((units, place_seeds))
        return [{**each, "note": ""} for each in measured]

    monkeypatch.setattr(suite, "measure_units", measure_units)
    status = CliRunner().invoke(command.main, words).exit_code
    assert asked == [(command.FAST, 0) if "--fast" in words else ((), 5)]
    return status


@pytest.mark.parametrize(
    ("measured", "status"), [([row()], 0), ([row(lut=1100)], 0), ([row(lut=1101)], 1), ([row(status="failed")], 1)]
)
@pytest.mark.parametrize("words", [(), ("--fast",)])
def test_status(bench: Path, monkeypatch: pytest.MonkeyPatch, measured, status, words) -> None:
    assert run(monkeypatch, measured, *words) == status
    assert len(history.read(bench)) == 1


@pytest.mark.parametrize(("lut", "landings"), [(900, 2), (1100, 2), (1101, 1)])
def test_unexplained_growth_is_not_landed(bench: Path, monkeypatch: pytest.MonkeyPatch, lut, landings) -> None:
    run(monkeypatch, [row(lut=lut)], "--land")
    found = json.loads(bench.read_text())["landings"]
    assert len(found) == landings
    assert found[-1]["units"]["lane"]["lut"] == (lut if landings == 2 else 1000)


def test_the_result_file_says_what_it_depends_on(bench: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run(monkeypatch, [row()], "--json", str(tmp_path / "synth.json")) == 0
    found = json.loads((tmp_path / "synth.json").read_text())
    assert (found["schema"], found["facts"]["config"], found["facts"]["place_seeds"]) == (1, "ddr3", 5)
    assert found["results"]["synthesis"][0]["lut"] == 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [pytest.param(unit, marks=pytest.mark.full) if unit in LONGEST else unit for unit in command.FAST],
)
def test_a_unit_takes_no_more_than_was_landed(unit: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    rows = suite.measure_units(PRESETS["ddr3"], (unit,))
    assert [(each["unit"], each["status"]) for each in rows] == [(unit, "ok")]
    found = command.judge(rows, history.read(), history.CHANGELOG.read_text(encoding="utf-8"))
    assert not found, "give the change an entry as python -m bench.synthesis --help says"


def test_the_landed_history_is_of_units_and_presets_that_there_are() -> None:
    landings = history.read()
    assert landings
    assert {landing["config"] for landing in landings} <= set(PRESETS)
    units = {unit.name for unit in UNITS}
    assert set(command.FAST) <= set(history.landed(landings, "ddr3")) <= units


def test_the_page_has_the_last_cells_and_the_last_clock_of_each_unit(kept: Path) -> None:
    """The clock is of another landing than the cells, if the last one has none."""
    history.land([row(fmax_mhz=70.04, place_seeds=[1, 2, 3], routed=True)], FACTS | {"revision": "def"}, kept)
    history.land([row(lut=1010, fmax_mhz=None)], FACTS | {"revision": "fed"}, kept)
    lane, loader = units_table.rows(history.read(kept), "ddr3")
    assert (lane["lut"], lane["fmax_mhz"], lane["placements"], lane["revision"]) == (1010, 70.04, 3, "def")
    assert (loader["unit"], loader["lut"], "fmax_mhz" in loader, loader["revision"]) == ("loader", 100, False, "abc")
    assert units_table.rows(history.read(kept), "edge") == []
    said = markdown(units_table.COLUMNS, [lane, loader])
    assert "| lane | 1,010 | 500 | 0 | 4 | 70.0 | routed | 3 | def |" in said


def test_the_page_has_the_cores_of_presets(kept: Path) -> None:
    history.land([row("core", lut=1010, lut6=700)], FACTS | {"revision": "fed"}, kept)
    history.land([row("core", config="edge", lut=99)], FACTS | {"revision": "def"}, kept)
    said = markdown(units_table.PRESET_COLUMNS, units_table.cores(history.read(kept)))
    assert "| ddr3 | 1,010 | 500 | 0 | 4 | 700 | – | – | fed |" in said
    assert "| edge | 99 | 500 | 0 | 4 | – | – | – | def |" in said


def test_the_page_says_of_each_clock_whether_it_is_routed(kept: Path) -> None:
    facts = FACTS | {"revision": "def"}
    for routed, said in ((False, "estimated before routing"), (True, "routed")):
        history.land([row(place_seeds=[1, 2], fmax_mhz=60.0, routed=routed)], facts, kept)
        assert units_table.rows(history.read(kept), "ddr3")[0]["clock"] == said


def test_every_landed_clock_says_whether_it_is_routed() -> None:
    """And is nextpnr's own figure, not one of what somebody made of its placement."""
    figures = [unit for landing in history.read() for unit in landing["units"].values()]
    assert all(isinstance(unit["routed"], bool) for unit in figures if "fmax_mhz" in unit)
    assert {name for unit in figures for name in unit} <= set(history.KEPT)
