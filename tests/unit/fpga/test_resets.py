"""Large resets of a netlist: which go onto the network for clocks, and what stays as it was."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from daedal.fpga.soc import global_resets
from daedal.fpga.soc.global_resets import promote_resets

LARGE, SMALL = 2, 3
"""Nets of two resets."""


def flip_flop(reset: int | str) -> dict[str, Any]:
    return {"type": "TRELLIS_FF", "connections": {"CLK": [7], "LSR": [reset], "DI": [8], "Q": [9]}}


@pytest.fixture
def design() -> dict[str, Any]:
    cells = {f"large{k}": flip_flop(LARGE) for k in range(4)} | {f"small{k}": flip_flop(SMALL) for k in range(3)}
    cells["constant"] = flip_flop("0")
    cells["none"] = {"type": "TRELLIS_FF", "connections": {"CLK": [7], "Q": [9]}}
    cells["logic"] = {
        "type": "LUT4",
        "port_directions": {"A": "input", "B": "input", "Z": "output"},
        "connections": {"A": [LARGE], "B": ["1"], "Z": [20]},
    }
    names = {"reset": {"bits": [LARGE]}, "word": {"bits": [20, "x", 21]}}
    module = {"attributes": {"top": "1"}, "cells": cells, "netnames": names}
    return {"modules": {"LUT4": {"attributes": {}}, "board": module}}


def promoted(design: dict[str, Any], path: Path) -> tuple[dict[str, int], dict[str, Any]]:
    netlist = path / "netlist.json"
    netlist.write_text(json.dumps(design))
    made = promote_resets(netlist)
    return made, json.loads(netlist.read_text())


def test_a_large_reset_gets_a_net_of_its_own(design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_resets, "LEAST_FLIP_FLOPS", 4)
    made, found = promoted(design, tmp_path)
    assert made == {"global_reset0": 4}
    module = found["modules"]["board"]
    cells = module["cells"]
    assert cells["global_reset0"]["type"] == "DCCA"
    assert cells["global_reset0"]["connections"] == {"CLKI": [LARGE], "CE": ["1"], "CLKO": [22]}
    assert module["netnames"]["global_reset0"]["bits"] == [22]
    assert all(cells[f"large{k}"]["connections"]["LSR"] == [22] for k in range(4))
    for name in ("small0", "constant", "none", "logic"):
        assert cells[name] == design["modules"]["board"]["cells"][name]


def test_logic_gets_a_copy_of_the_flip_flop_that_a_large_reset_comes_from(
    design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_resets, "LEAST_FLIP_FLOPS", 4)
    cells = design["modules"]["board"]["cells"]
    cells["driver"] = flip_flop("0") | {"parameters": {"REGSET": "SET"}}
    cells["driver"]["connections"]["Q"] = [LARGE]
    cells["pin"] = {
        "type": "ODDRX2F", "port_directions": {"RST": "input"}, "connections": {"RST": [LARGE]},
    }  # fmt: skip
    found = promoted(design, tmp_path)[1]["modules"]["board"]
    copy = found["cells"]["driver_for_logic0"]
    fresh = copy["connections"]["Q"]
    assert fresh == found["netnames"]["driver_for_logic0"]["bits"] == [23]
    assert copy == cells["driver"] | {"connections": cells["driver"]["connections"] | {"Q": fresh}}
    assert found["cells"]["logic"]["connections"] == {"A": fresh, "B": ["1"], "Z": [20]}
    for name in ("driver", "pin"):
        assert found["cells"][name] == cells[name]
    assert found["cells"]["global_reset0"]["connections"]["CLKI"] == [LARGE]


def test_much_logic_gets_several_copies(design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_resets, "LEAST_FLIP_FLOPS", 4)
    monkeypatch.setattr(global_resets, "MOST_LOADS", 2)
    cells = design["modules"]["board"]["cells"]
    cells["driver"] = flip_flop("0")
    cells["driver"]["connections"]["Q"] = [LARGE]
    for name in ("more", "and_more"):
        cells[name] = deepcopy(cells["logic"])
    found = promoted(design, tmp_path)[1]["modules"]["board"]["cells"]
    copies = [found[f"driver_for_logic{number}"]["connections"] for number in range(2)]
    assert [each["Q"] for each in copies] == [[23], [24]]
    assert all(each | {"Q": [LARGE]} == cells["driver"]["connections"] for each in copies)
    loads = {name: found[name]["connections"]["A"] for name in ("and_more", "logic", "more")}
    assert loads == {"and_more": [23], "logic": [23], "more": [24]}, "neighbours by name have the same one"


def test_the_copies_of_two_resets_have_nets_of_their_own(
    design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_resets, "LEAST_FLIP_FLOPS", 3)
    cells = design["modules"]["board"]["cells"]
    for name, net in (("first", LARGE), ("second", SMALL)):
        cells[name] = flip_flop("0")
        cells[name]["connections"]["Q"] = [net]
    cells["logic"]["connections"]["B"] = [SMALL]
    made, found = promoted(design, tmp_path)
    assert made == {"global_reset0": 4, "global_reset1": 3}
    cells = found["modules"]["board"]["cells"]
    driven = [cells[f"global_reset{number}"]["connections"]["CLKO"] for number in range(2)]
    driven += [cells[f"{name}_for_logic0"]["connections"]["Q"] for name in ("first", "second")]
    assert sorted(driven) == [[22], [23], [24], [25]], "no net has two drivers"
    assert [cells["logic"]["connections"][pin] for pin in "AB"] == driven[2:]


def test_small_resets_change_nothing(design, tmp_path: Path) -> None:
    before = deepcopy(design)
    assert promoted(design, tmp_path) == ({}, before)


def test_no_more_than_there_is_room_for(design, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_resets, "LEAST_FLIP_FLOPS", 1)
    monkeypatch.setattr(global_resets, "MOST_NETS", 1)
    assert promoted(design, tmp_path)[0] == {"global_reset0": 4}
