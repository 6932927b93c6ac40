"""The access unit."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.event_unit import STROBES, EventUnit
from daedal.hw.access_unit.level import Level
from daedal.hw.access_unit.load_port import LoadPort
from daedal.hw.access_unit.lookups import Lookups
from daedal.hw.config import Config
from daedal.hw.interfaces import (
    ConfigBus,
    FaultPort,
    ReturnBus,
    read_request_layout,
    scalar_layout,
    slot_bits,
    store_address_layout,
    token_layout,
)
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.program_words import CheckMode
from daedal.hw.queues.merge import Merge
from daedal.hw.queues.vector_queues import reserve_layout


class AccessUnit(wiring.Component):
    """Runs one loop nest at a time: levels one behind the other, then the event unit.

    A bundle per cycle and a step per cycle when nothing blocks. A fault stops it until reset; all that came before
    it in program order has been enqueued and issued by then. Prefetched lines may still be on their way when
    ``done`` is high: a reset needs ``quiet`` (or that the fabric has forgotten them).

    Members
    -------
    config_bus : ``In(ConfigBus())``
        Program words of units LEVEL, EVENT and STEP, while ``done``; the last one at least two cycles before ``start``.
    start : ``In(1)``
        Runs the nest.
    done : ``Out(1)``
        No nest in work: everything is issued, and all outputs have been taken.
    halt : ``In(1)``
        Do no further step, reserve and ask for nothing more.
    tokens, scalars, store_addresses : output streams
    requests : ``Out(stream.Signature(read_request_layout(config)))``
        Scalar loads first, then rows.
    reserve, slot : as in ``VectorQueues``
    returns : ``In(ReturnBus(config))``
    fault : ``Out(FaultPort(config))``
    quiet : ``Out(1)``
        No scalar load is queued or in flight.
    row, lookup, bundle, token, stall_… : ``Out(1)``
        Strobes for counters.
    replaced : ``Out(range(levels + 1))``
        How many values checks replaced, for counting.
    warning, warned_value : ``Out(1)``, ``Out(64)``
        Strobe, and the value whose check warns; of a launch only the first one counts.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "start": In(1),
                "done": Out(1),
                "halt": In(1),
                "tokens": Out(stream.Signature(token_layout())),
                "scalars": Out(stream.Signature(scalar_layout())),
                "store_addresses": Out(stream.Signature(store_address_layout())),
                "requests": Out(stream.Signature(read_request_layout(config))),
                "reserve": Out(stream.Signature(reserve_layout())),
                "slot": In(slot_bits(config)),
                "returns": In(ReturnBus(config)),
                "fault": Out(FaultPort(config)),
                "quiet": Out(1),
                "lookup": Out(1),
                "bundle": Out(1),
                "stall_load": Out(1),
                "replaced": Out(range(config.levels + 1)),
                "warning": Out(1),
                "warned_value": Out(64),
                **{name: Out(1) for name in STROBES},
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        levels = [Level(self._config, level) for level in range(self._config.levels)]
        m.submodules.events = events = EventUnit(self._config)
        m.submodules.loads = loads = LoadPort(self._config, sum(len(level.requests) for level in levels))
        m.submodules.lookups = lookups = Lookups(self._config)
        m.submodules.merge = merge = Merge(read_request_layout(self._config))
        running, ended = Signal(), Signal()
        for number, level in enumerate(levels):
            m.submodules[f"level{number}"] = level
            self._attach(m, number, level, running, events, lookups)
        for inner, outer in zip(levels[1:], levels, strict=False):
            connect(m, outer.o, inner.i)
        connect(m, levels[-1].o, events.i)
        self._connect_loads(m, levels, loads)
        self._connect_events(m, events)
        self._connect_requests(m, loads, events, merge)
        idle = events.empty & lookups.empty & loads.empty & ~merge.o.valid
        self._run(m, running, ended, levels[0], events, idle)
        self._observe(m, running & ~ended, events, lookups)
        m.d.comb += self.quiet.eq(loads.empty & ~merge.o.valid & ~Cat(level.busy for level in levels).any())
        return m

    def _attach(
        self, m: Module, number: int, level: Level, running: Signal, events: EventUnit, lookups: Lookups
    ) -> None:
        connect(m, flipped(self.config_bus), level.config_bus)
        m.d.comb += [
            level.running.eq(running),
            events.order_values[number].eq(level.order_value),
            events.check_values[number].eq(level.check_value),
            events.warns[number].eq(level.check.mode == CheckMode.WARN),
            lookups.checks[number].eq(level.check),
        ]

    def _connect_loads(self, m: Module, levels: list[Level], loads: LoadPort) -> None:
        connect(m, flipped(self.returns), loads.returns)
        requests: list[Any] = [request for level in levels for request in level.requests]
        for request, unit in zip(requests, loads.units, strict=True):
            connect(m, request, unit)
        for level in levels:
            connect(m, loads.loads, level.returns)

    def _connect_events(self, m: Module, events: EventUnit) -> None:
        connect(m, flipped(self.config_bus), events.config_bus)
        for name in ("tokens", "scalars", "store_addresses", "reserve", "fault"):
            connect(m, getattr(events, name), flipped(getattr(self, name)))
        m.d.comb += [events.slot.eq(self.slot), events.halt.eq(self.halt)]
        observed = (*STROBES, "replaced", "warning", "warned_value")
        m.d.comb += [getattr(self, name).eq(getattr(events, name)) for name in observed]

    def _connect_requests(self, m: Module, loads: LoadPort, events: EventUnit, merge: Merge) -> None:
        m.d.comb += [
            merge.first.payload.eq(loads.requests.payload),
            merge.first.valid.eq(loads.requests.valid & ~self.halt),
            loads.requests.ready.eq(merge.first.ready & ~self.halt),
        ]
        connect(m, events.requests, merge.second)
        m.d.comb += events.requests_taken.eq(~merge.o.valid)
        connect(m, merge.o, flipped(self.requests))

    def _run(self, m: Module, running: Signal, ended: Signal, first: Level, events: EventUnit, idle: Any) -> None:
        """One bundle into level 0; done when the last one has left the event unit and nothing waits any more."""
        offer = Signal()
        m.d.comb += [
            first.i.valid.eq(offer),
            first.i.payload.flags.live.eq(1),
            first.i.payload.flags.last.eq(1),
            self.done.eq(~running),
        ]
        with m.If(first.i.ready):
            m.d.sync += offer.eq(0)
        with m.If(events.i.valid & events.i.ready & events.i.payload.flags.last):
            m.d.sync += ended.eq(events.i.payload.flags.cause == Cause.NONE)
        with m.If(ended & idle & ~self.fault.valid):
            m.d.sync += [running.eq(0), ended.eq(0)]
        with m.If(self.start):
            m.d.sync += [running.eq(1), offer.eq(1), ended.eq(0)]

    def _observe(self, m: Module, expecting: Any, events: EventUnit, lookups: Lookups) -> None:
        flags = events.i.payload.flags
        taken = events.i.valid & events.i.ready
        m.d.comb += [
            self.bundle.eq(taken),
            lookups.bundle.eq(taken & (flags.cause == Cause.NONE)),
            lookups.iteration.eq(flags.iteration),
            self.lookup.eq(lookups.lookup),
            self.stall_load.eq(expecting & ~events.i.valid & events.i.ready),
        ]
