"""Rows that are kept free of logic: which, for which designs, and what else stays as it was."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from daedal.fpga.flow import row_constraints
from daedal.fpga.flow.flows import FLOWS
from daedal.fpga.flow.row_constraints import CELLS, COLUMNS, FULLEST, LEAST_LOGIC, ROWS, keep_rows_free, rows_to_keep

PART = 83_640
"""Logic cells of LFE5U-85F."""

ROW = len(COLUMNS) * len(CELLS)
"""Logic cells of a row."""


@pytest.fixture
def design() -> dict[str, Any]:
    kinds = ["LUT4"] * 3 + ["CCU2C"] * 2 + ["TRELLIS_DPR16X4", "TRELLIS_FF", "DP16KD"]
    cells = {f"cell{number}": {"type": kind, "connections": {}} for number, kind in enumerate(kinds)}
    return {"modules": {"LUT4": {"attributes": {}}, "board": {"attributes": {"top": "1"}, "cells": cells}}}


PERIOD = 3

LOGIC = 3 + 2 * 2 + 4
"""Logic cells of that design."""


def spread(design: dict[str, Any], path: Path) -> tuple[int, dict[str, Any]]:
    netlist, to = path / "netlist.json", path / "spread.json"
    netlist.write_text(json.dumps(design))
    made = keep_rows_free(netlist, to, PERIOD)
    assert json.loads(netlist.read_text()) == design, "Yosys' netlist stays"
    return made, json.loads(to.read_text())


def test_rows_and_columns_are_those_of_the_part() -> None:
    assert len(ROWS) * ROW == PART


def test_cells_that_do_nothing_hold_the_places(design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_constraints, "LEAST_LOGIC", LOGIC)
    made, found = spread(design, tmp_path)
    cells, before = found["modules"]["board"]["cells"], design["modules"]["board"]["cells"]
    added = [cell for name, cell in cells.items() if name not in before]
    assert made == len(added) == len(rows_to_keep(LOGIC, PERIOD)) * ROW
    assert {name: cells[name] for name in before} == before
    assert {cell["type"] for cell in added} == {"TRELLIS_COMB"}
    assert not any(cell["connections"] for cell in added)
    places = {cell["attributes"]["BEL"] for cell in added}
    assert len(places) == made
    assert {"X2/Y2/SLICEA.K0", "X124/Y2/SLICED.K1"} <= places


def test_a_small_design_changes_nothing(design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_constraints, "LEAST_LOGIC", LOGIC + 1)
    assert spread(design, tmp_path) == (0, deepcopy(design))


def test_there_is_always_room_for_the_design() -> None:
    kept = {logic: rows_to_keep(logic, PERIOD) for logic in range(0, PART, 500)}
    assert not kept[LEAST_LOGIC - 500]
    assert len(kept[LEAST_LOGIC]) == len(kept[28_000]) == 29, "every third row"
    assert {len(free) for free in kept.values()} == {0, 29, 22, 17}, "every third, fourth, fifth row"
    for logic, free in kept.items():
        assert set(free) < set(ROWS)
        assert not free or logic <= FULLEST * (PART - len(free) * ROW)
        assert bool(free) == (LEAST_LOGIC <= logic <= FULLEST * (PART - 17 * ROW))


def test_a_board_can_keep_fewer() -> None:
    assert [len(rows_to_keep(28_000, period)) for period in (3, 4, 5, 6)] == [29, 22, 17, 0]


def test_ecp5_boards_have_it() -> None:
    assert FLOWS["ecp5"].spread is keep_rows_free
