"""``daedal bitstream``: what goes wrong before any tool runs, in one line."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from daedal.cli import cli
from daedal.hw.boards import BOARDS


def test_an_unknown_board_is_an_error_that_names_all() -> None:
    result = CliRunner().invoke(cli, ["bitstream", "--board", "none"])
    assert result.exit_code == 1
    assert result.output == f"daedal: board must be one of {', '.join(BOARDS)}, not 'none'\n"


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
