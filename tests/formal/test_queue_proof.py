"""Queue: for every input, order is kept, nothing is lost, levels add up, nothing gets stuck."""

import pytest
from amaranth import Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.queues import queue
from tests.formal.prover import holds, within
from tests.formal.streams import StreamContract

DATA = 1
COUNT = 4


class Spec(wiring.Component):
    """The n-th payload in is the n-th out, for an arbitrary n. ``fault`` plants a mistake."""

    i: In(stream.Signature(DATA))
    o: Out(stream.Signature(DATA))

    def __init__(self, depth: int, *, fault: bool = False) -> None:
        super().__init__()
        self._depth, self._fault = depth, fault

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.dut = dut = queue.Queue(DATA, depth=self._depth)
        m.submodules.contract = contract = StreamContract(DATA)
        connect(m, flipped(self.i), dut.i)
        connect(m, dut.o, flipped(self.o))
        m.d.comb += [
            contract.watched.payload.eq(dut.o.payload),
            contract.watched.valid.eq(dut.o.valid),
            contract.ready.eq(self.o.ready),
        ]
        pushed, popped, chosen, seen = Signal(COUNT), Signal(COUNT), AnyConst(COUNT), Signal(DATA)
        push, pop = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        m.d.sync += [pushed.eq(pushed + push), popped.eq(popped + pop)]
        with m.If(push & (pushed == chosen)):
            m.d.sync += seen.eq(dut.i.payload ^ self._fault)
        with m.If(pop & (popped == chosen)):
            m.d.comb += Assert(dut.o.payload == seen, "order, loss or duplication")
        m.d.comb += [
            Assume(pushed != (1 << COUNT) - 1),
            Assert(dut.level == (pushed - popped)[:COUNT]),
            Assert(dut.i.ready == (dut.level != self._depth)),
            Assert(dut.mark <= self._depth),
        ]
        within(m, dut.level != 0, dut.o.valid, 2)
        return m


def prove(depth: int, *, cycles: int = 9, fault: bool = False) -> bool:
    spec = Spec(depth, fault=fault)
    return holds(spec, [spec.i.payload, spec.i.valid, spec.o.ready], cycles)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_distributed_queue(depth):
    assert prove(depth)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [3, 4])
def test_block_queue(depth, monkeypatch):
    monkeypatch.setattr(queue, "DISTRIBUTED_DEPTH", 0)
    assert prove(depth)


@pytest.mark.slow
def test_the_proof_can_fail():
    assert not prove(3, fault=True)
