"""The requests that wait at a port."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.config import Config
from daedal.hw.interfaces import Client, read_request_layout
from daedal.hw.memory.address_map import row_of
from daedal.hw.memory.row_groups import RowGroups
from daedal.hw.queues.queue import Queue

LOADS = 16
"""Loads that can wait beside the requests for rows, if there are groups."""


def most_waiting(config: Config) -> int:
    """Requests that can wait at one port."""
    return config.port_requests + (LOADS if config.row_groups > 1 else 0)


class RequestQueue(wiring.Component):
    """Requests of one port, in the order in which memory is best asked for them.

    With ``row_groups`` of 1 that is the order in which they came. Otherwise requests to one DRAM row are put together,
    see ``RowGroups``, which saves the time that a bank takes to open the row again; and loads, for which levels and
    loader wait, go before rows, of which many are on their way. Rows do not wait for ever: loads stop once the access
    unit can fetch no more rows, and are finite in any case.

    One request in and one out per cycle; what comes into an empty queue is offered two cycles later (without groups as
    with ``Queue``).

    Members
    -------
    i, o : streams of ``read_request_layout(config)``
        Requests, at memory addresses. What is offered does not change until it is taken.
    """

    def __init__(self, config: Config) -> None:
        requests = stream.Signature(read_request_layout(config))
        super().__init__({"i": In(requests), "o": Out(requests)})
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m, config, layout = Module(), self._config, read_request_layout(self._config)
        if config.row_groups == 1:
            m.submodules.queue = queue = Queue(layout, depth=config.port_requests)
            connect(m, flipped(self.i), queue.i)
            connect(m, queue.o, flipped(self.o))
            return m
        m.submodules.loads = loads = Queue(layout, depth=LOADS)
        m.submodules.rows = rows = RowGroups(layout, depth=config.port_requests, keys=config.row_groups)
        client = self.i.payload.tag.client
        is_load, load_next, offered, before = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_load.eq((client == Client.LOAD) | (client == Client.LOADER)),
            loads.i.payload.eq(self.i.payload),
            rows.i.payload.eq(self.i.payload),
            rows.key.eq(row_of(self.i.payload.address, config)[: exact_log2(config.row_groups)]),
            loads.i.valid.eq(self.i.valid & is_load),
            rows.i.valid.eq(self.i.valid & ~is_load),
            self.i.ready.eq(Mux(is_load, loads.i.ready, rows.i.ready)),
            load_next.eq(Mux(offered, before, loads.o.valid)),
            self.o.payload.eq(Mux(load_next, loads.o.payload, rows.o.payload)),
            self.o.valid.eq(loads.o.valid | rows.o.valid),
            loads.o.ready.eq(self.o.ready & load_next),
            rows.o.ready.eq(self.o.ready & ~load_next),
        ]
        m.d.sync += [offered.eq(self.o.valid & ~self.o.ready), before.eq(load_next)]
        return m
