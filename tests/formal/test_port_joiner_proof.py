"""Joined ports: each port's bursts come out in order under its identifier, each beat goes to its port; nothing is lost,
nothing stays behind, and ports take turns.

That what is offered stays until it is taken is in ``test_stream_contract.py``.
"""

import pytest
from amaranth import Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Elaboratable, Value

from daedal.hw.memory.port_joiner import PortJoiner
from tests.formal.narrow import TINY
from tests.formal.sat.prover import Result, examine
from tests.formal.streams import inputs

COUNT = 3
DEPTH = 9


class Order(Elaboratable):
    """The n-th burst of an arbitrary port is the n-th with its number, with all that is said of it, and so for beats. A
    burst waits for one of another port at most. What is alone in the unit is offered two cycles later. ``fault`` plants
    a mistake.
    """

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
        burst = Cat(mine.araddr ^ (self._fault == "address"), mine.arlen ^ (self._fault == "length"))
        held = self._in_order(m, asked, burst, sent, Cat(bus.araddr, bus.arlen), self.bursts, most=2)
        self._gets_out(m, held, bus.arvalid)
        came, given = bus.rvalid & bus.rready & (bus.rid == port), mine.rvalid & mine.rready
        beats = [Cat(each.rdata, each.rresp, each.rlast) for each in (bus, mine)]
        held = self._in_order(m, came, beats[0], given, beats[1] ^ (self._fault == "beat"), self.beats, most=3)
        other = ports[~port]
        others = Signal(3)
        m.d.sync += others.eq(others + (bus.rvalid & bus.rready & (bus.rid != port)) - (other.rvalid & other.rready))
        self._gets_out(m, held & (others == 0), mine.rvalid & (self._fault != "offer"))
        self._takes_turns(m, mine.arvalid, asked & (self._fault != "turn"), other.arvalid & other.arready)
        return m

    def _gets_out(self, m: Module, is_held: Value, is_offered: Value) -> None:
        """What has been held for two cycles is offered."""
        before = Signal()
        m.d.sync += before.eq(is_held)
        m.d.comb += Assert(~(is_held & before) | is_offered)

    def _takes_turns(self, m: Module, asks: Value, is_taken: Value, other: Value) -> None:
        """While a port asks, the other one is taken once at most."""
        passed = Signal()
        with m.If(~asks | is_taken):
            m.d.sync += passed.eq(0)
        with m.Elif(other):
            m.d.sync += passed.eq(1)
            m.d.comb += Assert(~passed)

    def _in_order(
        self, m: Module, put: Value, into: Value, take: Value, out: Value, twice: Signal, *, most: int
    ) -> Value:
        """``take`` is never ahead of ``put``, nor by more than ``most`` behind it: what fits between. Whether it is
        behind.
        """
        before, after, chosen = Signal(COUNT), Signal(COUNT), AnyConst(COUNT)
        seen = Signal(len(Value.cast(into)))
        m.d.sync += [before.eq(before + put), after.eq(after + take)]
        m.d.comb += [Assume(before != (1 << COUNT) - 1), twice.eq(after == 2)]
        with m.If(put & (before == chosen)):
            m.d.sync += seen.eq(into)
        m.d.comb += Assert((before - after)[:COUNT] <= most)
        with m.If(take & (after == chosen)):
            m.d.comb += Assert(out == seen)
        return before != after


def prove(fault: str = "") -> Result:
    spec = Order(fault)
    return examine(spec, spec.ports, DEPTH, goals=["bursts", "beats"])


def test_ports_keep_their_order():
    assert prove()


@pytest.mark.parametrize("fault", ["port", "address", "length", "beat", "offer", "turn"])
def test_the_proof_can_fail(fault):
    assert not prove(fault).holds
