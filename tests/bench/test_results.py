"""The landed results, and the pages and pictures that are made of them."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from bench.results import __main__ as command
from bench.results import boards_page, files, levels_picture, limit_picture, page, peers, shapes_page, structures_table
from bench.synthesis import history
from daedal.bench import registry

SVG = "{http://www.w3.org/2000/svg}"


def test_pages_are_made_of_what_was_landed() -> None:
    for path, text in command.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} must be made anew: python -m bench.results"


def test_results_are_equal_to_pytorchs_and_complete() -> None:
    for name, document in files.results().items():
        for suite, rows in document["results"].items():
            assert suite in registry.SUITES and rows, (name, suite)
            assert name != "models" or all("share" in row for row in rows), "no package may be missing"
            assert all(row.get("bit_exact", True) and not row.get("verdict") for row in rows), (name, suite)
    found = files.results()
    memories = {row["memory"] for row in page.workload_rows(found)}
    swept = [row for name in ("sweep", "sweep-wide") for row in found[name]["results"]["sweep"]]
    assert memories == set(files.MEMORIES) == {row["memory"] for row in swept}


def test_every_section_says_what_its_figures_are() -> None:
    found = files.results()
    pages = page.page(found), boards_page.page(found["prediction"], files.boards(), history.read())
    sections = [section for text in pages for section in text.split("\n## ")[1:]]
    assert len(sections) >= 12
    for section in sections:
        if section.startswith("Settings"):
            continue
        said = re.search(r"\*(Measured|Simulated|Predicted|routed)\*|estimated before routing", section)
        assert said, section.partition("\n")[0]


def test_every_clock_is_routed_or_estimated() -> None:
    for row in (*files.boards(), *files.results()["prediction"]["results"]["prediction"]):
        has_clock = (row.get("fmax_mhz") or row.get("fmax")) is not None
        assert row.get("clock") in (("routed", "estimated before routing") if has_clock else ("", None))


def test_a_changed_figure_is_another_page() -> None:
    found = files.results()
    before = page.page(found)
    found["layers"]["results"]["layers"][0]["cycles"] += 1
    assert page.page(found) != before
    assert page.readme_table(found) not in command.README.read_text(encoding="utf-8")


def test_quick_runs_are_no_results(tmp_path: Path) -> None:
    for name in files.DOCUMENTS:
        document = json.loads(files.path_of(name).read_text(encoding="utf-8"))
        document["facts"]["quick"] = name == "sweep"
        files.path_of(name, tmp_path).write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"sweep.json must not be of a run with --quick"):
        files.results(tmp_path)


def test_the_readme_must_have_its_marks() -> None:
    assert command.insert(f"a\n{command.BEGIN}\nold\n{command.END}\nb", "new") == (
        f"a\n{command.BEGIN}\nnew\n{command.END}\nb"
    )
    with pytest.raises(ValueError, match=r"README.md must have the lines"):
        command.insert("nothing", "new")


REPORT: dict[str, Any] = {
    "board": "ecpix5",
    "routed": True,
    "lut": 10,
    "ff": 20,
    "bram": 3,
    "dsp": 4,
    "fmax_mhz": 81.5,
    "clock_mhz": 75.0,
    "seed": 3,
    "closed": True,
    "part": ["--um5g-85k", "--package", "CABGA554", "--speed", "8"],
}


def test_a_report_takes_the_place_of_its_boards_figures(tmp_path: Path) -> None:
    files.path_of(files.BOARDS, tmp_path).write_text(files.path_of(files.BOARDS).read_text(encoding="utf-8"))
    before = [row["board"] for row in files.boards(tmp_path)]
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    files.land_board(report, "abc1234", tmp_path)
    assert [row["board"] for row in files.boards(tmp_path)] == before
    row = next(row for row in files.boards(tmp_path) if row["board"] == "ecpix5")
    assert (row["lut"], row["clock"], row["revision"], row["patches"]) == (10, "routed", "abc1234", "refresh")
    other = {**REPORT, "part": ["--85k", "--package", "CABGA554", "--speed", "6"], "routed": False, "closed": False}
    report.write_text(json.dumps(other))
    files.land_board(report, "abc1234", tmp_path)
    row = next(row for row in files.boards(tmp_path) if row["board"] == "ecpix5, grade 6")
    assert (row["clock"], row["note"]) == ("estimated before routing", "does not close")
    report.write_text("{}")
    with pytest.raises(ValueError, match="must be a report of daedal bitstream, with board"):
        files.land_board(report, "abc1234", tmp_path)


def test_structures_show_the_lanes_where_they_decide() -> None:
    row = {
        "workload": "mp", "memory": "ideal", "config": "ddr3", "cycles": 2000, "limit_share": 0.4, "limit_cycles": 800,
        "useful_share": 0.35, "lane_cycles": 1500, "lane_share": 0.75, "equal_to": "PyTorch", "data": "x",
    }  # fmt: skip
    other = {**row, "memory": "litedram-ddr3-x64", "config": "wide", "lane_cycles": 700, "torch_share": 0.5}
    shown, (entry,) = structures_table.table([row, other])
    assert entry["ideal"] == "2,000 · 0.400 / 0.350, lanes 0.750"
    assert entry["litedram-ddr3-x64"] == "2,000 · 0.400 / 0.350" and entry["torch_share"] == 0.5
    assert [one.heading for one in shown[1:4]] == ["ideal, `ddr3`", "litedram-ddr3-x64, `wide`", "PyTorch"]
    assert "PyTorch" not in [one.heading for one in structures_table.table([row])[0]]
    facts = {"processor": "a computer"}
    assert "on a computer." in structures_table.text(facts, [other])
    assert "a computer" not in structures_table.text(facts, [row])


def test_the_command_measures_only_what_it_knows() -> None:
    found = CliRunner().invoke(command.main, ["--measure", "nonsense"])
    assert found.exit_code == 2 and "'nonsense' is not one of 'layers'" in found.output


def test_another_engine_beside_the_sweep(tmp_path: Path) -> None:
    peer = peers.read()
    swept = files.results()["sweep"]["results"]["sweep"]
    columns, rows = peers.table(peer, swept)
    assert [row["row_bytes"] for row in rows] == [16, 64, 256, 1024] and len(columns) == len(peer["settings"]) + 3
    assert all(0 < row["ours"] <= row["limit"] <= 1 for row in rows)
    assert rows[-1][peer["settings"][0]] is None, "what was not measured is a dash"
    for wrong in ({"schema": 2}, {"rows": [{"row_bytes": 16, "shares": [0.5]}]}, {"conditions": None}):
        (tmp_path / "p.json").write_text(json.dumps({**peer, **wrong}))
        with pytest.raises(ValueError, match="must have schema 1, peer"):
            peers.read(tmp_path / "p.json")


def shape(memory: str, outcome: str, **figures: Any) -> dict[str, Any]:
    shares = dict.fromkeys(("need_share", "limit_share", "bound_share", "useful_share", "useful_ceiling"), 0.5)
    return {"workload": "x", "config": "ddr3", "memory": memory, "cycles": 1000, **shares, "main_stall": "load",
            "batch": 1, "pooling": [1, 1], "outcome": outcome,
            "goals": [{"reached": "reached" in outcome}], **figures}  # fmt: skip


def test_shapes_with_memories_beside_each_other() -> None:
    rows = [shape("ideal", "need 0.80: missed"), shape("litedram-ddr3-x16", "need 0.80: reached", cycles=900),
            shape("ideal:latency=20", "cycles at most 340: missed", cycles=362)]  # fmt: skip
    text = shapes_page.page(rows, ["abc", "abc"])
    assert "1 of 3 goals are reached. Commit: abc." in text
    assert "| x | 1,000 · 0.50 / 0.50 / 0.50, 0.50 of 0.50 | 900 · " in text
    assert "| load | need 0.80: missed on ideal; need 0.80: reached on litedram-ddr3-x16 |" in text
    assert "| launch | 20 cycles | 100 cycles |" in text and "| x | 362 | 1,000 |" in text
    two = [shape(memory, "need 0.80: reached") for memory in ("ideal", "litedram-ddr3-x16")]
    both = shapes_page.page(two, ["abc"])
    assert "| load | need 0.80: reached |" in both


def test_levels_as_a_picture() -> None:
    rows = [{"workload": "a<b", "vectorise": 4.0, "bufferise": 2.0, "align": 0.9}, {"workload": "no clock"}]
    root = ElementTree.fromstring(levels_picture.picture(rows))
    texts = [each.text for each in root.iter(f"{SVG}text")]
    steps = ["vectorise", "bufferise", "align"]
    assert texts == [*steps, "a<b", "4.0", "2.0", "7.2×", "published", "5.1", "1.7", "1.3", "11.3×"]
    bars = [int(each.attrib["width"]) for each in root.iter(f"{SVG}rect")][4:7]
    assert bars[0] == pytest.approx(2 * bars[1], abs=1) and bars[2] == 0


def test_the_limit_as_a_picture() -> None:
    row = {"workload": "a<b", "distribution": "uniform", "memory": "ideal", "limit_share": 0.5}
    others = [{**row, "distribution": "zipf"}, {**row, "memory": "other"}]
    root = ElementTree.fromstring(limit_picture.picture([row, *others]))
    assert [each.text for each in root.iter(f"{SVG}text")][-2:] == ["a<b", "0.500"]
    widths = [float(each.attrib["width"]) for each in root.iter(f"{SVG}rect")]
    assert widths[-1] == limit_picture.MOST / 2
    assert all(width + limit_picture.LEFT <= limit_picture.WIDTH for width in widths[1:])


def test_a_run_says_of_which_sources_it_is(tmp_path: Path) -> None:
    path = files.path_of("layers", tmp_path)
    path.write_text(files.path_of("layers").read_text(encoding="utf-8"))
    files.land("layers", "abc1234", tmp_path)
    assert json.loads(path.read_text(encoding="utf-8"))["facts"]["revision"] == "abc1234"
    assert set(files.RUNS) == {name for name, document in files.results().items() if "revision" in document["facts"]}
