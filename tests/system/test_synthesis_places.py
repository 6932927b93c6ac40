"""Places of a Gowin netlist: which flip-flops share one with their LUT."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.synthesis import places


def cell(kind: str, **pins: int) -> dict[str, object]:
    return {"type": kind, "connections": {pin: [bit] for pin, bit in pins.items()}}


CORE = "daedal_core.core."
CELLS = {
    f"{CORE}store.a": cell("LUT4", F=10, I0=2), f"{CORE}store.a_DFF": cell("DFFR", D=10, Q=11),
    f"{CORE}store.again_DFF": cell("DFFE", D=10, Q=12), f"{CORE}store.late_DFF": cell("DFF", D=11, Q=13),
    f"{CORE}fabric.sum": cell("ALU", SUM=20, I0=2), f"{CORE}fabric.sum_DFF": cell("DFF", D=20, Q=21),
    f"{CORE}fabric.lines": cell("RAM16SDP4", DO=30), f"{CORE}fabric.wide": cell("MUX2_LUT5", O=31),
    "uart_DFF": cell("DFF", D=30, Q=40), "main_ram": cell("SDPB", DO=50),
}  # fmt: skip


def netlist(tmp_path: Path) -> Path:
    path = tmp_path / "netlist.json"
    path.write_text(json.dumps({"modules": {"board": {"attributes": {"top": "1"}, "cells": CELLS}}}))
    return path


def test_a_flip_flop_shares_its_place_with_the_lut_that_feeds_it_and_no_other(tmp_path: Path) -> None:
    """Of two behind one LUT one does; one behind a flip-flop or a memory does not."""
    result = CliRunner().invoke(places.main, [str(netlist(tmp_path)), "--json"])
    found = {row["unit"]: row for row in json.loads(result.output)}
    assert list(found) == ["core: fabric", "core: store", "system", "all"]
    assert found["core: store"] == {"unit": "core: store", "logic": 1, "ff": 3, "paired": 1, "memories": 0, "places": 3}
    assert found["core: fabric"] == {
        "unit": "core: fabric", "logic": 1, "ff": 1, "paired": 1, "memories": 1, "places": 9,
    }  # fmt: skip
    assert (found["system"]["places"], found["all"]["places"]) == (1, 13)


def test_the_table(tmp_path: Path) -> None:
    result = CliRunner().invoke(places.main, [str(netlist(tmp_path))])
    assert result.exit_code == 0 and "core: fabric" in result.output


@pytest.mark.parametrize("text", ["{", "[]", '{"modules": {}}'])
def test_what_is_no_netlist(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(text)
    result = CliRunner().invoke(places.main, [str(tmp_path / "other.json")])
    assert result.exit_code == 1
    assert "must be a netlist as Yosys writes them" in result.output
