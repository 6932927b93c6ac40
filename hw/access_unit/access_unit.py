"""The access unit."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.events.event_unit import STROBES, EventUnit
from daedal.hw.access_unit.events.lookup_counter import LookupCounter
from daedal.hw.access_unit.events.noted_words import NotedWords, is_noted
from daedal.hw.access_unit.levels.pipelined.level import Level
from daedal.hw.access_unit.levels.pipelined.parent_writes import has_held_operands
from daedal.hw.access_unit.levels.serial.serial_level import SerialLevel
from daedal.hw.access_unit.loads.load_port import LoadPort
from daedal.hw.access_unit.nest_queue import DEPTH, NEST_BITS, NestQueue
from daedal.hw.config.core import Config
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
from daedal.hw.isa.words import CheckMode, Unit
from daedal.hw.queues.arbiter import RegisteredArbiter
from daedal.hw.queues.reorder_buffer import reserve_layout
from daedal.hw.reports import AccessReport

AnyLevel = Level | SerialLevel


def make_level(config: Config, level: int) -> AnyLevel:
    """Level ``level``, of the kind that ``config`` says."""
    return (SerialLevel if config.serial[level] else Level)(config, level)


class AccessUnit(wiring.Component):
    """Runs loop nests, one after the other: levels one behind the other, then the event unit.

    A bundle per cycle and a step per cycle when nothing blocks. Each level goes on to the next nest as soon as its
    last bundle is on the way and that nest's words are here; so does the event unit, and at most two nests are at
    work at a time. They may be of two launches, whose ``side`` differs.

    A fault stops it until reset; all that came before it in program order has been enqueued and issued by then.
    Prefetched lines may still be on their way when ``done`` is high: a reset needs ``quiet`` (or that the fabric has
    forgotten them).

    Members
    -------
    config_bus : ``In(ConfigBus())``
        Program words of units LEVEL, EVENT and STEP; others are ignored.
    room : ``Out(1)``
        ``nest_queue.MARGIN`` more words can come.
    start, nest : ``In(1)``, ``In(8)``
        The words of a nest have come: it runs, with this number. Not in a cycle with a word or ``clear``.
    open : ``Out(2)``
        For each side: a nest of that launch is at work or waits.
    done : ``Out(1)``
        There is none of either, and nothing is pending: everything is issued, and all outputs have been taken.
    pending : ``Out(2)``
        For each side: a request has not been handed out yet.
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
    report : ``Out(AccessReport(config))``
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "room": Out(1),
                "start": In(1),
                "nest": In(NEST_BITS),
                "open": Out(2),
                "done": Out(1),
                "pending": Out(2),
                "halt": In(1),
                "tokens": Out(stream.Signature(token_layout())),
                "scalars": Out(stream.Signature(scalar_layout(config))),
                "store_addresses": Out(stream.Signature(store_address_layout(config))),
                "requests": Out(stream.Signature(read_request_layout(config))),
                "reserve": Out(stream.Signature(reserve_layout())),
                "slot": In(slot_bits(config)),
                "returns": In(ReturnBus(config)),
                "fault": Out(FaultPort(config)),
                "quiet": Out(1),
                "report": Out(AccessReport(config)),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        levels = [make_level(self._config, level) for level in range(self._config.levels)]
        m.submodules.events = events = EventUnit(self._config)
        m.submodules.loads = loads = LoadPort(self._config, sum(len(level.requests) for level in levels))
        m.submodules.lookups = lookups = LookupCounter(self._config)
        m.submodules.merge = merge = RegisteredArbiter(read_request_layout(self._config))
        m.submodules.event_nests = event_nests = NestQueue(registered=not self._config.is_serial)
        self._over = Signal(2)
        """Nests that the event unit is through with."""
        nests = [NestQueue() for _ in levels]
        for number, (level, queue) in enumerate(zip(levels, nests, strict=True)):
            m.submodules[f"level{number}"], m.submodules[f"nests{number}"] = level, queue
            word = self.config_bus.word
            mine = word.index == number
            if has_held_operands(number) and isinstance(level, Level):
                mine |= word.index == number - 1
            self._attach(m, queue, level, (word.unit == Unit.LEVEL) & mine)
            m.d.comb += [
                events.order_values[number].eq(level.order_value),
                events.check_values[number].eq(level.check_value),
            ]
            self._run_level(m, level, queue, levels[number - 1] if number else None)
        self._connect_loads(m, levels, nests, loads)
        self._connect_events(m, events, lookups, event_nests)
        self._connect_requests(m, loads, events, merge)
        self._run_events(m, levels[-1], events, lookups, event_nests)
        self._account(m, [*nests, event_nests], event_nests)
        m.d.comb += self.quiet.eq(~self.pending.any() & ~Cat(level.busy for level in levels).any())
        return m

    def _attach(self, m: Module, queue: NestQueue, unit: AnyLevel | EventUnit, mine: Value) -> None:
        """A unit gets its words and its nests from a queue."""
        bus, ours = self.config_bus, queue.config_bus
        m.d.comb += [
            ours.valid.eq(bus.valid), ours.word.eq(bus.word), ours.clear.eq(bus.clear), ours.side.eq(bus.side),
            queue.mine.eq(mine), queue.start.eq(self.start), queue.nest.eq(self.nest), queue.over.eq(self._over),
        ]  # fmt: skip
        connect(m, queue.held, unit.config_bus)

    def _run_level(self, m: Module, level: AnyLevel, nests: NestQueue, outer: AnyLevel | None) -> None:
        """The level takes a nest's bundles from its start to the last one, and ends with its own last one.

        It keeps its words until its requests are handed out, and the value that its check found until the event
        unit is through with the nest.
        """
        takes, ended, found = Signal(), Signal(), Signal()
        bundle = level.i.payload
        if outer is None:  # one bundle begins it all
            m.d.comb += [level.i.valid.eq(takes), bundle.flags.live.eq(1), bundle.flags.last.eq(1)]
        else:
            m.d.comb += [
                level.i.valid.eq(outer.o.valid & takes),
                bundle.eq(outer.o.payload),
                outer.o.ready.eq(level.i.ready & takes),
            ]
        with m.If(nests.go):
            m.d.sync += takes.eq(1)
        with m.Elif(level.i.valid & level.i.ready & bundle.flags.last):
            m.d.sync += takes.eq(0)
        asks = Cat(request.valid for request in level.requests).any() if level.requests else 0
        m.d.sync += [ended.eq(level.ended | (ended & ~nests.done)), found.eq(level.found | (found & ~nests.done))]
        m.d.comb += [
            level.running.eq(nests.busy & ~ended),
            nests.done.eq(ended & ~asks & ~(found & (nests.begun != self._over))),
        ]

    def _connect_loads(self, m: Module, levels: list[AnyLevel], nests: list[NestQueue], loads: LoadPort) -> None:
        connect(m, flipped(self.returns), loads.returns)
        requests: list[Any] = [(r, queue) for level, queue in zip(levels, nests, strict=True) for r in level.requests]
        for (request, queue), unit in zip(requests, loads.units, strict=True):
            m.d.comb += [
                unit.valid.eq(request.valid),
                unit.payload.eq(request.payload),
                unit.payload.side.eq(queue.side),
                request.ready.eq(unit.ready),
            ]
        for level in levels:
            connect(m, loads.loads, level.returns)

    def _connect_events(self, m: Module, events: EventUnit, lookups: LookupCounter, nests: NestQueue) -> None:
        m.submodules.noted = noted = NotedWords(self._config)
        word = self.config_bus.word
        self._attach(
            m, nests, events, (word.unit == Unit.EVENT) | (word.unit == Unit.STEP) | is_noted(word, self._config)
        )
        connect(m, nests.held, noted.config_bus)
        m.d.comb += events.deal.eq(noted.deal)
        for number, check in enumerate(noted.checks):
            m.d.comb += [events.warns[number].eq(check.mode == CheckMode.WARN), lookups.checks[number].eq(check)]
        for name in ("tokens", "scalars", "store_addresses", "reserve", "fault"):
            connect(m, getattr(events, name), flipped(getattr(self, name)))
        m.d.comb += [events.slot.eq(self.slot), events.halt.eq(self.halt)]
        observed = (*STROBES, "replaced", "warning", "warned_value")
        m.d.comb += [getattr(self.report, name).eq(getattr(events, name)) for name in observed]

    def _connect_requests(self, m: Module, loads: LoadPort, events: EventUnit, merge: RegisteredArbiter) -> None:
        rows = merge.second
        m.d.comb += [
            merge.first.payload.eq(loads.requests.payload),
            merge.first.valid.eq(loads.requests.valid & ~self.halt),
            loads.requests.ready.eq(merge.first.ready & ~self.halt),
            rows.payload.eq(events.requests.payload),
            rows.payload.tag.side.eq(self.report.side),
            rows.valid.eq(events.requests.valid),
            events.requests.ready.eq(rows.ready),
            events.requests_taken.eq(~merge.o.valid),
            *(
                self.pending[side].eq(loads.pending[side] | (merge.o.valid & (merge.o.payload.tag.side == side)))
                for side in range(2)
            ),
        ]
        connect(m, merge.o, flipped(self.requests))

    def _run_events(
        self, m: Module, last: AnyLevel, events: EventUnit, lookups: LookupCounter, nests: NestQueue
    ) -> None:
        """Through with a nest when its last bundle has left and nothing of it waits any more."""
        takes, ended = Signal(), Signal()
        flags, taken = events.i.payload.flags, events.i.valid & events.i.ready
        m.d.comb += [
            events.i.valid.eq(last.o.valid & takes),
            events.i.payload.eq(last.o.payload),
            last.o.ready.eq(events.i.ready & takes),
            nests.done.eq(ended & events.empty & lookups.empty & ~self.fault.valid),
        ]
        with m.If(nests.go):
            m.d.sync += takes.eq(1)
        with m.If(taken & flags.last):
            m.d.sync += [takes.eq(0), ended.eq(flags.cause == Cause.NONE)]
        with m.If(nests.done):
            m.d.sync += [ended.eq(0), self._over.eq(self._over + 1)]
        m.d.comb += [
            self.report.begins.eq(nests.go),
            self.report.side.eq(nests.side),
            self.report.number.eq(nests.number),
            self.report.bundle.eq(taken),
            lookups.bundle.eq(taken & (flags.cause == Cause.NONE)),
            lookups.iteration.eq(flags.iteration),
            self.report.lookup.eq(lookups.lookup),
            self.report.stall_load.eq(nests.busy & ~ended & ~events.i.valid & events.i.ready),
        ]

    def _account(self, m: Module, queues: list[NestQueue], events: NestQueue) -> None:
        """Count the nests of each launch that are not through."""
        m.d.comb += [
            self.room.eq(Cat(queue.room for queue in queues).all()),
            self.done.eq(~self.open.any() & ~self.pending.any()),
        ]
        for side in range(2):
            # Two counts, since that a nest ends is known late: there is no time for a sum.
            came, gone = (Signal(range(DEPTH + 2), name=f"{name}_of_side{side}") for name in ("came", "gone"))
            with m.If(self.start & (self.config_bus.side == side)):
                m.d.sync += came.eq(came + 1)
            with m.If(events.done & (events.side == side)):
                m.d.sync += gone.eq(gone + 1)
            m.d.comb += self.open[side].eq(came != gone)
