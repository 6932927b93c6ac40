"""The first contents of memories, set by loops instead of a statement for each word."""

import re

import numpy as np
import pytest
from amaranth import Module, Mux, Signal
from amaranth.back import verilog
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from daedal.cosim.builder.initial_words import FEWEST, loops_over_words
from tests.unit.harness import run_cocotb

LOOP = re.compile(r"    for \(integer word = (\d+); word < (\d+); word = word \+ 1\) (\S+ ?)\[word\] = (\S+);\n")


def unrolled(text):
    """The statements that the loops stand for, one for each word."""

    def words(loop):
        return "".join(f"    {loop[3]}[{word}] = {loop[4]};\n" for word in range(int(loop[1]), int(loop[2])))

    return LOOP.sub(words, text)


class Contents(wiring.Component):
    """A memory of bytes with these contents: shows the one at ``address``."""

    def __init__(self, contents):
        super().__init__({"address": In(8), "data": Out(8), "write": In(1)})
        self._contents = contents

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = Memory(shape=8, depth=len(self._contents), init=self._contents)
        read, write = words.read_port(domain="comb"), words.write_port()
        calm = Signal()  # gives the module a register
        m.d.sync += calm.eq(1)
        m.d.comb += [read.addr.eq(self.address), write.addr.eq(self.address), write.data.eq(0xFF)]
        m.d.comb += [write.en.eq(self.write), self.data.eq(Mux(calm, read.data, read.data))]
        return m


def contents(kind, rng):
    runs = {
        "zeros": np.zeros(200), "other": np.arange(200) % 256, "runs": np.repeat(rng.integers(0, 256, 40), 5),
        "mixed": rng.choice([0, 0, 0, 0, 0, 0, 0, 7], 200),
    }  # fmt: skip
    return [int(word) for word in runs[kind]]


@pytest.mark.parametrize("kind", ["zeros", "other", "runs", "mixed"])
def test_loops_stand_for_the_same_statements(kind, rng):
    text = verilog.convert(Contents(contents(kind, rng)), emit_src=False)
    shorter = loops_over_words(text)
    assert unrolled(shorter) == text
    if kind != "other":
        assert len(shorter) < len(text)


def test_only_runs_of_one_memory_one_value_and_one_step():
    def words(*statements):
        return "".join(f"    {memory}[{index}] = 4'h{value};\n" for memory, index, value in statements)

    few = words(*(("m", index, 0) for index in range(FEWEST - 1)))
    assert loops_over_words(few) == few
    whole = words(*(("m", index, 0) for index in range(FEWEST)))
    assert loops_over_words(whole) == f"    for (integer word = 0; word < {FEWEST}; word = word + 1) m[word] = 4'h0;\n"
    for broken in (
        words(*(("m", 2 * index, 0) for index in range(9))), words(*(("m", index, index) for index in range(9))),
        words(*(("mn"[index % 2], index, 0) for index in range(9))), words(*(("m", 0, 0) for _ in range(9))),
    ):  # fmt: skip
        assert loops_over_words(broken) == broken
    apart = whole + "  end\n" + words(*(("m", index, 0) for index in range(FEWEST, 2 * FEWEST)))
    assert unrolled(loops_over_words(apart)) == apart
    assert loops_over_words(apart).count("for") == 2


@pytest.mark.rtl
@pytest.mark.parametrize("kind", ["runs", "mixed"])
def test_a_model_has_the_contents(kind, rng):
    words = contents(kind, rng)
    run_cocotb(Contents(words), "contents", "tests.cosim.builder.bench_initial_words", parameters={"contents": words})
