"""``daedal bitstream``: what goes wrong before any tool runs, in one line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from daedal.cli import cli
from daedal.fpga.boards import BOARDS
from daedal.fpga.flow import bitstream

REPORT = {
    "board": "ecpix5", "bitstream": None, "seconds": 7.5, "available": {"lut": 9}, "lut": 5, "ff": 3,
    "routed": True, "clocks": {"sys": {"mhz": 80.2, "wanted_mhz": 75.0}},
}  # fmt: skip
"""The report on a design, as far as the table shows it."""


def test_an_unknown_board_is_an_error_that_names_all() -> None:
    result = CliRunner().invoke(cli, ["bitstream", "--board", "none"])
    assert result.exit_code == 1
    assert result.output == f"daedal: board must be one of {', '.join(BOARDS)}, not 'none'\n"


@pytest.mark.parametrize(("routed", "kind"), [(True, "routed"), (False, "estimated before routing")])
def test_the_table_says_of_a_clock_what_it_is(monkeypatch: pytest.MonkeyPatch, routed: bool, kind: str) -> None:
    report = {**REPORT, "routed": routed}
    monkeypatch.setattr(bitstream, "build", lambda *_, **__: report)
    result = CliRunner().invoke(cli, ["bitstream", "--board", "ecpix5"])
    assert result.exit_code == 0
    assert f"clock sys: 80.2 MHz {kind}, wanted 75.0\n" in result.output


def test_steps_are_on_the_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object, say: Callable[[str], None], **__: object) -> dict[str, Any]:
        say("synthesising [x]")
        return REPORT

    monkeypatch.setattr(bitstream, "build", build)
    result = CliRunner().invoke(cli, ["bitstream", "--board", "ecpix5"])
    assert (result.stderr, result.exit_code) == ("synthesising [x]\n", 0)


class Builds:
    """Stands for ``bitstream.build``: the designs that it was asked for, of which ``made`` were not known."""

    def __init__(self) -> None:
        self.design, self.made = "one", list[str]()

    def __call__(self, *_: object, closed: Sequence[dict[str, Any]], **__: object) -> dict[str, Any]:
        if known := next((each for each in closed if each["design"] == self.design), None):
            return known
        self.made.append(self.design)
        return {**REPORT, "bitstream": "ecpix5.bit", "tools": {"yosys": "1"}, "design": self.design}


def test_a_design_that_closed_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitstream, "build", builds := Builds())
    history = tmp_path / "boards.json"

    def make(design: str) -> str:
        builds.design = design
        result = CliRunner().invoke(cli, ["bitstream", "--board", "ecpix5", "--history", str(history)])
        assert result.exit_code == 0
        return result.output

    assert "80.2 MHz routed, wanted 75.0" in make("one")
    assert make("one") == "ecpix5: this design closed already, routed: sys 80.2 MHz\n"
    assert builds.made == ["one"]
    make("two")
    assert make("one") == make("two") == "ecpix5: this design closed already, routed: sys 80.2 MHz\n"
    assert builds.made == ["one", "two"]
    for damaged in ("", "[]", '{"schema": 2}', '{"schema": 1, "designs": [{"design": "two", "clocks": 5}]}'):
        history.write_text(damaged)
        assert f"warning: {history} " in make("two")
        assert builds.made.pop() == "two"
        assert "closed already" in make("two"), "the file is whole again"
    assert builds.made == ["one", "two"]


def test_a_board_must_be_named() -> None:
    result = CliRunner().invoke(cli, ["bitstream"])
    assert result.exit_code == 2
    assert "--board" in result.output


def test_a_core_for_another_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["bitstream", "--board", "ulx3s", "--config", "ddr3"])
    assert result.exit_code == 1
    assert "page_bytes of configuration ddr3 must be 1024, as the board's memory has, not 2048" in result.output
    assert not list(tmp_path.iterdir())
