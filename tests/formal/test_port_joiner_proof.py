"""Joined ports: each port's bursts come out in order under its identifier, each beat goes to its port; nothing is lost.

That what is offered stays until it is taken is in ``test_stream_contract.py``.
"""

import pytest
from amaranth import Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Elaboratable, Value

from daedal.hw.memory.port_joiner import PortJoiner
from tests.formal.narrow import TINY
from tests.formal.sat.prover import Result, examine
from tests.formal.streams import inputs

COUNT = 3
DEPTH = 9


class Order(Elaboratable):
    """The n-th burst of an arbitrary port is the n-th with its number, and so for beats; ``fault`` plants a mistake."""

    def __init__(self, fault: str = "") -> None:
        self.unit, self._fault = PortJoiner(TINY), fault
        self.bursts, self.beats = Signal(name="bursts"), Signal(name="beats")
        self.ports = [*inputs(self.unit), self.bursts, self.beats]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = unit = self.unit
        m.d.comb += Assume(~(unit.read0.rready & unit.read1.rready))
        ports = Array([unit.read0, unit.read1])
        port, bus = AnyConst(1), unit.bus
        mine = ports[port ^ (self._fault == "port")]
        asked, sent = mine.arvalid & mine.arready, bus.arvalid & bus.arready & (bus.arid == port)
        self._in_order(m, asked, mine.araddr ^ (self._fault == "address"), sent, bus.araddr, self.bursts, most=2)
        came, given = bus.rvalid & bus.rready & (bus.rid == port), mine.rvalid & mine.rready
        self._in_order(m, came, bus.rdata, given, mine.rdata, self.beats, most=3)
        return m

    def _in_order(
        self, m: Module, put: Value, into: Value, take: Value, out: Value, twice: Signal, *, most: int
    ) -> None:
        """``take`` is never ahead of ``put``, nor by more than ``most`` behind it: what fits between."""
        before, after, chosen = Signal(COUNT), Signal(COUNT), AnyConst(COUNT)
        seen = Signal(len(Value.cast(into)))
        m.d.sync += [before.eq(before + put), after.eq(after + take)]
        m.d.comb += [Assume(before != (1 << COUNT) - 1), twice.eq(after == 2)]
        with m.If(put & (before == chosen)):
            m.d.sync += seen.eq(into)
        m.d.comb += Assert((before - after)[:COUNT] <= most)
        with m.If(take & (after == chosen)):
            m.d.comb += Assert(out == seen)


def prove(fault: str = "") -> Result:
    spec = Order(fault)
    return examine(spec, spec.ports, DEPTH, goals=["bursts", "beats"])


def test_ports_keep_their_order():
    assert prove()


@pytest.mark.parametrize("fault", ["port", "address"])
def test_the_proof_can_fail(fault):
    assert not prove(fault).holds
