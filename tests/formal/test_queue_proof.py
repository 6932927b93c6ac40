"""Queue and skid: for every input order is kept, nothing is lost or doubled, levels add up; one in and out per cycle.

This is the queue of tokens, scalars, store addresses and store data, and of every buffer between units: they differ in
what they carry and in their depth, which chooses between two kinds of storage.
"""

import pytest
from amaranth import Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.queues import fifo
from daedal.hw.queues.skid_buffer import SkidBuffer
from tests.formal.sat.prover import holds
from tests.formal.streams import StreamContract

DATA = 1
COUNT = 4


class Spec(wiring.Component):
    """The n-th payload in is the n-th out, for an arbitrary n. ``fault`` plants a mistake.

    ``skid``: of a ``SkidBuffer``, a queue of two that does not count.
    """

    i: In(stream.Signature(DATA))
    o: Out(stream.Signature(DATA))

    def __init__(self, depth: int, *, latency: int, fault: bool = False, skid: bool = False) -> None:
        super().__init__()
        self._depth, self._latency, self._fault, self._skid = depth, latency, fault, skid

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.dut = dut = SkidBuffer(DATA) if self._skid else fifo.Fifo(DATA, depth=self._depth)
        m.submodules.contract = contract = StreamContract(DATA)
        connect(m, flipped(self.i), dut.i)
        connect(m, dut.o, flipped(self.o))
        m.d.comb += [
            contract.watched.payload.eq(dut.o.payload),
            contract.watched.valid.eq(dut.o.valid),
            contract.ready.eq(self.o.ready),
        ]
        pushed, popped, chosen, seen = Signal(COUNT), Signal(COUNT), AnyConst(COUNT), Signal(DATA)
        level = Signal(COUNT)
        push, pop = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        m.d.sync += [pushed.eq(pushed + push), popped.eq(popped + pop)]
        with m.If(push & (pushed == chosen)):
            m.d.sync += seen.eq(dut.i.payload ^ self._fault)
        with m.If(pop & (popped == chosen)):
            m.d.comb += Assert(dut.o.payload == seen, "order, loss or duplication")
        m.d.comb += [
            Assume(pushed != (1 << COUNT) - 1),
            level.eq(pushed - popped),
            Assert(dut.i.ready == (level != self._depth)),
        ]
        if not self._skid:
            m.d.comb += [Assert(dut.level == level), Assert(dut.mark <= self._depth)]
        # Whatever the occupancy: there is room unless all places are taken, and what is old enough can be popped in
        # every cycle. Together: one push and one pop per cycle.
        old = [pushed]
        for age in range(self._latency):
            old.append(Signal(COUNT, name=f"pushed{age}"))
            m.d.sync += old[-1].eq(old[-2])
        ready = Signal(COUNT)
        m.d.comb += ready.eq(old[-1] - popped)  # more than the depth: it has been popped already
        with m.If((ready != 0) & (ready <= self._depth)):
            m.d.comb += Assert(dut.o.valid, "a bubble")
        return m


def prove(depth: int, *, cycles: int = 10, latency: int = 1, fault: bool = False, skid: bool = False) -> bool:
    """``latency``: cycles after the one in which an entry was pushed, before the one in which it can be popped."""
    spec = Spec(depth, latency=latency, fault=fault, skid=skid)
    return holds(spec, [spec.i.payload, spec.i.valid, spec.o.ready], cycles)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_distributed_queue(depth):
    assert prove(depth, latency=min(1, depth - 2))


@pytest.mark.parametrize("depth", [3, 4])
def test_block_queue(depth, monkeypatch):
    monkeypatch.setattr(fifo, "DISTRIBUTED_DEPTH", 0)
    assert prove(depth, latency=2)


def test_skid():
    assert prove(2, latency=0, skid=True)


def test_the_proof_can_fail():
    assert not prove(3, fault=True)


def test_the_proof_of_the_rate_can_fail():
    assert not prove(3, latency=0)
