"""``cosim.latched_inputs``: registers at a model's inputs, with a clock of their own."""

import ctypes
import re

import pytest
from amaranth.back import verilog
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.cosim.builder.latched_inputs import CLOCK, DIRECT, SUFFIX, latch_inputs
from daedal.cosim.builder.rtl_library import build_verilated
from daedal.hw.config.core import Config
from daedal.hw.core_ports import core_ports
from daedal.hw.verilog import TOP, core_verilog
from tests.system.test_rtl_configs import BROAD


class Adder(wiring.Component):
    """``now`` is the sum of the inputs, ``before`` what it was at the last edge of the clock."""

    a: In(8)
    b: In(1)
    now: Out(9)
    before: Out(9)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += self.now.eq(self.a + self.b)
        m.d.sync += self.before.eq(self.now)
        return m


HARNESS = {
    "run.cpp": """
#include "Vmodel.h"
static VerilatedContext context;
static Vmodel model(&context, "");
extern "C" unsigned step(unsigned a, unsigned b, unsigned clk, unsigned pins_clk) {
  model.a_pin = a, model.b_pin = b, model.clk = clk, model.pins_clk = pins_clk;
  model.eval();
  return model.now | model.before << 16;
}
"""
}


@pytest.mark.slow
def test_inputs_are_taken_at_their_own_edge() -> None:
    text = latch_inputs(verilog.convert(Adder(), name="adder", emit_src=False), "adder")
    library = ctypes.CDLL(str(build_verilated("adder", text, HARNESS, top="adder", ours=False)))

    def step(a: int, b: int, clk: int, pins_clk: int) -> tuple[int, int]:
        both = library.step(a, b, clk, pins_clk)
        return both & 0xFFFF, both >> 16

    assert step(7, 1, 0, 0) == (0, 0)
    assert step(7, 1, 0, 1) == (8, 0)
    assert step(9, 1, 0, 1) == (8, 0)  # no edge
    assert step(9, 1, 1, 0) == (8, 8)  # the clock's edge alone
    assert step(9, 1, 0, 1) == (10, 8)
    assert step(255, 1, 0, 0) == (10, 8)
    assert step(255, 1, 1, 1) == (256, 10)  # both at once: the core sees what was there before
    assert step(0, 0, 0, 0) == (256, 10)


@pytest.mark.parametrize("config", [Config.preset("minimum"), BROAD], ids=lambda config: config.name)
def test_every_input_of_the_core(config: Config) -> None:
    plain = core_verilog(config)
    text = latch_inputs(plain, TOP)
    module = text[text.index(f"module {TOP}(") :].partition("endmodule")[0]
    inputs = [port.name for port in core_ports(config) if port.direction == "input"]
    assert len(inputs) > 10
    found = re.findall(r"^  input (?:\[\d+:0\] )?(\w+);$", module, re.MULTILINE)
    expected = [name if name in DIRECT else name + SUFFIX for name in inputs]
    assert sorted(found) == sorted([*expected, CLOCK])
    for port in core_ports(config):
        if port.direction == "input" and port.name not in DIRECT:
            bits = f"[{port.width - 1}:0] " if port.width > 1 else ""
            assert f"  reg {bits}{port.name};\n" in module
            assert f"always @(posedge {CLOCK}) {port.name} <= {port.name}{SUFFIX};" in module
    head = module.partition(");")[0]
    assert set(re.findall(r"\w+", head)) >= {
        *expected,
        CLOCK,
        *(p.name for p in core_ports(config) if p.name not in inputs),
    }


def test_a_signal_keeps_its_name_in_other_modules() -> None:
    """Units have ports that are called like the core's: those stay as they are."""
    unit = "module unit(a);\n  input a;\n  wire a;\nendmodule\n"
    top = "module top(clk, a);\n  input clk;\n  wire clk;\n  input a;\n  wire a;\nendmodule\n"
    assert latch_inputs(unit + top, "top").startswith(f"{unit}module top(clk, a_pin, pins_clk);\n  input pins_clk;\n")
