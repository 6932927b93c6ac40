"""What the simulator's own time is told to go to: by made-up samples, and by a run of a machine."""

import ctypes
from pathlib import Path

import pytest
import torch

import daedal
from daedal.cosim import simulator_time
from daedal.cosim.builder.library import build_library, load_library
from daedal.cosim.simulator_time import CLOCK, EVALUATION, HOST, MEMORY, WAVEFORM, Part, Profile, Symbols, Units
from daedal.cosim.verilator import VerilatorTarget
from daedal.hw.config.core import Config

VERILOG = """\
module top(clk);
endmodule
module \\top.tile.core (clk);
endmodule
module \\top.tile.core.access.level1 (clk);
endmodule
module \\top.tile.core.access.level1.queue (clk);
  assign a = b;
endmodule
module \\top.tile.control (clk);
endmodule
"""

CORE = {
    100: "Vmodel___024root___nba_sequent__TOP__3__PROF__model__l8(Vmodel___024root*)",
    200: "Vmodel___024root___nba_comb__TOP__77__PROF__model__l10(Vmodel___024root*)",
    300: "Vmodel___024root___nba_sequent__TOP__0__PROF__model__l4(Vmodel___024root*)",
    400: "Vmodel___024root___eval(Vmodel___024root*)",
    500: "daedal::Simulation::clock()",
    600: "daedal::IdealMemory::drive(unsigned long)",
    700: "Vmodel___024root__trace_chg_0_sub_0(Vmodel___024root*, VerilatedVcd::Buffer*)",
    800: "VerilatedContext::time() const",
}


class Named(Symbols):
    """A library of which the functions are given."""

    def __init__(self, functions: dict[int, str]) -> None:
        self._places, self._names = list(functions), list(functions.values())


def test_samples_fall_to_units_and_to_what_is_around_them() -> None:
    samples = [110, 100, 199, 200, 320, 450, 500, 600, 700, 800, 5000, 9000]
    parts = simulator_time.parts_of(samples, Named(CORE), Named({5000: "read", 5001: "end"}), Units(VERILOG, "top"))
    found = {(part.name, part.rtl): part.samples for part in parts}
    assert found == {
        ("access.level1", True): 3, ("control", True): 1, ("core", True): 1, (EVALUATION, False): 2, (CLOCK, False): 1,
        (MEMORY, False): 2, (WAVEFORM, False): 1, (HOST, False): 1,
    }  # fmt: skip
    assert parts[0].name == "access.level1"
    assert sum(part.share for part in parts) == pytest.approx(1)


def test_nothing_was_seen() -> None:
    assert simulator_time.parts_of([], Named(CORE), None, Units(VERILOG, "top")) == []


def test_functions_of_a_library_are_found_where_it_is_loaded() -> None:
    code = 'extern "C" int first() { return 1; }\nnamespace daedal { int second(int a) { return a + first(); } }\n'
    library = build_library("functions", {"a.cpp": code})
    place = ctypes.cast(load_library(library).first, ctypes.c_void_p).value or 0
    symbols = Symbols(library, "first", place)
    assert symbols.name_at(place) == "first"
    assert place in symbols
    assert 1 not in symbols


def test_a_profile_as_text_and_json() -> None:
    parts = [Part("access.level1", True, 600, 0.6), Part(HOST, False, 395, 0.395), Part("store", True, 5, 0.005)]
    profile = Profile(parts, 20.0, 1000)
    lines = profile.text().splitlines()
    assert [line.split()[-4:] for line in lines[1:]] == [
        ["access.level1", "12.00", "s", "60.0%"], ["Python", "7.90", "s", "39.5%"], ["parts", "0.10", "s", "0.5%"],
        ["RTL", "12.10", "s", "60.5%"],
    ]  # fmt: skip
    assert profile.as_dict()["parts"][0] == {
        "name": "access.level1", "rtl": True, "samples": 600, "share": 0.6, "seconds": 12.0,
    }  # fmt: skip


@pytest.mark.rtl
@pytest.mark.slow
def test_a_run_is_told_by_unit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(simulator_time.VARIABLE, "1")
    layer, indices = torch.nn.EmbeddingBag(500, 64, mode="sum"), torch.randint(500, (64, 16))
    with daedal.Device.open("verilator", config="minimum", memory_bytes=1 << 22) as device:
        executable = daedal.compile(layer, (indices,), device=device)
        for _ in range(4):
            assert torch.equal(executable(indices), layer(indices))
        target = device.target
        assert isinstance(target, VerilatorTarget)
        with pytest.raises(OSError, match="a profile is of one simulation at a time"):
            VerilatorTarget(Config.preset("minimum"), memory_bytes=1 << 20)
        profile = target.profile()
        assert profile is target.profile()
    shares = {part.name: part.share for part in profile.parts}
    units = {part.name for part in profile.parts if part.rtl}
    assert any(name.startswith("access.level") for name in units), shares
    assert any(name.startswith("execute") for name in units), shares
    assert {CLOCK, MEMORY, HOST} <= shares.keys()
    assert sum(part.share for part in profile.parts if part.rtl) > 0.2
    assert profile.samples > 20


def test_a_target_that_nobody_looked_at_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(simulator_time.VARIABLE, raising=False)
    target = VerilatorTarget.__new__(VerilatorTarget)
    target._profile = None
    with pytest.raises(ValueError, match="DAEDAL_PROFILE must be 1 when the target is opened"):
        target.profile()
