"""One memory port of the read fabric."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config import MAX_BURST, Config
from daedal.hw.interfaces import read_request_layout, tag_layout
from daedal.hw.memory.axi import Burst, ReadMaster, beat_size
from daedal.hw.memory.request_queue import RequestQueue
from daedal.hw.queues.queue import Queue


def burst_layout(config: Config) -> data.StructLayout:
    """What is remembered of a burst in flight: its address and tag."""
    return data.StructLayout({"address": config.address_bits, "tag": tag_layout(config)})


def port_beat_layout(config: Config) -> data.StructLayout:
    """A beat as it comes from memory, ``number`` in its burst, with what is remembered of the burst."""
    return data.StructLayout(
        {
            "data": 8 * config.bus_bytes,
            "response": 2,
            "last": 1,
            "number": range(MAX_BURST),
            "address": config.address_bits,
            "tag": tag_layout(config),
        }
    )


class ReadPort(wiring.Component):
    """Queues requests, issues one burst for each, and tells which burst a returning beat is of.

    One request and one beat per cycle; requests wait in a ``RequestQueue``, up to ``port_outstanding`` bursts are in
    flight. In a cycle with ``hold`` no burst is begun; one that waits for its handshake goes on waiting. A request
    is on the bus two cycles after it was taken if nothing is before it; beats are passed on
    in the same cycle.

    Members
    -------
    requests : ``In(stream.Signature(read_request_layout(config)))``
        Bursts to read, at memory addresses; the mapping class above them comes back with the beats.
    hold : ``In(1)``
        Ask for nothing new.
    bus : ``Out(ReadMaster(config))``
        The memory port.
    beats : ``Out(stream.Signature(port_beat_layout(config)))``
        What memory returned.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "requests": In(stream.Signature(read_request_layout(config))),
                "hold": In(1),
                "bus": Out(ReadMaster(config)),
                "beats": Out(stream.Signature(port_beat_layout(config))),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, bus = self._config, self.bus
        m.submodules.waiting = waiting = RequestQueue(config)
        m.submodules.flying = flying = Queue(burst_layout(config), depth=config.port_outstanding)
        connect(m, flipped(self.requests), waiting.i)
        request, go, asked = waiting.o.payload, Signal(), Signal()
        m.d.sync += asked.eq(bus.arvalid & ~bus.arready)
        m.d.comb += [
            go.eq(flying.i.ready & (~self.hold | asked)),
            bus.araddr.eq(request.address[: config.place_bits]),
            bus.arlen.eq(request.beats - 1),
            bus.arsize.eq(beat_size(config)),
            bus.arburst.eq(Burst.INCR),
            bus.arvalid.eq(waiting.o.valid & go),
            waiting.o.ready.eq(bus.arready & go),
            flying.i.valid.eq(waiting.o.valid & bus.arready & go),
            flying.i.payload.address.eq(request.address),
            flying.i.payload.tag.eq(request.tag),
        ]
        self._pass_beats(m, flying)
        return m

    def _pass_beats(self, m: Module, flying: Queue) -> None:
        """A beat belongs to the oldest burst in flight; its last beat retires that."""
        bus, beats = self.bus, self.beats
        number = Signal(range(MAX_BURST))
        taken = beats.valid & beats.ready
        m.d.comb += [
            beats.payload.data.eq(bus.rdata),
            beats.payload.response.eq(bus.rresp),
            beats.payload.last.eq(bus.rlast),
            beats.payload.number.eq(number),
            beats.payload.address.eq(flying.o.payload.address),
            beats.payload.tag.eq(flying.o.payload.tag),
            beats.valid.eq(bus.rvalid & flying.o.valid),
            bus.rready.eq(beats.ready & flying.o.valid),
            flying.o.ready.eq(taken & bus.rlast),
        ]
        with m.If(taken):
            m.d.sync += number.eq(number + 1)
            with m.If(bus.rlast):
                m.d.sync += number.eq(0)
