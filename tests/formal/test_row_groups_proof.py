"""RowGroups: for every input, nothing is lost or doubled, payloads with the same key keep their order, no bubbles."""

import pytest
from amaranth import Cat, Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tests.formal.sat.prover import holds
from tests.formal.streams import StreamContract
from tests.unit.memory.grouped_payloads import GroupedPayloads

SHAPE = data.StructLayout({"key": 1, "data": 1})

COUNT = 4


def sweep_cycles(depth: int) -> int:
    """Cycles after a reset in which nothing is taken."""
    return 1 << (depth - 1).bit_length()


class Spec(wiring.Component):
    """The n-th payload in with some key is the n-th out with that key, for an arbitrary n and key.

    What waits for two cycles can be popped in every cycle. ``fault`` plants a mistake: in ``data``, in the ``rate``.
    """

    i: In(stream.Signature(SHAPE))
    o: Out(stream.Signature(SHAPE))

    def __init__(self, depth: int, *, fault: str = "") -> None:
        super().__init__()
        self._depth, self._fault = depth, fault

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.dut = dut = GroupedPayloads(SHAPE, key="key", depth=self._depth, keys=2)
        m.submodules.contract = contract = StreamContract(SHAPE)
        connect(m, flipped(self.i), dut.i)
        connect(m, dut.o, flipped(self.o))
        m.d.comb += [
            contract.watched.payload.eq(dut.o.payload),
            contract.watched.valid.eq(dut.o.valid),
            contract.ready.eq(self.o.ready),
        ]
        pushed, popped, of_key, out_of_key = (Signal(COUNT, name=n) for n in ("pushed", "popped", "in_key", "out_key"))
        chosen, key, seen = AnyConst(COUNT), AnyConst(1), Signal(SHAPE.size)
        push, pop = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        is_in, is_out = push & (dut.i.payload.key == key), pop & (dut.o.payload.key == key)
        m.d.sync += [
            pushed.eq(pushed + push), popped.eq(popped + pop), of_key.eq(of_key + is_in),
            out_of_key.eq(out_of_key + is_out),
        ]  # fmt: skip
        with m.If(is_in & (of_key == chosen)):
            m.d.sync += seen.eq(dut.i.payload.as_value() ^ (2 if self._fault == "data" else 0))
        with m.If(is_out):
            m.d.comb += Assert(of_key != out_of_key, "more out than in")
        with m.If(is_out & (out_of_key == chosen)):
            m.d.comb += Assert(dut.o.payload.as_value() == seen, "order, loss or duplication")
        swept = Signal(sweep_cycles(self._depth))
        m.d.sync += swept.eq(Cat(1, swept))
        waiting, before = (pushed - popped)[:COUNT], Signal(COUNT)
        m.d.sync += before.eq(pushed)
        m.d.comb += [
            Assume(pushed != (1 << COUNT) - 1),
            Assert(dut.i.ready == (swept[-1] & (waiting != self._depth))),
        ]
        old, late = (before - popped)[:COUNT], Signal()  # more than the depth: what came last has been popped already
        m.d.sync += late.eq((old != 0) & (old <= self._depth) & ~(pop & (old == 1)))
        with m.If((waiting != 0) if self._fault == "rate" else late):
            m.d.comb += Assert(dut.o.valid, "a bubble")
        return m


def prove(depth: int, *, cycles: int = 10, fault: str = "") -> bool:
    spec = Spec(depth, fault=fault)
    return holds(spec, [spec.i.payload.as_value(), spec.i.valid, spec.o.ready], cycles + sweep_cycles(depth))


def test_two_places():
    assert prove(2)


def test_three_places():
    assert prove(3)


@pytest.mark.full
def test_four_places():
    assert prove(4)


def test_the_proof_can_fail():
    assert not prove(3, fault="data")


def test_the_proof_of_the_rate_can_fail():
    assert not prove(3, fault="rate")
