"""The requests that wait at a port."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2, exact_log2

from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM, DISTRIBUTED_RAM
from daedal.hw.memory.address_map import row_of
from daedal.hw.memory.fabric.port_layouts import LOADS, is_numbered, port_request_layout
from daedal.hw.memory.fabric.row_groups import RowGroups
from daedal.hw.queues.fifo import DISTRIBUTED_DEPTH, Fifo
from daedal.hw.queues.ring_pointers import RingPointers
from daedal.hw.queues.up_down_counter import up_down


class RequestQueue(wiring.Component):
    """Requests of one port, in the order in which memory is best asked for them.

    With ``row_groups`` of 1 that is the order in which they came. Otherwise requests to one DRAM row are put together,
    see ``RowGroups``, which saves the time that a bank takes to open the row again; and loads, for which levels and
    loader wait, go before rows, of which many are on their way. Rows do not wait for ever: loads stop once the access
    unit can fetch no more rows, and are finite in any case. Both are in one memory.

    One request in and one out per cycle; what comes into an empty queue is offered two cycles later (without groups as
    with ``Fifo``).

    Members
    -------
    i, o : streams of ``port_request_layout(config)``
        Requests. What is offered does not change until it is taken.
    """

    def __init__(self, config: Config) -> None:
        requests = stream.Signature(port_request_layout(config))
        super().__init__({"i": In(requests), "o": Out(requests)})
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m, config = Module(), self._config
        if not is_numbered(config):
            m.submodules.queue = queue = Fifo(port_request_layout(config), depth=config.port_requests)
            connect(m, flipped(self.i), queue.i)
            connect(m, queue.o, flipped(self.o))
            return m
        m.submodules.loads = loads = _Loads()
        m.submodules.rows = rows = RowGroups(depth=config.port_requests, keys=config.row_groups)
        is_load, push, pop = self.i.payload.load, Signal(), Signal()
        fetch, loaded = Signal(), Signal()  # the next one is fetched; what is offered is a load
        m.d.comb += [
            self.i.ready.eq(Mux(is_load, loads.room, rows.room)),
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            fetch.eq(~self.o.valid | self.o.ready),
            loads.put.eq(push & is_load),
            rows.put.eq(push & ~is_load),
            rows.key.eq(self._key()),
            loads.take.eq(fetch),
            rows.take.eq(fetch & ~loads.available),
            loads.free.eq(pop & loaded),
            rows.free.eq(pop & ~loaded),
        ]
        with m.If(fetch):
            m.d.sync += [self.o.valid.eq(loads.available | rows.available), loaded.eq(loads.available)]
        self._payloads(m, loads, rows, push, fetch)
        return m

    def _key(self) -> Value:
        """The low bits of a request's DRAM row."""
        config = self._config
        return row_of(self.i.payload.line << exact_log2(config.bus_bytes), config)[: exact_log2(config.row_groups)]

    def _payloads(self, m: Module, loads: "_Loads", rows: RowGroups, push: Value, fetch: Value) -> None:
        """Loads lie above the rows."""
        bits = max(ceil_log2(self._config.port_requests), len(loads.place))
        depth = (1 << bits) + LOADS
        m.submodules.payloads = payloads = memory.Memory(
            shape=self.i.payload.shape().size, depth=depth, init=[],
            attrs=BLOCK_RAM if depth > DISTRIBUTED_DEPTH else DISTRIBUTED_RAM,
        )  # fmt: skip
        write, read = payloads.write_port(), payloads.read_port()

        m.d.comb += [
            write.addr[:bits].eq(Mux(self.i.payload.load, loads.place, rows.place)),
            write.addr[bits].eq(self.i.payload.load),
            write.data.eq(Value.cast(self.i.payload)),
            write.en.eq(push),
            read.addr[:bits].eq(Mux(loads.available, loads.next_place, rows.next_place)),
            read.addr[bits].eq(loads.available),
            read.en.eq(fetch),
            Value.cast(self.o.payload).eq(read.data),
        ]


class _Loads(wiring.Component):
    """Places for loads, in the order in which they came. Members as of ``RowGroups``."""

    def __init__(self) -> None:
        super().__init__(
            {
                "put": In(1),
                "place": Out(range(LOADS)),
                "room": Out(1),
                "available": Out(1),
                "next_place": Out(range(LOADS)),
                "take": In(1),
                "free": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.pointers = pointers = RingPointers(LOADS)
        level = Signal(range(LOADS + 1))
        up_down(m, level, up=self.put, down=self.free)
        m.d.comb += [
            self.room.eq(~level[-1]),  # LOADS is a power of two
            self.place.eq(pointers.write_address),
            self.available.eq(pointers.available),
            self.next_place.eq(pointers.read_address),
            pointers.write.eq(self.put),
            pointers.fetch.eq(self.take & pointers.available),
        ]
        return m
