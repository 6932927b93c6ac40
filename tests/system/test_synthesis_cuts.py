"""The table of cuts: what is counted in a netlist, and what the page says of it."""

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from bench.synthesis import cuts
from daedal.hw.boards import find_board

CELLS = {
    "daedal_core.core.access.level0.sum_SB_LUT4_O": "SB_LUT4",
    "daedal_core.core.access.level0.sum_SB_DFF_Q": "SB_DFFSR",
    "daedal_core.core.execute.lane0.b_SB_LUT4_O": "SB_LUT4",
    "daedal_core.core.execute.lane0.b_SB_LUT4_O_1": "SB_LUT4",
    "daedal_core.core.execute.lane0.product": "SB_MAC16",
    "daedal_core.core.tokens.store": "SB_RAM40_4K",
    "main_uart_SB_LUT4_O": "SB_LUT4",
    "main_uart_SB_DFFE_Q": "SB_DFFE",
    "main_uart_SB_CARRY_CO": "SB_CARRY",
}


@pytest.fixture
def row(tmp_path: Path) -> cuts.Row:
    modules = {
        "SB_LUT4": {"attributes": {"blackbox": "1"}, "cells": {}},
        "board": {"attributes": {"top": "1"}, "cells": {name: {"type": kind} for name, kind in CELLS.items()}},
    }
    (tmp_path / "netlist.json").write_text(json.dumps({"modules": modules}))
    return cuts.counts(tmp_path / "netlist.json")


def test_what_a_netlist_takes(row: cuts.Row) -> None:
    assert (row["lut"], row["ff"], row["bram"], row["dsp"]) == (4, 2, 1, 1)
    assert (row["core_lut"], row["core_ff"]) == (3, 1)
    assert cuts.largest(row["units"]) == "execute 2, access 1"


def test_what_is_said_of_the_last(row: cuts.Row) -> None:
    said = cuts.text([{**row, "what": "one", "largest": "execute 2, access 1", "seconds": 3.2}])
    assert "| one | 3 | 1 | 4 | 2 | 1 | 1 | execute 2, access 1 | 3 |" in said
    assert "The system around the core has 1 LUTs." in said


def test_each_cut_has_less_than_the_one_before() -> None:
    own = find_board(cuts.BOARD).config
    tried = [asdict(cut.config) for cut in cuts.cuts()]
    for one in tried:
        assert (one["banks"], one["page_bytes"], one["lanes"], one["ports"]) == (own.banks, own.page_bytes, 1, 1)
    for before, after in pairwise(tried):
        differing = {name for name in before if name != "name" and before[name] != after[name]}
        assert differing
        assert all(after[name] < before[name] for name in differing), differing


def test_the_page_has_a_place_for_it() -> None:
    assert cuts.BEGIN in cuts.insert(cuts.PAGE.read_text(encoding="utf-8"), cuts.BEGIN, "x")
