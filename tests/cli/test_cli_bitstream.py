"""``daedal bitstream``: what goes wrong before any tool runs, in one line."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from daedal.cli import cli
from daedal.fpga.boards import BOARDS
from daedal.fpga.flow import bitstream


def test_an_unknown_board_is_an_error_that_names_all() -> None:
    result = CliRunner().invoke(cli, ["bitstream", "--board", "none"])
    assert result.exit_code == 1
    assert result.output == f"daedal: board must be one of {', '.join(BOARDS)}, not 'none'\n"


@pytest.mark.parametrize(("routed", "kind"), [(True, "routed"), (False, "estimated before routing")])
def test_the_table_says_of_a_clock_what_it_is(monkeypatch: pytest.MonkeyPatch, routed: bool, kind: str) -> None:
    report = {
        "board": "ecpix5", "bitstream": None, "seconds": 7.5, "available": {"lut": 9}, "lut": 5, "ff": 3,
        "routed": routed, "clocks": {"sys": {"mhz": 80.2, "wanted_mhz": 75.0}},
    }  # fmt: skip
    monkeypatch.setattr(bitstream, "build", lambda *_, **__: report)
    result = CliRunner().invoke(cli, ["bitstream", "--board", "ecpix5"])
    assert result.exit_code == 0
    assert f"clock sys: 80.2 MHz {kind}, wanted 75.0\n" in result.output


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
