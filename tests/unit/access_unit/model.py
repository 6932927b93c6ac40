"""A component as a compiled model that is stepped from Python, one call per cycle.

Many times faster than a simulator that Python enters for each signal.
"""

import ctypes
from typing import Any

from amaranth.back import verilog
from amaranth.hdl import Shape
from amaranth.lib import wiring

from daedal.base import coverage
from daedal.cosim.builder.rtl_library import build_verilated

WORD = 32
HARNESS = """
#include <cstdint>
#include "Vmodel.h"
#include "coverage.h"
struct Counted {
  VerilatedContext context;
  Vmodel model{&context};
  Coverage coverage{context};
};
extern "C" {
void* model_new() { return new Counted; }
void model_delete(void* handle) { delete static_cast<Counted*>(handle); }
void model_step(void* handle, const std::uint32_t* in, std::uint32_t* before, std::uint32_t* after) {
  Vmodel& m = static_cast<Counted*>(handle)->model;
%(set)s
  m.clk = 0;
  m.eval();
  { std::uint32_t* out = before;
%(get)s
  }
  m.clk = 1;
  m.eval();
  { std::uint32_t* out = after;
%(get)s
  }
}
}
"""


class Model:
    """A verilated ``component``.

    ``set`` inputs, then ``step``: ``get`` reads what the outputs were at the clock edge, ``peek`` what they are
    after it, with the inputs unchanged. Names are those of the Verilog ports.
    """

    def __init__(self, component: wiring.Component, name: str) -> None:
        ports = [
            ("__".join(str(part) for part in path), Shape.cast(member.shape).width, member.flow is wiring.In)
            for path, member, _ in component.signature.flatten(component)
        ]
        self._inputs, in_words = self._place([("rst", 1), *((n, w) for n, w, is_in in ports if is_in)])
        self._outputs, out_words = self._place([(n, w) for n, w, is_in in ports if not is_in])
        self._in = (ctypes.c_uint32 * in_words)()
        self._before, self._after = (ctypes.c_uint32 * out_words)(), (ctypes.c_uint32 * out_words)()
        text = verilog.convert(component, name=name, emit_src=coverage.is_wanted())
        source = HARNESS % {"set": self._copy(self._inputs, True), "get": self._copy(self._outputs, False)}
        self._library = ctypes.CDLL(str(build_verilated(name, text, {"harness.cpp": source}, top=name)))
        self._library.model_new.restype = ctypes.c_void_p
        self._handle = ctypes.c_void_p(self._library.model_new())
        self._values = dict.fromkeys(self._inputs, 0)

    @staticmethod
    def _place(ports: list[tuple[str, int]]) -> tuple[dict[str, tuple[int, int, int]], int]:
        placed, at = {}, 0
        for name, width in ports:
            words = -(-width // WORD)
            placed[name] = (at, words, width)
            at += words
        return placed, at

    @staticmethod
    def _copy(ports: dict[str, tuple[int, int, int]], into_model: bool) -> str:
        lines = []
        for port, (at, words, _) in ports.items():
            name = port.replace("__", "___05F")  # how Verilator writes it
            # Verilator holds up to 64 bits as a number and more as an array of words.
            for n in range(words):
                if words > 2:
                    lines.append(f"m.{name}[{n}] = in[{at + n}];" if into_model else f"out[{at + n}] = m.{name}[{n}];")
                elif not into_model:
                    lines.append(f"out[{at + n}] = static_cast<std::uint64_t>(m.{name}) >> {WORD * n};")
            if words == 1 and into_model:
                lines.append(f"m.{name} = in[{at}];")
            if words == 2 and into_model:
                lines.append(f"m.{name} = in[{at}] | static_cast<std::uint64_t>(in[{at + 1}]) << {WORD};")
        return "\n".join(lines)

    def set(self, name: str, value: int) -> None:
        """Drive input ``name`` from the next step on."""
        at, words, _ = self._inputs[name]
        for n in range(words):
            self._in[at + n] = value >> (WORD * n) & 0xFFFF_FFFF

    def step(self) -> None:
        """One clock cycle."""
        self._library.model_step(self._handle, self._in, self._before, self._after)

    def get(self, name: str) -> int:
        """Output ``name`` as it was at the last clock edge."""
        return self._read(self._before, name)

    def peek(self, name: str) -> int:
        """Output ``name`` after the last clock edge; right if it does not depend on inputs at once."""
        return self._read(self._after, name)

    def _read(self, words: Any, name: str) -> int:
        at, count, _ = self._outputs[name]
        value = int(words[at])
        for n in range(1, count):
            value |= words[at + n] << (WORD * n)
        return value

    def __del__(self) -> None:
        if handle := getattr(self, "_handle", None):
            self._library.model_delete(handle)
