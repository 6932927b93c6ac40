"""The read fabric: from one stream of requests over the memory ports to the shared return bus."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from daedal.hw.config import Config
from daedal.hw.interfaces import Client, ReturnBus, read_request_layout
from daedal.hw.memory.address_map import memory_value, port_of, program_value
from daedal.hw.memory.axi import ReadMaster, is_error
from daedal.hw.memory.read_port import ReadPort, port_beat_layout
from daedal.hw.memory.request_queue import most_waiting


class ReadFabric(wiring.Component):
    """Steers each request to the port of its memory address and brings the beats back on one bus.

    Takes one request per cycle and returns one line per cycle in all. A request is on its port three cycles
    after it was taken if the port is idle; a beat is on the return bus two cycles after its handshake. A port
    whose queue is full stops the requests behind one for it, of whatever port. An error response is recorded;
    the beat is delivered all the same.

    Members
    -------
    requests : ``In(stream.Signature(read_request_layout(config)))``
        Bursts to read.
    hold : ``In(1)``
        Begin no bursts for now, see ``ReadPort``.
    returns : ``Out(ReturnBus(config))``
        Beats; those of one request in order, requests in any order. For the vector
        queues the slot counts up from beat to beat, modulo ``vector_beats``.
    read0, read1, … : ``Out(ReadMaster(config))``
        The memory ports.
    idle : ``Out(2)``
        For each side: nothing of that launch is queued, in flight or about to be returned.
    older : ``In(1)``
        The side of the launch that is over first.
    error, error_side : ``Out(1)``, error_address : ``Out(address_bits)``
        An error response has come since reset, the first one to the burst at this address, of the launch of that side;
        one of the older launch takes the place of one of the younger.
    beat : ``Out(1)``
        A line is returned in this cycle.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "requests": In(stream.Signature(read_request_layout(config))),
                "hold": In(1),
                "returns": Out(ReturnBus(config)),
                **{f"read{n}": Out(ReadMaster(config)) for n in range(config.ports)},
                "idle": Out(2),
                "older": In(1),
                "error": Out(1),
                "error_side": Out(1),
                "error_address": Out(config.address_bits),
                "beat": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self._config
        ports = [ReadPort(config) for _ in range(config.ports)]
        m.submodules.steer = steer = _Steer(config)
        m.submodules.collect = collect = _Collect(config)
        m.submodules.align = align = _Align(config)
        connect(m, flipped(self.requests), steer.i)
        for number, port in enumerate(ports):
            m.submodules[f"port{number}"] = port
            connect(m, getattr(steer, f"o{number}"), port.requests)
            connect(m, port.bus, flipped(getattr(self, f"read{number}")))
            connect(m, port.beats, getattr(collect, f"i{number}"))
            m.d.comb += port.hold.eq(self.hold)
        m.d.comb += [
            align.i.eq(collect.o),
            align.valid.eq(collect.valid),
            self.beat.eq(align.returns.valid),
        ]
        connect(m, align.returns, flipped(self.returns))
        self._account(m, align.burst_end)
        side = align.i.tag.side
        news = ~self.error | ((side == self.older) & (self.error_side != self.older))
        failed = Signal(config.address_bits)
        m.d.comb += self.error_address.eq(program_value(failed, config))
        with m.If(align.valid & is_error(align.i.response) & news):
            m.d.sync += [self.error.eq(1), self.error_side.eq(side), failed.eq(align.i.address)]
        return m

    def _account(self, m: Module, burst_end: Value) -> None:
        """Count requests that have been taken and whose last beat has not been returned."""
        config = self._config
        most = config.ports * (most_waiting(config) + config.port_outstanding) + 4
        taken, new, old = self.requests.valid & self.requests.ready, self.requests.payload.tag, self.returns.beat
        for side in range(2):
            open_ = Signal(range(most + 1), name=f"open{side}")
            m.d.sync += open_.eq(open_ + (taken & (new.side == side)) - (burst_end & (old.side == side)))
            m.d.comb += self.idle[side].eq(open_ == 0)


class _Steer(wiring.Component):
    """One request register in front of the ports, which have memory addresses below the mapping class.

    Members: ``i`` requests, ``o0``… one stream for each port.
    """

    def __init__(self, config: Config) -> None:
        requests = stream.Signature(read_request_layout(config))
        super().__init__({"i": In(requests), **{f"o{n}": Out(requests) for n in range(config.ports)}})
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        outputs = [getattr(self, f"o{n}") for n in range(self._config.ports)]
        request = Signal.like(self.i.payload)
        chosen, ready = Signal(len(outputs)), Signal(len(outputs))  # one-hot; nothing held: 0
        m.d.comb += self.i.ready.eq(~chosen.any() | (chosen & ready).any())
        for number, output in enumerate(outputs):
            m.d.comb += [output.payload.eq(request), output.valid.eq(chosen[number]), ready[number].eq(output.ready)]
        with m.If(self.i.ready):
            address = Signal(self._config.address_bits)
            port = port_of(address, self._config)
            m.d.comb += address.eq(memory_value(self.i.payload.address, self._config))
            m.d.sync += [request.eq(self.i.payload), request.address.eq(address)]
            m.d.sync += [chosen[n].eq(self.i.valid & (port == n)) for n in range(len(outputs))]
        return m


class _Collect(wiring.Component):
    """Takes a beat from one port per cycle, round-robin.

    The port is chosen a cycle ahead from those that wait, or stays the same, so that no ``ready`` depends on a
    ``valid`` of the same cycle. With beats waiting at some port there is one in every cycle.

    Members: ``i0``… streams from the ports, ``o`` (``port_beat_layout``) in cycles with ``valid``.
    """

    def __init__(self, config: Config) -> None:
        layout = port_beat_layout(config)
        inputs = {f"i{n}": In(stream.Signature(layout)) for n in range(config.ports)}
        super().__init__({**inputs, "o": Out(layout), "valid": Out(1)})
        self._ports = config.ports

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        inputs = [getattr(self, f"i{n}") for n in range(self._ports)]
        grant = Signal(self._ports, init=1)
        waiting = Signal(self._ports)
        m.d.comb += waiting.eq(Cat(i.valid for i in inputs) & ~grant)
        for number, i in enumerate(inputs):
            m.d.comb += i.ready.eq(grant[number])
            with m.If(grant[number] & waiting.any()):
                m.d.sync += grant.eq(_next_in_turn(waiting, number))
        selected = [Mux(grant[n], Value.cast(i.payload), 0) for n, i in enumerate(inputs)]
        m.d.sync += [
            self.valid.eq((Cat(i.valid for i in inputs) & grant).any()),
            Value.cast(self.o).eq(_or_tree(selected)),
        ]
        return m


class _Align(wiring.Component):
    """Rotates a beat so that element 0 is at byte 0 and says what it is.

    Members: ``i`` in cycles with ``valid``, ``returns`` one cycle later, with ``burst_end`` if it ends a burst.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "i": In(port_beat_layout(config)),
                "valid": In(1),
                "returns": Out(ReturnBus(config)),
                "burst_end": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        tag, beat, row_end = self.i.tag, self.returns.beat, Signal()
        slot = Signal(ceil_log2(self._config.vector_beats))
        m.d.comb += [row_end.eq(self.i.last & tag.row_last), slot.eq(tag.slot + self.i.number)]
        is_load = (tag.client == Client.LOAD) | (tag.client == Client.LOADER)
        m.d.sync += [
            self.returns.valid.eq(self.valid),
            self.burst_end.eq(self.valid & self.i.last),
            beat.side.eq(tag.side),
            beat.client.eq(tag.client),
            beat.slot.eq(Mux(is_load, tag.slot, slot)),
            beat.data.eq(self._rotated()),
            beat.bytes.eq(Mux(row_end, tag.last_bytes, self._config.bus_bytes)),
            beat.last.eq(row_end),
        ]
        return m

    def _rotated(self) -> Value:
        """The data rotated down by whole elements, in log2(line_elements) steps."""
        value: Value = self.i.data
        for step in range(2, len(self.i.tag.shift)):
            value = Mux(self.i.tag.shift[step], value.rotate_right(8 << step), value)
        return value


def _next_in_turn(waiting: Value, after: int) -> Value:
    """One-hot choice among ``waiting``: the first one after position ``after``, cyclically."""
    turned = waiting.rotate_right(after + 1)
    return (turned & (-turned)[: len(waiting)]).rotate_left(after + 1)


def _or_tree(values: list[Value]) -> Value:
    """OR of all values, as a balanced tree."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return _or_tree(values[:half]) | _or_tree(values[half:])
