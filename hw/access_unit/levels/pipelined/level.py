"""One loop level of the access unit."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.interleaving import interleaver
from daedal.hw.access_unit.interleaving.interleaver import Interleaver
from daedal.hw.access_unit.levels.bundles import LoadReturns, assign, load_request_layout
from daedal.hw.access_unit.levels.level_words import LevelWordStore, loads_of
from daedal.hw.access_unit.levels.pipelined import predicate_counter
from daedal.hw.access_unit.levels.pipelined.activation import Activation
from daedal.hw.access_unit.levels.pipelined.activation_fifo import ActivationFifo
from daedal.hw.access_unit.levels.pipelined.activation_store import ActivationStore
from daedal.hw.access_unit.levels.pipelined.alu_pipeline import AluPipeline
from daedal.hw.access_unit.levels.pipelined.iteration_bus import LEAST_ENTRIES, TURN_FIELDS, IterationBus, bounds_layout
from daedal.hw.access_unit.levels.pipelined.iterator import Iterator
from daedal.hw.access_unit.levels.pipelined.parent_writes import ParentWrites, has_held_operands
from daedal.hw.access_unit.loads import element_extract
from daedal.hw.access_unit.loads.element_extract import ElementExtract
from daedal.hw.access_unit.loads.load_writeback import LoadWriteback
from daedal.hw.access_unit.loads.random_load import RandomLoad
from daedal.hw.access_unit.loads.sequential_loads import SequentialLoads
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, bundle_layout, load_units, random_entries
from daedal.hw.isa.launch import Cause
from daedal.hw.lib.below import below
from daedal.hw.queues.credit_counter import CreditCounter, depth_for
from daedal.hw.queues.fifo import Fifo

COMMIT_STAGES = 2
LOOKUP_STAGES = 1

WAITING = LEAST_ENTRIES // 2
"""Activations that wait for the iterator; as many may be in the stages from there to where what is kept is used."""

UNSEEN = 2
"""Of these, those that ``room`` does not know of: this cycle's and that of the cycle before."""


class Level(wiring.Component):
    """Turns each live bundle of its parent into an activation: a bundle per iteration.

    One bundle per cycle, also across activations and with loads, as long as these find their lines in time. But an
    activation takes a cycle for each of its operands that is a register which the parent writes (``Activation``), and
    with two ALU operations or more an iteration takes as many cycles (``AluPipeline``).
    Segments that run freely, each into a queue with credits: sequential loads up to each random load, and from
    the last load through check, ALU operations and count.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    running : ``In(1)``
        A nest runs.
    i, o : streams of ``bundle_layout(config)``
    requests : ``Out(stream of load_request_layout(config)).array(load_units(config, level))``
    returns : ``In(LoadReturns(config))``
    ended : ``Out(1)``
        Strobe: the nest's last bundle is on its way out, and not poisoned.
    found : ``Out(1)``
        Strobe: the check replaced a value, so ``check_value`` is wanted until the event unit is through.
    order_value, check_value : ``Out(64)``
        VALUE of a bundle that this level poisoned with BOUNDS_ORDER, or the first in a nest that its check found.
    busy : ``Out(1)``
        Loads are in flight.
    """

    def __init__(self, config: Config, level: int) -> None:
        bundles = stream.Signature(bundle_layout(config))
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "running": In(1),
                "i": In(bundles),
                "o": Out(bundles),
                "requests": Out(stream.Signature(load_request_layout(config))).array(load_units(config, level)),
                "returns": In(LoadReturns(config)),
                "ended": Out(1),
                "found": Out(1),
                "order_value": Out(64),
                "check_value": Out(64),
                "busy": Out(1),
            }
        )
        self._config, self._level = config, level
        self._first_unit = sum(load_units(config, outer) for outer in range(level))
        self._busy: list[Any] = []

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.words = store = LevelWordStore(self._config, self._level)
        m.submodules.activation = activation = Activation(self._config, self._level)
        connect(m, flipped(self.config_bus), store.config_bus)
        connect(m, store.words, activation.words)
        if has_held_operands(self._level):
            m.submodules.parent = parent = ParentWrites(self._config, self._level)
            connect(m, flipped(self.config_bus), parent.config_bus)
            m.d.comb += activation.changes.eq(parent.changes)
        connect(m, flipped(self.i), activation.i)
        m.d.comb += activation.running.eq(self.running)
        self._busy = []
        self._start, self._start_nearer = Signal(name="start"), Signal(name="start_nearer")
        """Of the last segment: an iteration may start, in turn or after a random load; or the plain way."""
        bus, free, take = self._sequential(m, store.words, activation)
        for slot in range(self._config.sequential_loads[self._level], loads_of(self._config, self._level)):
            bus, free, take = self._random(m, slot, store.words, bus, free, take)
        stages = COMMIT_STAGES + (self._lookup_stages() if not self._config.random_loads[self._level] else 1)
        bus, stages = self._compute(m, store.words, bus, stages)
        self._output(m, bus, free, take, depth_for(stages))
        m.d.comb += self.busy.eq(Cat(*self._busy).any())
        return m

    def _lookup_stages(self) -> int:
        """Registers from the start of an iteration to the first commit."""
        lookup = interleaver.STAGES + 1 if self._config.contexts[self._level] else LOOKUP_STAGES
        return lookup + element_extract.STAGES

    def _sequential(self, m: Module, words: Any, activation: Activation) -> tuple[Any, Signal, Signal]:
        """Iterations, lookup and commit; returns the bus and the credits (``free``, ``take``) of its segment."""
        free, take = Signal(name="sequential_free"), Signal(name="sequential_take")
        m.submodules.iterator = iterator = Iterator(self._config, self._level)
        m.submodules.loads = loads = SequentialLoads(self._config, self._level, self._first_unit)
        m.submodules.store = store = ActivationStore(self._config, self._level)
        m.submodules.extract = elements = ElementExtract(self._config, self._level)
        slots = range(self._config.sequential_loads[self._level])
        is_last = not self._config.random_loads[self._level]
        start = self._start if is_last else Const(1)
        plain_start = self._start_nearer if is_last and self._config.contexts[self._level] else start
        for unit in (iterator, loads, elements):
            connect(m, words, unit.words)
        connect(m, flipped(self.returns), loads.returns)
        for slot in slots:
            connect(m, loads.requests[slot], flipped(self.requests[slot]))
            m.d.comb += loads.addresses[slot].eq(iterator.addresses[slot])
        self._busy.append(loads.busy)
        m.d.comb += [
            *assign(loads.i, iterator.o, TURN_FIELDS),
            loads.running.eq(self.running),
            loads.free.eq(free & plain_start),
            *assign(store.turn, elements.o, ("valid", *TURN_FIELDS)),
            self.order_value.eq(store.order_value),
        ]
        in_turn, plain = Signal(), Signal()
        turns = self._contexts(m, words, free & start) if self._config.contexts[self._level] else None
        self._enter(m, words, activation, store, iterator, in_turn, plain & store.stops, turns)
        if turns is not None:
            m.d.sync += [in_turn.eq(words.control.interleave), plain.eq(~words.control.interleave)]
            m.d.comb += take.eq(loads.take | turns.take)
            self._in_turn(m, in_turn, plain, iterator, loads, turns, elements)
        else:
            m.d.comb += [
                plain.eq(1),
                *assign(elements, loads, ("found", "offsets")),
                *assign(elements.i, loads.o, ("valid", *TURN_FIELDS)),
                loads.i.valid.eq(iterator.o.valid),
                iterator.ready.eq(loads.ready),
                take.eq(loads.take),
            ]
        return self._commit(m, words, store.o, elements.values, slots, induction=True), free, take

    def _enter(self, m: Module, words: Any, activation: Activation, store: ActivationStore, iterator: Iterator,
               in_turn: Signal, stop: Value, turns: Interleaver | None) -> None:  # fmt: skip
        """Activations are kept, and go by way of a queue to the iterator.

        The queue has room for as many as come before ``room`` knows of them, so that what is known late of iterations
        does not reach activations.
        """
        m.submodules.waiting = waiting = ActivationFifo(bounds_layout(self._config, self._level), LEAST_ENTRIES)
        new, bounds, room, stopped = activation.o, waiting.payload, Signal(), Signal()
        connect(m, waiting.o, iterator.i)
        m.d.sync += [
            room.eq(below(waiting.level, WAITING - UNSEEN + 1)),
            stopped.eq(stop),
        ]
        m.d.comb += [
            *assign(store.i, new, new.signature.members),
            activation.open.eq(room & ~stopped & (~in_turn | turns.room if turns else 1)),
            store.write.eq(new.valid & activation.open & ~new.hint),
            store.write_entry.eq(Mux(in_turn, turns.entry, store.next_entry) if turns else store.next_entry),
            waiting.write.eq(new.valid & activation.open),
            bounds.entry.eq(store.write_entry),
            bounds.work.eq(new.run),
            bounds.single.eq(~new.run | ((new.left <= words.step) & ~in_turn)),
            bounds.ends.eq(new.flags.last),
            bounds.hint.eq(new.hint),
            bounds.context.eq(new.flags.context),
            *assign(bounds, new, ("lower", "left")),
            *(bounds.starts[n].eq(start) for n, start in enumerate(new.starts)),
        ]
        if turns:
            m.d.comb += [*assign(turns.i, new, new.signature.members), turns.enter.eq(store.write & in_turn)]

    def _in_turn(self, m: Module, in_turn: Signal, plain: Signal, iterator: Iterator, loads: SequentialLoads,
                 turns: Interleaver, elements: ElementExtract) -> None:  # fmt: skip
        """Activations in turn, beside the plain way; the program says which of the two works."""
        m.d.comb += [
            iterator.in_turn.eq(in_turn),
            *assign(turns.bounds, iterator.o, TURN_FIELDS),
            *assign(turns, iterator, ("addresses",)),
            turns.bounds.valid.eq(iterator.o.valid & in_turn),
            loads.i.valid.eq(iterator.o.valid & plain),
            iterator.ready.eq(loads.ready),  # always, while activations run in turn
        ]
        either = IterationBus(self._config, self._level).create(path=("either",))
        m.d.sync += [
            to.eq(Mux(plain, straight, turned))
            for to, turned, straight in [
                *((getattr(either, name), getattr(turns.o, name), getattr(loads.o, name))
                  for name in ("valid", *TURN_FIELDS)),
                *zip(elements.found, turns.found, loads.found, strict=True),
                *zip(elements.offsets, turns.offsets, loads.offsets, strict=True),
            ]
        ]  # fmt: skip
        m.d.comb += [assign(each, either, ("valid", *TURN_FIELDS)) for each in (elements.i, turns.leaves)]

    def _contexts(self, m: Module, words: Any, free: Value) -> Interleaver:
        """Activations in turn, beside the iterator and its loads."""
        first = loads_of(self._config, self._level)
        m.submodules.contexts = turns = Interleaver(self._config, self._level, self._first_unit + first)
        connect(m, words, turns.words)
        connect(m, flipped(self.returns), turns.returns)
        for slot, requests in enumerate(turns.requests):
            connect(m, requests, flipped(self.requests[first + slot]))
        m.d.comb += [turns.running.eq(self.running), turns.free.eq(free)]
        self._busy.append(turns.busy)
        return turns

    def _commit(self, m: Module, words: Any, bus: Any, values: list[Any], slots: range, *,
                induction: bool = False) -> Any:  # fmt: skip
        commit = LoadWriteback(self._config, self._level, slots, induction=induction)
        m.submodules[f"commit{slots.start}" if slots else "commit_plain"] = commit
        connect(m, words, commit.words)
        m.d.comb += [commit.i.valid.eq(bus.valid), *assign(commit.i, bus)]
        m.d.comb += [to.eq(of) for to, of in zip(commit.values, values, strict=True)]
        for slot in slots:
            with m.If(words.check.load == slot):
                m.d.comb += self.check_value.eq(commit.fault_value)
        return commit.o

    def _random(
        self, m: Module, slot: int, words: Any, bus: Any, free: Signal, take: Signal
    ) -> tuple[Any, Signal, Signal]:
        """A random load, which ends a segment and starts the next one."""
        m.submodules[f"random{slot}"] = load = RandomLoad(self._config, self._level, slot, self._first_unit + slot)
        m.submodules[f"credits{slot}"] = credits = CreditCounter(random_entries(self._config))
        next_free, next_take = Signal(name=f"free{slot}"), Signal(name=f"take{slot}")
        connect(m, words, load.words)
        connect(m, flipped(self.returns), load.returns)
        connect(m, load.request, flipped(self.requests[slot]))
        m.d.comb += [
            load.i.valid.eq(bus.valid),
            *assign(load.i, bus),
            free.eq(credits.free),
            credits.take.eq(take),
            credits.give.eq(load.left),
            load.free.eq(next_free & (self._start if slot == loads_of(self._config, self._level) - 1 else 1)),
            next_take.eq(load.left),
        ]
        self._busy.append(load.busy)
        return self._commit(m, words, load.o, [load.value], range(slot, slot + 1)), next_free, next_take

    def _compute(self, m: Module, words: Any, bus: Any, stages: int) -> tuple[Any, int]:
        """ALU operations and count; returns the bus and the registers of the segment so far."""
        if self._config.alus[self._level]:
            m.submodules.operations = operations = AluPipeline(self._config, self._level, stages)
            connect(m, words, operations.words)
            m.d.comb += [
                self._start.eq(operations.start),
                self._start_nearer.eq(operations.start_nearer),
                operations.i.valid.eq(bus.valid),
                *assign(operations.i, bus),
            ]
            bus, stages = operations.o, stages + operations.stages
        else:
            m.d.comb += [self._start.eq(1), self._start_nearer.eq(1)]
        m.submodules.count = counter = predicate_counter.PredicateCounter(self._config, self._level)
        m.d.comb += [counter.control.eq(words.count), counter.i.valid.eq(bus.valid), *assign(counter.i, bus)]
        return counter.o, stages + predicate_counter.STAGES

    def _output(self, m: Module, bus: Any, free: Signal, take: Signal, depth: int) -> None:
        m.submodules.queue = queue = Fifo(bundle_layout(self._config), depth=depth)
        m.submodules.credits = credits = CreditCounter(depth)
        connect(m, queue.o, flipped(self.o))
        m.d.comb += [
            queue.i.valid.eq(bus.valid),
            queue.i.payload.flags.eq(bus.flags),
            *(queue.i.payload.registers[n].eq(register) for n, register in enumerate(bus.registers)),
            free.eq(credits.free),
            credits.take.eq(take),
            self.ended.eq(bus.valid & bus.flags.last & (bus.flags.cause == Cause.NONE)),
            self.found.eq(bus.valid & bus.flags.replaced[self._level]),
        ]
        # A cycle later than it could be: that the next level takes a bundle is known late in the cycle.
        m.d.sync += credits.give.eq(self.o.valid & self.o.ready)
