"""Cutter and packer: for every input that is a stream of rows, what goes in comes out, once and in order."""

from typing import NamedTuple

from amaranth import Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.interfaces import lane_beat_layout, lane_beat_stream
from daedal.hw.queues.beats_to_line import BeatsToLine
from daedal.hw.queues.line_to_beats import LineToBeats
from tests.formal.sat.prover import holds
from tests.formal.streams import StreamContract

COUNT = 3


class Sizes(NamedTuple):
    """Of a configuration all that the layouts ask for, narrower than one can be."""

    bus_bytes: int = 2
    lane_bytes: int = 1


SIZES = Sizes()
"""Narrow data: the converters know bytes only, not elements."""


class Spec(wiring.Component):
    """A packer behind whose output a cutter undoes its work: the n-th narrow beat in is the n-th out.

    ``fault`` plants a mistake.
    """

    i: In(lane_beat_stream(SIZES))
    o: Out(lane_beat_stream(SIZES))

    def __init__(self, *, fault: bool = False) -> None:
        super().__init__()
        self._fault = fault

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.packer = packer = BeatsToLine(SIZES)
        m.submodules.cutter = cutter = LineToBeats(SIZES)
        connect(m, flipped(self.i), packer.i)
        connect(m, packer.o, cutter.i)
        connect(m, cutter.o, flipped(self.o))
        self._watch(m, "lines", packer.o)
        self._watch(m, "pieces", cutter.o)
        pushed, popped, chosen = Signal(COUNT), Signal(COUNT), AnyConst(COUNT)
        seen = Signal(lane_beat_layout(SIZES))
        push, pop = packer.i.valid & packer.i.ready, cutter.o.valid & cutter.o.ready
        m.d.sync += [pushed.eq(pushed + push), popped.eq(popped + pop)]
        with m.If(push & (pushed == chosen)):
            m.d.sync += seen.eq(packer.i.payload.as_value() ^ self._fault)
        with m.If(pop & (popped == chosen)):
            m.d.comb += Assert(cutter.o.payload == seen, "order, loss or duplication")
        m.d.comb += [
            Assume(pushed != (1 << COUNT) - 1),
            Assume(packer.i.payload.bytes == SIZES.lane_bytes),
            Assert((pushed - popped)[:COUNT] <= 2 * SIZES.bus_bytes),
            Assert(~packer.empty | (pushed == popped)),
        ]
        return m

    def _watch(self, m: Module, name: str, watched: stream.Interface) -> None:
        m.submodules[name] = contract = StreamContract(watched.payload.shape())
        m.d.comb += [
            contract.watched.payload.eq(watched.payload),
            contract.watched.valid.eq(watched.valid),
            contract.ready.eq(watched.ready),
        ]


def prove(*, fault: bool = False) -> bool:
    spec = Spec(fault=fault)
    return holds(spec, [spec.i.payload.as_value(), spec.i.valid, spec.o.ready], 14)


def test_what_is_packed_can_be_cut():
    assert prove()


def test_the_proof_can_fail():
    assert not prove(fault=True)
