"""The scalar loads' way to memory."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import exact_log2

from daedal.hw.access_unit.bundles import LoadReturns, load_request_layout
from daedal.hw.config import Config
from daedal.hw.interfaces import Client, ReturnBus, read_request_layout
from daedal.hw.queues.merge import Merge


class LoadPort(wiring.Component):
    """Merges the requests of all load units, earlier ones first, and hands back their beats.

    One request per cycle, one cycle per stage of the tree of merges. A unit that has all
    it wants asks for nothing more, so none is kept waiting for ever.

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
        streams = [wiring.flipped(unit) for unit in self.units]
        waiting: list[Any] = [(unit.valid, unit.payload.side) for unit in self.units]
        merges = 0
        while len(streams) > 1:
            merged = []
            for first, second in zip(streams[::2], streams[1::2], strict=False):
                m.submodules[f"merge{merges}"] = merge = Merge(load_request_layout(self._config))
                connect(m, first, merge.first)
                connect(m, second, merge.second)
                merged.append(merge.o)
                waiting.append((merge.o.valid, merge.o.payload.side))
                merges += 1
            streams = merged + streams[len(merged) * 2 :]
        m.d.comb += [
            self.pending[side].eq(Cat(*(valid & (of == side) for valid, of in waiting)).any()) for side in range(2)
        ]
        if streams:
            self._request(m, streams[0])
        return m

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
