"""A model with one register, and a run of it; a process that trains it imports no more than this."""

import ctypes
from pathlib import Path

from daedal.cosim.builder.rtl_library import build_verilated

VERILOG = """
module counter(input clk, input [7:0] step, output reg [31:0] sum);
  always @(posedge clk) sum <= step > 250 ? sum ^ {4{step}} : sum + step;
endmodule
"""
HARNESS = {
    "run.cpp": """
#include "Vmodel.h"
extern "C" unsigned run(unsigned cycles) {
  VerilatedContext context;
  Vmodel model(&context, "");
  for (unsigned n = 0; n < cycles; ++n) {
    model.step = n;
    for (int clk : {0, 1}) model.clk = clk, model.eval();
  }
  return model.sum;
}
"""
}


def build() -> Path:
    return build_verilated("counter", VERILOG, HARNESS, top="counter", ours=False)


def run(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).run(10_000))
