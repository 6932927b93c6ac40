"""The core inside of a board's system against the core alone: what is counted, and what is too much of a difference."""

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.synthesis import inside
from daedal.hw.boards.flows import NETLIST

CORE = {
    "daedal_core.core.access.level0.sum_TRELLIS_FF_Q": "TRELLIS_FF", "daedal_core.core.tokens.store": "DP16KD",
    "daedal_core.core.execute.lane0.product": "MULT18X18D", "daedal_core.core.halt_DFFR_Q": "DFFR",
    "daedal_core.core.store.lines": "SDPX9B", "daedal_core.core.store.level_LUT4_Z": "LUT4",
}  # fmt: skip
SYSTEM = {"uart_TRELLIS_FF_Q": "TRELLIS_FF", "main_ram": "DP16KD"}


def netlist(folder: Path, cells: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    board = {"attributes": {"top": "1"}, "cells": {name: {"type": kind} for name, kind in cells.items()}}
    (folder / NETLIST).write_text(json.dumps({"modules": {"board": board}}))
    return folder / NETLIST


def test_only_cells_of_the_core_count(tmp_path: Path) -> None:
    found = netlist(tmp_path, CORE | SYSTEM)
    assert inside.counts(found, inside=True) == {"ff": 2, "bram": 2, "dsp": 1}
    assert inside.counts(found, inside=False) == {"ff": 3, "bram": 3, "dsp": 1}


def test_the_largest_difference_is_a_part_of_the_core_alone() -> None:
    row = inside.compare("ulx3s", Counter(ff=95, bram=10), Counter(ff=100, bram=8))
    assert (row["ff_inside"], row["ff_alone"], row["dsp_inside"], row["difference"]) == (95, 100, 0, 0.25)


@pytest.mark.parametrize(("missing", "status"), [(0, 0), (1, 1)])
def test_the_command_fails_if_much_is_missing(
    missing: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = netlist(tmp_path / "alone", CORE)
    part = netlist(tmp_path / "inside", dict(list(CORE.items())[missing:]) | SYSTEM)
    monkeypatch.setattr(inside, "alone", lambda *_: whole)
    monkeypatch.setattr(inside, "synthesise", lambda *_, **__: (part.parent, 1.0))
    result = CliRunner().invoke(inside.main, ["ulx3s", "--folder", str(tmp_path)])
    assert result.exit_code == status, result.output
    assert "`ulx3s`" in result.output


def test_the_page_has_a_place_for_it() -> None:
    assert inside.BEGIN in inside.PAGE.read_text(encoding="utf-8")


def test_an_unknown_board_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(inside.main, ["nonesuch", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "Error: board must be one of ecpix5" in result.output
