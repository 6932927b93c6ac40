"""Every family's tools, on a design that takes them seconds: a counter and a memory under a core's names."""

import json
from pathlib import Path

import pytest

from daedal.errors import ClockTooSlow, DesignTooLarge
from daedal.hw.boards import bitstream, find_board
from daedal.hw.boards.generate import Generated

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
