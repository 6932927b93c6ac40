"""A reorder queue: whatever the order of returning beats, slots drain in order, with their own beats."""

import pytest
from amaranth import Module, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.interfaces import Client, ReturnBus, beat_layout, beat_stream
from daedal.hw.queues.reorder_buffer import ReorderBuffer
from tests.formal.narrow import narrow
from tests.formal.sat.prover import holds
from tests.formal.streams import StreamContract

SLOTS = 4
COUNT = 4
PLACE_BITS = 2
CYCLES = SLOTS + 12


CONFIG = narrow(vector_beats=SLOTS, bus_bytes=1, lanes=1)


class Spec(wiring.Component):
    """Beats return for reserved slots only, once each, in any order; the n-th slot's beat is the n-th out."""

    def __init__(self, *, fault: bool = False, hurry: int = 0) -> None:
        self._config, self._fault, self._hurry = CONFIG, fault, hurry
        super().__init__(
            {
                "want": In(1),
                "beats": In(range(SLOTS + 1)),
                "returns": In(ReturnBus(self._config)),
                "o": Out(beat_stream(self._config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.dut = dut = ReorderBuffer(self._config, Client.VECTOR1)
        m.submodules.contract = contract = StreamContract(beat_layout(self._config))
        connect(m, flipped(self.returns), dut.returns)
        connect(m, dut.o, flipped(self.o))
        m.d.comb += [
            contract.watched.payload.eq(dut.o.payload),
            contract.watched.valid.eq(dut.o.valid),
            contract.ready.eq(self.o.ready),
            dut.beats.eq(self.beats),
            dut.reserve.eq(self.want & dut.fits & dut.swept),
            Assume(self.beats != 0),
        ]
        self._follow(m, dut)
        return m

    def _follow(self, m: Module, dut: ReorderBuffer) -> None:
        reserved, popped, chosen = Signal(COUNT + 1), Signal(COUNT + 1), AnyConst(COUNT)
        owed, beat = Signal(SLOTS), self.returns.beat  # owed: reserved slots whose beat has not returned
        mine = self.returns.valid & (beat.client == Client.VECTOR1)
        newly = Signal(SLOTS)
        m.d.comb += newly.eq(Cat(dut.reserve & ((n - dut.slot)[:PLACE_BITS] < self.beats) for n in range(SLOTS)))
        clear = Signal(SLOTS)
        m.d.comb += [
            clear.eq(Cat(mine & (beat.slot == n) for n in range(SLOTS))),
            Assume(~mine | (clear & owed).any()),
            Assume(~mine | (beat.own.all() & (beat.bytes == 1))),  # rows that begin at a line
            Assume(reserved < (1 << COUNT) - SLOTS),
            Assert((newly & owed) == 0, "a slot reserved twice"),
            Assert(dut.slot == reserved[:PLACE_BITS]),
            Assert(dut.empty == (reserved == popped)),
            Assert((reserved - popped)[: COUNT + 1] <= SLOTS + 2),
        ]
        m.d.sync += [owed.eq((owed | newly) & ~clear)]
        with m.If(dut.reserve):
            m.d.sync += reserved.eq(reserved + self.beats)
        seen, returned = Signal(beat_layout(self._config).size), Signal()
        with m.If(mine & (beat.slot == chosen[:PLACE_BITS]) & (reserved > chosen) & ~returned):
            m.d.sync += [seen.eq(Cat(beat.data, beat.bytes, beat.last) ^ self._fault), returned.eq(1)]
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += popped.eq(popped + 1)
            with m.If(popped == chosen):
                m.d.comb += Assert(returned & (dut.o.payload.as_value() == seen), "order, loss or duplication")
        # What returned long enough ago can be popped as soon as it is its turn: one per cycle, whatever the occupancy.
        since = Signal(2)
        m.d.sync += since.eq(Cat(returned, since))
        with m.If(since[-1 - self._hurry] & (popped == chosen)):
            m.d.comb += Assert(dut.o.valid, "a bubble")
        # A slot is free again when its beat has left the memory; two more beats can be behind that.
        m.d.comb += Assert(~dut.fits | ((reserved - popped)[: COUNT + 1] + self.beats <= SLOTS + 2))


def prove(*, cycles: int, fault: bool = False, hurry: int = 0) -> bool:
    """``hurry``: by how many cycles too early a beat is expected, which is a mistake."""
    spec = Spec(fault=fault, hurry=hurry)
    ports = [spec.want, spec.beats, spec.returns.valid, spec.returns.beat.as_value(), spec.o.ready]
    return holds(spec, ports, cycles)


def test_slots_drain_in_order():
    """Long enough for the sweep and two rounds."""
    assert prove(cycles=CYCLES)


@pytest.mark.parametrize("mistake", [{"fault": True}, {"hurry": 1}])
def test_the_proof_can_fail(mistake):
    assert not prove(cycles=CYCLES, **mistake)
