"""Every family's tools, on a design that takes them seconds: a counter and a memory under a core's names."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from daedal.errors import ClockTooSlow, DesignTooLarge
from daedal.fpga.boards import find_board
from daedal.fpga.flow import bitstream
from daedal.fpga.soc.generator import Generated

PINS = {
    "ecp5": 'LOCATE COMP "core_clk" SITE "{clk}";\nLOCATE COMP "q" SITE "{q}";\nFREQUENCY PORT "core_clk" {mhz} MHz;\n',
    "gowin": 'IO_LOC "core_clk" {clk};\nIO_LOC "q" {q};\n',
    "ice40": "set_io core_clk {clk}\nset_io q {q}\n",
}
FILES = {"ecp5": "top.lpf", "gowin": "top.cst", "ice40": "top.pcf"}
SITES = {"ulx3s": ("G2", "F1"), "tangnano20k": ("4", "15"), "icebreaker": ("35", "11")}
"""Board -> its clock's pin, and one to drive. ECPIX-5 has the tools of ULX3S."""


def design(board: str, *, mhz: float, words: int = 512, width: int = 16) -> Generated:
    """A counter, a memory of ``words``, and a multiplier."""
    flow = find_board(board).flow
    verilog = f"""
module counter(input clk, output reg [{width - 1}:0] value);
  always @(posedge clk) value <= value + 1;
endmodule
module memory(input clk, input [{width - 1}:0] value, output reg [{width - 1}:0] read);
  reg [{width - 1}:0] content [0:{words - 1}];
  reg [{width - 1}:0] address;
  always @(posedge clk) begin
    address <= value * value;
    content[value] <= address ^ value;
    read <= content[address];
  end
endmodule
module daedal_core(input clk, output q);
  wire [{width - 1}:0] value, read;
  counter access(.clk(clk), .value(value));
  memory vectors(.clk(clk), .value(value), .read(read));
  assign q = ^read;
endmodule
module top(input core_clk, output q);
  daedal_core daedal_core(.clk(core_clk), .q(q));
endmodule
"""
    clk, q = SITES[board]
    constraints = {FILES[flow]: PINS[flow].format(clk=clk, q=q, mhz=mhz)}
    description = {"top": "top", "board": board, "core_hz": mhz * 1e6, "clock_hz": mhz * 1e6,
                   "config": {"name": "counter", "hash": 0}}  # fmt: skip
    return Generated(verilog, constraints, description)


@pytest.mark.slow
@pytest.mark.parametrize("board", list(SITES))
def test_a_design_becomes_a_configuration_file(board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitstream, "generate", lambda *_, **__: design(board, mhz=10))
    report = bitstream.build(board, folder=tmp_path)
    assert (tmp_path / str(report["bitstream"])).stat().st_size > 10_000
    assert report == json.loads((tmp_path / "report.json").read_text())
    assert report["closed"]
    assert report["clocks"]["core"]["wanted_mhz"] == 10
    assert report["fmax_mhz"] > 10
    assert report["limits"]["core"]
    assert 16 <= report["ff"] < 100
    assert 16 <= report["lut"] < 300
    assert report["bram"] >= 1
    assert all(report["available"][name] > 0 for name in ("lut", "bram", "dsp"))


RESET = """
module top(input core_clk, output reg q);
  reg [1099:0] state;
  reg [7:0] count;
  wire reset = &count | count == 8'h55;
  always @(posedge core_clk) begin
    count <= count + 1;
    q <= ^state;
    if (reset) state <= 0; else state <= {state[1098:0], count[7] ^ state[1099]};
  end
endmodule
"""


@pytest.mark.slow
@pytest.mark.full
def test_a_reset_of_many_flip_flops_is_routed_as_a_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = design("ulx3s", mhz=10)
    monkeypatch.setattr(bitstream, "generate", lambda *_, **__: replace(made, verilog=RESET))
    report = bitstream.build("ulx3s", folder=tmp_path)
    assert report["closed"]
    assert 1100 <= report["ff"] < 1200
    (log,) = tmp_path.glob("work-*/seed-*/nextpnr.log")
    assert "routing clock net global_reset0 using global" in log.read_text()


@pytest.mark.slow
def test_distributed_memory_becomes_flip_flops_where_there_is_none(tmp_path: Path, monkeypatch) -> None:
    made = design("icebreaker", mhz=10, words=4)
    verilog = made.verilog.replace("reg [15:0] content", '(* ram_style = "distributed" *) reg [15:0] content')
    assert verilog != made.verilog
    monkeypatch.setattr(bitstream, "generate", lambda *_, **__: replace(made, verilog=verilog))
    report = bitstream.build("icebreaker", folder=tmp_path)
    assert (report["bram"], report["closed"]) == (0, True)
    assert report["ff"] >= 4 * 16


@pytest.mark.slow
def test_a_clock_out_of_reach_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitstream, "generate", lambda *_, **__: design("icebreaker", mhz=250))
    with pytest.raises(ClockTooSlow, match=r"clock core reaches [0-9.]+ MHz of 250.*limited by .* → .* ns"):
        bitstream.build("icebreaker", folder=tmp_path)
    assert not (tmp_path / "icebreaker.bin").exists()


@pytest.mark.slow
def test_a_memory_without_room_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitstream, "generate", lambda *_, **__: design("icebreaker", mhz=10, words=16384))
    with pytest.raises(DesignTooLarge, match=r"64 ICESTORM_RAM of 30"):
        bitstream.build("icebreaker", folder=tmp_path)
