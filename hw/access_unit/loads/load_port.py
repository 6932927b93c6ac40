"""The scalar loads' way to memory."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import LoadReturns, load_request_layout
from daedal.hw.config.core import Config
from daedal.hw.interfaces import Client, ReturnBus, read_request_layout
from daedal.hw.lib.below import below
from daedal.hw.lib.ladder import climb, rungs
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.up_down_counter import up_down

DEPTH = 16
"""Requests that wait: a distributed RAM has no fewer."""

UNSEEN = 3
"""Requests that ``room`` does not know of: this cycle's, and those of two cycles before."""


class LoadPort(wiring.Component):
    """Merges the requests of all load units, earlier ones first, and hands back their beats.

    One request per cycle, also of one unit alone; out after 4 cycles, after 5 if another unit was asked before. The
    unit is chosen a cycle ahead from those that wait, or stays the same, so no ``ready`` depends on anything but
    registers. A unit that has all it wants asks for nothing more, so none is kept waiting for ever.

    Members
    -------
    units : ``In(stream of load_request_layout(config)).array(units)``
    requests : ``Out(stream.Signature(read_request_layout(config)))``
    returns : ``In(ReturnBus(config))``
    loads : ``Out(LoadReturns(config))``
        Beats of client LOAD, one cycle late.
    pending : ``Out(2)``
        For each side: a request waits, at a unit or inside.
    """

    def __init__(self, config: Config, units: int) -> None:
        super().__init__(
            {
                "units": In(stream.Signature(load_request_layout(config))).array(units),
                "requests": Out(stream.Signature(read_request_layout(config))),
                "returns": In(ReturnBus(config)),
                "loads": Out(LoadReturns(config)),
                "pending": Out(2),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        beat = self.returns.beat
        mine = self.returns.valid & (beat.client == Client.LOAD)
        m.d.sync += self.loads.valid.eq(mine)
        with m.If(mine):
            m.d.sync += [self.loads.slot.eq(beat.slot), self.loads.data.eq(beat.data)]
        if self.units:
            layout = load_request_layout(self._config)
            m.submodules.queue = queue = Fifo(layout, depth=DEPTH)
            taken, wish = Signal(), Signal(layout)
            self._take(m, queue, taken, wish)
            self._account(m, queue, taken, wish)
            self._request(m, queue.o)
        return m

    def _take(self, m: Module, queue: Fifo, taken: Signal, wish: data.View) -> None:
        """One request from the unit whose turn it is, into a register and from there into the queue."""
        valid, grant = Signal(len(self.units)), Signal(len(self.units), init=1)
        waiting, following, room = Signal.like(valid), Signal.like(valid), Signal()
        steps = Signal.like(rungs(grant))  # of grant; 0 for the first unit
        m.d.comb += [
            valid.eq(Cat(unit.valid for unit in self.units)),
            waiting.eq(valid & ~grant),
            following.eq(waiting & (~waiting + 1)[: len(waiting)]),
            *(unit.ready.eq(grant[number] & room) for number, unit in enumerate(self.units)),
            queue.i.valid.eq(taken),
            queue.i.payload.eq(wish),
        ]
        m.d.sync += [room.eq(below(queue.level, DEPTH - UNSEEN + 1)), taken.eq((valid & grant).any() & room)]
        with m.If(room & waiting.any()):
            m.d.sync += [grant.eq(following), steps.eq(rungs(following))]
        chosen = climb([Value.cast(unit.payload) for unit in self.units], steps)
        m.d.sync += wish.as_value().eq(chosen)

    def _account(self, m: Module, queue: Fifo, taken: Signal, wish: data.View) -> None:
        """What waits, of each side."""
        for side in range(2):
            inside = Signal(range(DEPTH + 1), name=f"inside{side}")
            comes, goes = taken & (wish.side == side), queue.o.valid & queue.o.ready & (queue.o.payload.side == side)
            up_down(m, inside, up=comes, down=goes)
            at_units = Cat(unit.valid & (unit.payload.side == side) for unit in self.units).any()
            m.d.comb += self.pending[side].eq(at_units | comes | (inside != 0))

    def _request(self, m: Module, wish: stream.Interface) -> None:
        request = self.requests.payload
        m.d.comb += [
            self.requests.valid.eq(wish.valid),
            wish.ready.eq(self.requests.ready),
            request.address.eq(Cat(Const(0, exact_log2(self._config.bus_bytes)), wish.payload.line)),
            request.beats.eq(wish.payload.beats),
            request.tag.client.eq(Client.LOAD),
            request.tag.side.eq(wish.payload.side),
            request.tag.slot.eq(wish.payload.slot.as_value()),
            request.tag.last_bytes.eq(self._config.bus_bytes),
        ]
