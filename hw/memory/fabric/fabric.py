"""The read fabric: from one stream of requests over the memory ports to the shared return bus."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2, exact_log2

from daedal.hw.config.core import Config
from daedal.hw.interfaces import Client, ReturnBus, read_request_layout
from daedal.hw.isa.elements import ROW_GRANULE
from daedal.hw.lib.ladder import climb, rungs
from daedal.hw.memory.address_map import is_copied, memory_value, port_of, program_value
from daedal.hw.memory.axi import ReadMaster
from daedal.hw.memory.fabric.port_layouts import (
    burst_layout,
    is_numbered,
    memo_layout,
    most_open,
    port_beat_layout,
    port_request_layout,
)
from daedal.hw.memory.fabric.read_port import ReadPort
from daedal.hw.memory.fabric.request_numbers import RequestNumbers
from daedal.hw.queues.skid_buffer import SkidBuffer
from daedal.hw.queues.up_down_counter import up_down
from daedal.hw.reports import FabricReport


class ReadFabric(wiring.Component):
    """Steers each request to the port of its memory address and brings the beats back on one bus.

    Takes one request per cycle and returns one line per cycle in all. Rows of class COPIED go to all ports in turn. A
    request is on its port three cycles after it was taken if the port is idle; a beat is on the return bus two cycles
    after its handshake. A port whose queue is full stops the requests behind one for it, of whatever port. After reset
    ports with groups of requests take none for rows until they have swept their memories (``RowGroups``). An error
    response is recorded; the beat is delivered all the same.

    Members
    -------
    requests : ``In(stream.Signature(read_request_layout(config)))``
        Bursts to read; ``ready`` is a register.
    hold : ``In(1)``
        Begin no bursts for now, see ``ReadPort``.
    returns : ``Out(ReturnBus(config))``
        Beats; those of one request in order, requests in any order. For the vector
        queues the slot counts up from beat to beat, modulo ``vector_beats``.
    read0, read1, … : ``Out(ReadMaster(config))``
        The memory ports.
    older : ``In(1)``
        The side of the launch that is over first.
    report : ``Out(FabricReport(config))``
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "requests": In(stream.Signature(read_request_layout(config))),
                "hold": In(1),
                "returns": Out(ReturnBus(config)),
                **{f"read{n}": Out(ReadMaster(config)) for n in range(config.ports)},
                "older": In(1),
                "report": Out(FabricReport(config)),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self._config
        ports = [ReadPort(config, n) for n in range(config.ports)]
        m.submodules.steer = steer = _Steer(config)
        m.submodules.collect = collect = _Collect(config)
        m.submodules.align = align = _Align(config)
        connect(m, flipped(self.requests), steer.i)
        for number, port in enumerate(ports):
            m.submodules[f"port{number}"] = port
            connect(m, getattr(steer, f"o{number}"), port.requests)
            connect(m, port.bus, flipped(getattr(self, f"read{number}")))
            connect(m, port.beats, getattr(collect, f"i{number}"))
            m.d.comb += [port.hold.eq(self.hold), getattr(collect, f"memo{number}").eq(port.memo)]
        m.d.comb += [
            align.i.eq(collect.o),
            align.valid.eq(collect.valid),
            self.report.beat.eq(align.returns.valid),
            self.report.beat_side.eq(align.returns.beat.side),
        ]
        connect(m, align.returns, flipped(self.returns))
        self._remember(m, steer, collect, align)
        self._account(m, align.burst_end)
        self._report(m, align)
        return m

    def _remember(self, m: Module, steer: "_Steer", collect: "_Collect", align: "_Align") -> None:
        """What a beat is for, in the cycle in which ``align`` has it."""
        if not is_numbered(self._config):
            m.d.sync += align.burst.eq(collect.memo)
            return
        m.submodules.numbers = numbers = RequestNumbers(self._config)
        last = Signal.like(numbers.wanted)
        m.d.sync += last.eq(collect.memo.number)
        m.d.comb += [
            numbers.burst.eq(steer.burst),
            numbers.take.eq(steer.gone),
            steer.number.eq(numbers.number),
            numbers.wanted.eq(collect.memo.number),
            align.burst.eq(numbers.found),
            numbers.free.eq(align.valid & align.i.last),
            numbers.freed.eq(last),
        ]

    def _account(self, m: Module, burst_end: Value) -> None:
        """Count requests that have been taken and whose last beat has not been returned."""
        taken, new, old = self.requests.valid & self.requests.ready, self.requests.payload.tag, self.returns.beat
        for side in range(2):
            open_ = Signal(range(most_open(self._config) + 1), name=f"open{side}")
            up_down(m, open_, up=taken & (new.side == side), down=burst_end & (old.side == side))
            m.d.comb += self.report.idle[side].eq(open_ == 0)

    def _report(self, m: Module, align: "_Align") -> None:
        config = self._config
        report, side, line = self.report, align.burst.tag.side, Signal.like(align.burst.line)
        news = ~report.error | ((side == self.older) & (report.error_side != self.older))
        m.d.comb += report.error_address.eq(program_value(Cat(Const(0, exact_log2(config.bus_bytes)), line), config))
        with m.If(align.valid & align.i.error & news):
            m.d.sync += [report.error.eq(1), report.error_side.eq(side), line.eq(align.burst.line)]


class _Steer(wiring.Component):
    """One request register in front of the ports, and a second one so that ``i.ready`` is a register.

    Members: ``i`` requests, ``o0``… one stream for each port; ``burst``: what is to be remembered of the request, which
    has ``number`` and is ``gone`` to a port in this cycle.
    """

    def __init__(self, config: Config) -> None:
        ports = {f"o{n}": Out(stream.Signature(port_request_layout(config))) for n in range(config.ports)}
        number = {"number": In(ceil_log2(most_open(config)))} if is_numbered(config) else {}
        super().__init__({"i": In(stream.Signature(read_request_layout(config))), **ports, **number,
                          "burst": Out(burst_layout(config)), "gone": Out(1)})  # fmt: skip
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, new = self._config, self.i.payload
        outputs = [getattr(self, f"o{n}") for n in range(config.ports)]
        port, turn = (Signal(exact_log2(config.ports), name=name) for name in ("port", "turn"))
        steered = {"burst": burst_layout(config), "beats": new.beats.shape(), "load": 1,
                   "chosen": len(outputs)}  # fmt: skip
        m.submodules.skid = skid = SkidBuffer(data.StructLayout(steered))
        ahead, held, ready = skid.i.payload, skid.o.payload, Signal(len(outputs))
        request, address = Signal(port_request_layout(config)), Signal(config.address_bits)
        m.d.comb += [
            address.eq(memory_value(new.address, config)),
            skid.i.valid.eq(self.i.valid),
            self.i.ready.eq(skid.i.ready),
            ahead.burst.line.eq(address[exact_log2(config.bus_bytes) :]),
            ahead.burst.tag.eq(new.tag),
            ahead.beats.eq(new.beats),
            ahead.load.eq((new.tag.client == Client.LOAD) | (new.tag.client == Client.LOADER)),
            # One-hot, and 0 with nothing: then none is chosen, whatever else the register has.
            port.eq(Mux(is_copied(address, config) & ~ahead.load, turn, port_of(address, config))),
            ahead.chosen.eq(Cat(self.i.valid & (port == n) for n in range(len(outputs)))),
            self.burst.eq(held.burst),
            self.gone.eq((held.chosen & ready).any()),
            skid.o.ready.eq(self.gone),
            request.line.eq(held.burst.line),
            request.beats.eq(held.beats),
        ]
        m.d.sync += turn.eq(turn + (self.i.valid & self.i.ready))
        for n, output in enumerate(outputs):
            m.d.comb += [output.payload.eq(request), output.valid.eq(held.chosen[n]), ready[n].eq(output.ready)]
        if is_numbered(config):
            m.d.comb += [request.number.eq(self.number), request.load.eq(held.load)]
        else:
            m.d.comb += request.tag.eq(held.burst.tag)
        return m


class _Collect(wiring.Component):
    """Takes a beat from one port per cycle, round-robin.

    The port is chosen a cycle ahead from those that wait, or stays the same, so that no ``ready`` depends on a
    ``valid`` of the same cycle. With beats waiting at some port there is one in every cycle.

    Members: ``i0``… streams from the ports, ``o`` (``port_beat_layout``) in cycles with ``valid``; ``memo0``… from the
    ports, ``memo`` a cycle before ``o``.
    """

    def __init__(self, config: Config) -> None:
        beat, memo = port_beat_layout(config), memo_layout(config)
        inputs = {f"i{n}": In(stream.Signature(beat)) for n in range(config.ports)}
        memos = {f"memo{n}": In(memo) for n in range(config.ports)}
        super().__init__({**inputs, **memos, "o": Out(beat), "memo": Out(memo), "valid": Out(1)})
        self._ports = config.ports

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        inputs = [getattr(self, f"i{n}") for n in range(self._ports)]
        memos = [getattr(self, f"memo{n}") for n in range(self._ports)]
        grant, following = Signal(self._ports, init=1), Signal(self._ports)
        waiting, behind = Signal(self._ports), Signal(self._ports)
        steps = Signal.like(rungs(grant))  # of grant; 0 for the first port
        m.d.comb += [
            waiting.eq(Cat(i.valid for i in inputs) & ~grant),
            behind.eq(waiting & Cat(grant[:n].any() for n in range(self._ports))),
            following.eq(Mux(behind.any(), _first(behind), _first(waiting))),
            Value.cast(self.memo).eq(climb(list(map(Value.cast, memos)), steps)),
        ]
        for number, i in enumerate(inputs):
            m.d.comb += i.ready.eq(grant[number])
        with m.If(waiting.any()):
            m.d.sync += [grant.eq(following), steps.eq(rungs(following))]
        m.d.sync += [
            self.valid.eq((Cat(i.valid for i in inputs) & grant).any()),
            Value.cast(self.o).eq(climb([Value.cast(i.payload) for i in inputs], steps)),
        ]
        return m


class _Align(wiring.Component):
    """Rotates a beat so that element 0 is at byte 0 and says what it is.

    Members: ``i`` of ``burst`` in cycles with ``valid``, ``returns`` one cycle later, with ``burst_end`` if it ends a
    burst.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "i": In(port_beat_layout(config)),
                "burst": In(burst_layout(config)),
                "valid": In(1),
                "returns": Out(ReturnBus(config)),
                "burst_end": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        tag, beat, row_end = self.burst.tag, self.returns.beat, Signal()
        begins = Value.cast(tag.shift)[exact_log2(ROW_GRANULE) :]  # the granule of a line at which the row begins
        slot = Signal(ceil_log2(self._config.vector_beats))
        m.d.comb += [row_end.eq(self.i.last & tag.row_last), slot.eq(tag.slot + self.i.place)]
        is_load = (tag.client == Client.LOAD) | (tag.client == Client.LOADER)
        m.d.sync += [
            self.returns.valid.eq(self.valid),
            self.burst_end.eq(self.valid & self.i.last),
            beat.side.eq(tag.side),
            beat.client.eq(tag.client),
            beat.slot.eq(Mux(is_load, tag.slot, slot)),
            beat.data.eq(self._rotated()),
            beat.own.eq(Cat(begins < len(beat.own) - n for n in range(len(beat.own)))),
            beat.follows.eq(~(tag.row_first & (self.i.place == 0))),
            beat.bytes.eq(Mux(row_end, tag.last_bytes, self._config.bus_bytes)),
            beat.last.eq(row_end),
        ]
        return m

    def _rotated(self) -> Value:
        """The data rotated down by whole granules, in log2(line_granules) steps."""
        value: Value = self.i.data
        for step in range(exact_log2(ROW_GRANULE), len(self.burst.tag.shift)):
            value = Mux(self.burst.tag.shift[step], value.rotate_right(8 << step), value)
        return value


def _first(waiting: Value) -> Value:
    """One-hot choice of the first one among ``waiting``."""
    return Cat(bit & ~waiting[:n].any() if n else bit for n, bit in enumerate(waiting))
