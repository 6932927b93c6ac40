"""A level: its bundles, and the events they carry, are those of the contract, in its order, in whatever timing.

The contract is ``Level.transform`` in ``hw/isa/spec/access.py``, said here once more as a machine that is told of the
parent's bundles and judges each bundle that leaves.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Elaboratable, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect

from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined import level
from daedal.hw.access_unit.levels.pipelined.level import Level
from daedal.hw.access_unit.levels.serial import serial_level
from daedal.hw.access_unit.levels.serial.serial_level import SerialLevel
from daedal.hw.access_unit.levels.serial.serial_words import SerialWords, place_bits
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, bundle_layout
from daedal.hw.isa.words import Destination, Source
from daedal.hw.queues.fifo import Fifo
from tests.formal.narrow import TINY, narrow
from tests.formal.sat.prover import Result, examine
from tests.formal.streams import StreamContract

UPPER, TAG, INDUCTION = 0, 1, 2
"""Registers: the upper bound, the number of the parent's bundle (which nothing changes), the induction variable."""

PARENTS = 3
"""Bundles of the parent, at most."""

LOWER = 1
"""The lower bound; upper bounds are this to ``LOWER + 2``."""

PLAIN = narrow(**{**vars(TINY), "sequential_loads": (1, 0), "random_loads": (0, 0), "alus": (0, 0), "address_bits": 4})
IN_TURN = narrow(**{**vars(PLAIN), "contexts": (0, 2), "sequential_loads": (1, 1), "register_beats": 4})
SERIAL = narrow(**{**vars(PLAIN), "serial": (False, True)})


class Program(wiring.Component):
    """In place of the store of a level's words: a level that is enabled, with its upper bound in a register."""

    def __init__(self, config: Config, level: int) -> None:
        super().__init__({"config_bus": In(ConfigBus()), "words": Out(LevelWords(config, level))})
        self._interleave = config.contexts[level] > 0

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += [
            *_control(self.words, interleave=self._interleave),
            self.words.lower.eq(LOWER), self.words.two_steps.eq(2),
        ]  # fmt: skip
        return m


class SerialProgram(wiring.Component):
    """The same for a serial level, where there is one constant."""

    def __init__(self, config: Config, level: int) -> None:
        constants = {"place": In(place_bits(config, level)), "constant": Out(config.address_bits)}
        super().__init__({"config_bus": In(ConfigBus()), "words": Out(SerialWords(config, level)), **constants})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += [*_control(self.words, interleave=False), self.constant.eq(LOWER)]
        return m


def _control(words: Any, *, interleave: bool) -> list[Any]:
    control = words.control
    return [
        control.enable.eq(1), control.induction.eq(Destination.R2), control.lower.eq(Source.CONST),
        control.upper.eq(Source.R0), control.interleave.eq(interleave), words.step.eq(1),
    ]  # fmt: skip


@dataclass
class Place:
    """A context: whether it has an activation, of which of the parent's bundles, and how many of its bundles left."""

    taken: Signal
    tag: Signal
    gone: Signal


class Spec(Elaboratable):
    """Level 1 with ``Program``; ``fault``, a mistake of the judge: ``order`` or ``flag``."""

    def __init__(self, config: Config, fault: str = "") -> None:
        kind = SerialLevel if config.serial[1] else Level
        self.config, self.unit, self._fault = config, kind(config, 1), fault
        self.contexts = max(1, config.contexts[1])
        self.sends, self.upper, self.done = Signal(name="sends"), Signal(2, name="upper"), Signal(name="done")
        self.flags = Signal(5, name="flags")
        requests = [requests.ready for requests in self.unit.requests]
        self.ports = [self.sends, self.upper, self.flags, self.unit.o.ready, *requests, self.done]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = unit = self.unit
        bundles: Any = unit.i
        if self.config.serial[1]:
            # What it only passes on leaves in the cycle in which it comes: the judge must have seen it before.
            m.submodules.waiting = waiting = Fifo(bundle_layout(self.config), depth=2)
            connect(m, waiting.o, unit.i)
            bundles = waiting.i
        started, parent = Signal(3), bundles.payload
        m.d.sync += started.eq(started << 1 | 1)
        known = Signal(5)
        came, complete, parents = self._parents(m, bundles, known)
        m.d.comb += [
            unit.running.eq(started[0]),
            bundles.valid.eq(started.all() & self.sends),
            parent.registers[UPPER].eq(self.upper),
            parent.registers[TAG].eq(came),
            known.eq(self.flags),
            Cat(parent.flags.live, parent.flags.last, *(bits[0] for bits in _sets(parent.flags))).eq(known),
        ]
        m.submodules.contract = contract = StreamContract(8, assumed=True)
        m.d.comb += [
            contract.watched.valid.eq(bundles.valid),
            contract.watched.payload.eq(Cat(self.upper, self.flags)),
            contract.ready.eq(bundles.ready),
        ]
        self._judge(m, came, complete, parents)
        return m

    def _parents(self, m: Module, bundles: Any, flags: Signal) -> tuple[Signal, Signal, list[Any]]:
        """How many bundles came, whether the last one did, and what each was."""
        came, complete = Signal(range(PARENTS + 1)), Signal()
        shape = data.StructLayout({"upper": 2, "live": 1, "last": 1, "begin": 1, "iteration": 1, "end": 1})
        known = [Signal(shape, name=f"parent{n}") for n in range(PARENTS)]
        with m.If(bundles.valid):
            m.d.comb += [Assume((came < PARENTS) & ~complete), Assume(self.upper >= LOWER)]
        with m.If(bundles.valid & bundles.ready):
            m.d.sync += [came.eq(came + 1), complete.eq(flags[1])]
            for number, one in enumerate(known):
                with m.If(came == number):
                    m.d.sync += one.eq(Cat(self.upper, flags))
        return came, complete, known

    def _judge(self, m: Module, came: Signal, complete: Signal, known: list[Signal]) -> None:
        bundle, flags = self.unit.o.payload, self.unit.o.payload.flags
        places = [
            Place(Signal(name=f"taken{n}"), Signal(2, name=f"tag{n}"), Signal(2, name=f"gone{n}"))
            for n in range(self.contexts)
        ]
        begun, left, before = Signal(range(PARENTS + 1)), Signal(4), Signal(init=1)
        here: Value = flags.context if self.contexts > 1 else Value.cast(0)
        taken, tag, gone = (Array(getattr(place, name) for place in places)[here] for name in ("taken", "tag", "gone"))
        ours, position, parent = Signal(2), Signal(2), Signal.like(known[0])
        m.d.comb += [
            ours.eq(Mux(taken, tag, begun)),
            position.eq(Mux(taken, gone, 0)),
            parent.eq(Array(known)[ours]),
        ]
        count, first, last, runs = Signal(2), Signal(), Signal(), Signal()
        m.d.comb += [
            count.eq(Mux(parent.live, parent.upper - LOWER, 0)),
            runs.eq(count != 0),
            first.eq(position == 0),
            last.eq((count == 0) | (position == count - 1)),
        ]
        with m.If(self.unit.o.valid):
            others = Value.cast(0) if self.contexts == 1 else Array(place.taken for place in places)[~here]
            in_turn = (here != before) | (~others & complete & (begun == came)) | (self.contexts == 1)
            m.d.comb += [
                Assert(taken | (begun < came), "a bundle of an activation that did not begin"),
                Assert(bundle.registers[TAG] == ours, "a bundle of another activation than the contract's"),
                Assert(in_turn, "not the turn of this context"),
                Assert(bundle.registers[UPPER] == parent.upper, "a register that nothing writes has changed"),
                Assert(~runs | (bundle.registers[INDUCTION] == LOWER + position), "the induction variable"),
                Assert(flags.live == (runs ^ (self._fault == "flag")), "live"),
                Assert(flags.begin == Mux(first, _events(parent.begin, parent.live), 0), "begin"),
                Assert(flags.iteration == (_events(first & parent.iteration, runs)), "iteration"),
                Assert(flags.end == Mux(last, _events(parent.end, parent.live), 0), "end"),
                Assert(flags.cause.as_value() == 0, "a fault"),
            ]
            if self._fault == "order":
                m.d.comb += Assert(position == left, "a mistake: bundles of an activation after those of others")
        with m.If(self.unit.o.valid & self.unit.o.ready):
            m.d.sync += [before.eq(here), left.eq(left + 1), begun.eq(begun + ~taken)]
            m.d.sync += [taken.eq(~last), tag.eq(ours), gone.eq(position + 1)]
            ends = complete & (begun + ~taken == came) & last
            for number, place in enumerate(places):
                ends = ends & ((here == number) | ~place.taken)
            m.d.comb += Assert(flags.last == self._is_last(parent, last, ends), "the nest's last bundle")
        m.d.comb += self.done.eq(left == 3)

    def _is_last(self, parent: Signal, last: Signal, ends: Value) -> Value:
        return parent.last & last if self.contexts == 1 else ends


def _sets(flags: Any) -> tuple[Any, Any, Any]:
    return flags.begin, flags.iteration, flags.end


def _events(outer: Value, own: Value) -> Value:
    """Events of level 0 and level 1."""
    return Value.cast(outer) | Value.cast(own) << 1


def prove(monkeypatch: pytest.MonkeyPatch, config: Config, depth: int, fault: str = "") -> Result:
    monkeypatch.setattr(level, "LevelWordStore", Program)
    monkeypatch.setattr(serial_level, "SerialWordStore", SerialProgram)
    spec = Spec(config, fault)
    return examine(spec, spec.ports, depth, goals=[] if fault else ["done"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "depth"), [(PLAIN, 24), (IN_TURN, 28), (SERIAL, 21)], ids=["plain", "in turn", "serial"]
)
def test_events_leave_in_the_contracts_order(monkeypatch, config, depth):
    assert prove(monkeypatch, config, depth)


@pytest.mark.parametrize(("config", "fault"), [(PLAIN, "order"), (PLAIN, "flag"), (SERIAL, "flag")])
def test_the_proof_can_fail(monkeypatch, config, fault):
    assert not prove(monkeypatch, config, 22, fault).holds
