"""The longest ways through a netlist: which they are, and what a user is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.synthesis.paths import BEGIN, CARRY, CARRY_IN, LUT, Netlist, main, net_delay

DIRECTIONS = {
    "LUT4": {"A": "input", "B": "input", "Z": "output"},
    "TRELLIS_FF": {"CLK": "input", "DI": "input", "Q": "output"},
    "CCU2C": {"A0": "input", "CIN": "input", "COUT": "output", "S0": "output"},
}


def cell(kind: str, **pins: int | str) -> dict[str, Any]:
    return {
        "type": kind, "connections": {pin: [bit] for pin, bit in pins.items()}, "port_directions": DIRECTIONS[kind]
    }  # fmt: skip


def module(cells: dict[str, Any], **names: int) -> dict[str, Any]:
    return {
        "attributes": {"top": "1"},
        "cells": cells,
        "netnames": {name: {"bits": [bit]} for name, bit in names.items()},
    }


CHAIN = module(
    {
        "a": cell("TRELLIS_FF", CLK=1, DI=9, Q=2),
        "first": cell("LUT4", A=2, B="0", Z=3),
        "second": cell("LUT4", A=3, B=2, Z=4),
        "unit.b": cell("TRELLIS_FF", CLK=1, DI=4, Q=5),
        "unit.c": cell("TRELLIS_FF", CLK=1, DI=3, Q=6),
        "d": cell("TRELLIS_FF", CLK=1, DI=5, Q=7),
    },
    **{"unit.a": 2, "other.x": 3, "unit.y": 4, "unit.b": 5},
)


def test_ways_are_as_long_as_their_cells_and_nets() -> None:
    """The longest one comes first; shorter ones from the same signal to the same unit are left out."""
    rows = list(Netlist(CHAIN).rows())
    assert [(row["start"], row["end"], row["cells"]) for row in rows] == [("unit.a", "unit.b", 2), ("unit.b", "d", 0),
                                                                          ("?", "a", 0)]  # fmt: skip
    assert rows[0]["way"] == "unit > other > unit"
    assert rows[0]["ns"] == round(BEGIN["TRELLIS_FF"] + 2 * LUT + net_delay(2) + net_delay(2) + net_delay(1), 2)
    assert rows[1]["ns"] == round(BEGIN["TRELLIS_FF"] + net_delay(1), 2)


def test_carries_have_no_nets() -> None:
    cells: dict[str, Any] = {"a": cell("TRELLIS_FF", CLK=1, DI="0", Q=2)}
    for k in range(10):
        cells[f"chain{k}"] = cell("CCU2C", A0=2, CIN=10 + k, COUT=11 + k, S0=30 + k)
    cells["end"] = cell("TRELLIS_FF", CLK=1, DI=20, Q=50)
    found = next(row for row in Netlist(module(cells)).rows() if row["end"] == "end")
    assert found["cells"] == 10
    assert found["ns"] == pytest.approx(
        BEGIN["TRELLIS_FF"] + net_delay(10) + CARRY_IN + 9 * CARRY + net_delay(1), abs=0.01
    )


def test_nets_with_more_readers_are_slower() -> None:
    delays = [net_delay(readers) for readers in (1, 2, 8, 31, 200)]
    assert delays == sorted(set(delays))


def test_loops_of_logic_come_to_an_end() -> None:
    """nextpnr would refuse them; the table is shown all the same."""
    loop = module({"one": cell("LUT4", A=3, B=2, Z=4), "two": cell("LUT4", A=4, B="0", Z=3),
                   "end": cell("TRELLIS_FF", CLK=1, DI=4, Q=2)})  # fmt: skip
    assert [row["end"] for row in Netlist(loop).rows()] == ["end"]


def test_command(tmp_path: Path) -> None:
    netlist, result = tmp_path / "netlist.json", tmp_path / "paths.json"
    netlist.write_text(json.dumps({"modules": {"part": {"attributes": {}}, "all": CHAIN}}))
    shown = CliRunner().invoke(main, [str(netlist), "--count", "1", "--json", str(result)])
    assert shown.exit_code == 0, shown.output
    assert "unit.a" in shown.output
    assert [row["end"] for row in json.loads(result.read_text())["rows"]] == ["unit.b"]


OTHER = json.dumps({"modules": {"ice40": module({"a": cell("LUT4", A=2, B=3, Z=4) | {"type": "SB_LUT4"}})}})
NO_CELLS = '{"modules": {"all": {"attributes": {"top": "1"}}}}'
NO_PINS = '{"modules": {"all": {"attributes": {"top": "1"}, "netnames": {}, "cells": {"a": {"type": "TRELLIS_FF"}}}}}'


@pytest.mark.parametrize("text", ["", "[]", '{"modules": {}}', '{"modules": 3}', OTHER, NO_CELLS, NO_PINS])
def test_what_is_no_netlist_is_refused(tmp_path: Path, text: str) -> None:
    netlist = tmp_path / "netlist.json"
    netlist.write_text(text)
    refused = CliRunner().invoke(main, [str(netlist)])
    assert refused.exit_code == 1
    assert "must be a netlist for ECP5 as Yosys writes it" in refused.output
