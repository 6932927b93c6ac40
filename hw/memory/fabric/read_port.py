"""One memory port of the read fabric."""

from amaranth.hdl import Const, Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.memory.address_map import at_port
from daedal.hw.memory.axi import Burst, ReadMaster, beat_size, is_error
from daedal.hw.memory.fabric.port_layouts import memo_layout, port_beat_layout, port_request_layout
from daedal.hw.memory.fabric.request_queue import RequestQueue
from daedal.hw.queues.fifo import Fifo


class ReadPort(wiring.Component):
    """Queues requests, issues one burst for each, and tells which burst a returning beat is of.

    One request and one beat per cycle; requests wait in a ``RequestQueue``, up to ``port_outstanding`` bursts are in
    flight. In a cycle with ``hold`` no burst is begun; one that waits for its handshake goes on waiting. A request
    is on the bus two cycles after it was taken if nothing is before it; beats are passed on in the same cycle. Bursts
    go to the banks of this port, whichever port's copy of a line was named.

    Parameters
    ----------
    number
        Which port it is, from 0.

    Members
    -------
    requests : ``In(stream.Signature(port_request_layout(config)))``
        Bursts to read.
    hold : ``In(1)``
        Ask for nothing new.
    bus : ``Out(ReadMaster(config))``
        The memory port.
    beats : ``Out(stream.Signature(port_beat_layout(config)))``
        What memory returned.
    memo : ``Out(memo_layout(config))``
        With it, which request it is of.
    """

    def __init__(self, config: Config, number: int) -> None:
        super().__init__(
            {
                "requests": In(stream.Signature(port_request_layout(config))),
                "hold": In(1),
                "bus": Out(ReadMaster(config)),
                "beats": Out(stream.Signature(port_beat_layout(config))),
                "memo": Out(memo_layout(config)),
            }
        )
        self._config, self._number = config, number

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, bus = self._config, self.bus
        m.submodules.waiting = waiting = RequestQueue(config)
        m.submodules.flying = flying = Fifo(memo_layout(config), depth=config.port_outstanding)
        connect(m, flipped(self.requests), waiting.i)
        request, go, asked = waiting.o.payload, Signal(), Signal()
        line = at_port(request.line, Const(self._number, exact_log2(config.ports)), config)
        m.d.sync += asked.eq(bus.arvalid & ~bus.arready)
        m.d.comb += [
            go.eq(flying.i.ready & (~self.hold | asked)),
            bus.araddr.eq((line << exact_log2(config.bus_bytes))[: config.place_bits]),
            bus.arlen.eq(request.beats - 1),
            bus.arsize.eq(beat_size(config)),
            bus.arburst.eq(Burst.INCR),
            bus.arvalid.eq(waiting.o.valid & go),
            waiting.o.ready.eq(bus.arready & go),
            flying.i.valid.eq(waiting.o.valid & bus.arready & go),
            *(flying.i.payload[name].eq(request[name]) for name, _ in memo_layout(config)),
        ]
        self._pass_beats(m, flying)
        return m

    def _pass_beats(self, m: Module, flying: Fifo) -> None:
        """A beat belongs to the oldest burst in flight; its last beat retires that."""
        bus, beats = self.bus, self.beats
        place = Signal(range(MAX_BURST))
        taken = beats.valid & beats.ready
        m.d.comb += [
            beats.payload.data.eq(bus.rdata),
            beats.payload.error.eq(is_error(bus.rresp)),
            beats.payload.last.eq(bus.rlast),
            beats.payload.place.eq(place),
            self.memo.eq(flying.o.payload),
            beats.valid.eq(bus.rvalid & flying.o.valid),
            bus.rready.eq(beats.ready & flying.o.valid),
            flying.o.ready.eq(taken & bus.rlast),
        ]
        with m.If(taken):
            m.d.sync += place.eq(place + 1)
            with m.If(bus.rlast):
                m.d.sync += place.eq(0)
