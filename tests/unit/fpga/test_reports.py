"""What is read out of the tools' logs and reports."""

import json
from pathlib import Path

import pytest

from daedal.fpga.flow import reports
from daedal.fpga.flow.flows import FLOWS

LOG = """\
Info: Device utilisation:
Info: \t          TRELLIS_IO:      54/    365    14%
Info: \t                DCCA:       4/     56     7%
Info: \t              DP16KD:      30/    208    14%
Info: \t          MULT18X18D:      16/    156    10%
Info: \t          TRELLIS_FF:   20000/  83640    23%
Info: \t        TRELLIS_COMB:   90000/  83640   107%
Info: Max frequency for clock '$glbnet$sys_clk': 71.00 MHz (FAIL at 75.00 MHz)
Info: Max frequency for clock '$glbnet$core_clk': 27.31 MHz (PASS at 25.00 MHz)
Info: Max frequency for clock '$glbnet$sys_clk': 80.24 MHz (PASS at 75.00 MHz)
"""
FLIP_FLOP_NAMES = "daedal_ecpix5/daedal_core.tile.core.access.level_0.alu_TRELLIS_FF_Q\ndaedal_ecpix5/a_TRELLIS_FF_Q\n"
LOGIC_NAMES = """\
daedal_ecpix5/daedal_core.tile.core.access.level_0.alu_LUT4_Z_3
daedal_ecpix5/daedal_core.tile.core.access.fetch_LUT4_A
daedal_ecpix5/daedal_core.tile.core.execute.lane_0.sum_CCU2C_S0
daedal_ecpix5/main_sdram_refresher_LUT4_B
"""
DESCRIPTION = {"board": "ecpix5", "core_hz": 25_000_000, "config": {"name": "mine", "hash": 1}}


def step(start: str, end: str, delay: float) -> dict[str, object]:
    return {"type": "logic", "delay": delay, "from": {"cell": start}, "to": {"cell": end}}


NEXTPNR = {
    "utilization": {
        "TRELLIS_COMB": {"used": 40123, "available": 83640}, "DP16KD": {"used": 30, "available": 208},
        "MULT18X18D": {"used": 16, "available": 156},
    },
    "fmax": {
        "$glbnet$sys_clk": {"achieved": 80.237, "constraint": 75.0},
        "$glbnet$core_clk": {"achieved": 24.1, "constraint": 25.0},
    },
    "critical_paths": [
        {"from": "posedge $glbnet$core_clk", "to": "posedge $glbnet$core_clk",
         "path": [step("core.execute.a_TRELLIS_FF_Q_1", "x", 1.5), step("x", "core.store.b_LUT4_Z", 40.0)]},
        {"from": "posedge $glbnet$core_clk", "to": "posedge $glbnet$sys_clk", "path": [step("a", "b", 9.0)]},
        {"from": "<async>", "to": "posedge $glbnet$sys_clk", "path": [step("a", "b", 9.0)]},
    ],
}  # fmt: skip


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "logic.txt").write_text(LOGIC_NAMES)
    (tmp_path / "flip_flops.txt").write_text(FLIP_FLOP_NAMES)
    (tmp_path / "design.v").write_text("module top(); endmodule\n")
    run = tmp_path / "seed-1"
    run.mkdir()
    (run / "nextpnr.log").write_text(LOG)
    (run / "nextpnr.json").write_text(json.dumps(NEXTPNR))
    return tmp_path


def test_a_report_has_every_figure(work: Path) -> None:
    report = reports.make(DESCRIPTION, FLOWS["ecp5"], work, "seed-1", routed=True)
    assert (report["clock_mhz"], report["fmax_mhz"], report["closed"]) == (25.0, 24.1, False)
    assert (report["lut"], report["ff"], report["bram"], report["dsp"]) == (40123, 2, 30, 16)
    assert report["available"]["lut"] == 83640
    assert report["clocks"]["sys"] == {"mhz": 80.24, "wanted_mhz": 75.0}
    assert report["limits"] == {"core": "core.execute.a → core.store.b (41.5 ns)"}
    assert report["config"] == DESCRIPTION["config"]


def test_without_routing_clocks_are_the_last_estimates(work: Path) -> None:
    report = reports.make(DESCRIPTION, FLOWS["ecp5"], work, "seed-1", routed=False)
    assert report["clocks"] == {
        "core": {"mhz": 27.31, "wanted_mhz": 25.0}, "sys": {"mhz": 80.24, "wanted_mhz": 75.0}
    }  # fmt: skip
    assert report["closed"]
    assert (report["routed"], report["lut"]) == (False, 90000)


@pytest.mark.parametrize(
    ("net", "name"),
    [
        ("$glbnet$core_clk", "core"), ("$glbnet$sys_clk", "sys"), ("$glbnet$core_clk$TRELLIS_IO_IN", "core"),
        ("core_clk$SB_IO_IN_$glb_clk", "core"), ("daedal_core.clk", "core"), ("main.crg.por_clk", "por"),
        ("$glbnet$clocks_clkout2", "core"), ("clk12$SB_IO_IN_$glb_clk", "sys"),
    ],
)  # fmt: skip
def test_a_clock_is_called_as_its_domain(net: str, name: str) -> None:
    verilog = "assign core_clk = clocks_clkout2;\nassign por_clk = clk12;\nassign sys_clk = clk12;\n"
    assert reports.domain(net, reports.clock_domains(verilog)) == name


def test_logic_is_counted_by_unit(work: Path) -> None:
    assert reports.units(work / "logic.txt") == {"core: access": 2, "core: execute": 1, "system": 1}


def test_signals_between_units_are_counted_together(work: Path) -> None:
    cells = "".join(f"board/daedal_core.tile.core.word_TRELLIS_FF_Q_{n}_DI_LUT4_Z\n" for n in range(3))
    (work / "logic.txt").write_text(cells + "board/daedal_core.tile.core.$signal$3_LUT4_C\n")
    assert reports.units(work / "logic.txt") == {"core: between units": 4}


def test_what_does_not_fit_is_named_with_its_largest_units(work: Path) -> None:
    over = reports.overfull(work / "seed-1" / "nextpnr.log")
    assert over == {"TRELLIS_COMB": (90000, 83640)}
    message = reports.large_message(DESCRIPTION, over, work / "logic.txt")
    assert "configuration mine does not fit on ecpix5" in message
    assert "90000 TRELLIS_COMB of 83640" in message
    assert "core: access (2), core: execute (1), system (1)" in message


def test_a_clock_that_is_too_slow_is_named_with_its_path(work: Path) -> None:
    message = reports.slow_message(reports.make(DESCRIPTION, FLOWS["ecp5"], work, "seed-1", routed=True))
    assert "clock core reaches 24.1 MHz of 25.0 (routed), limited by core.execute.a → core.store.b (41.5 ns)" in message
    assert "clock sys" not in message


def test_a_clock_of_a_placement_is_called_an_estimate(work: Path) -> None:
    report = reports.make(DESCRIPTION, FLOWS["ecp5"], work, "seed-1", routed=False)
    report["clocks"]["core"]["wanted_mhz"] = 30.0
    message = reports.slow_message(report)
    assert "clock core reaches 27.31 MHz of 30.0 (estimated before routing). Lower" in message
