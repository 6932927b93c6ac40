"""A random load slot: an element from anywhere in memory for each iteration, many in flight."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import (
    WORK_FIELDS,
    LoadReturns,
    WorkBus,
    load_request_layout,
    register,
    returned,
)
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined.operand import chosen, operand
from daedal.hw.access_unit.loads.element_shift import ElementShift, word_of
from daedal.hw.config.core import Config
from daedal.hw.interfaces import random_entries
from daedal.hw.lib.ram_style import BLOCK_RAM


class RandomLoad(wiring.Component):
    """Load slot ``slot``: reads index and base from the iteration's own registers.

    At most ``config.random_outstanding`` loads are in flight; elements come back in any order, iterations leave
    in order, one per cycle. Iterations without a load pass in order too.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    i : ``In(WorkBus(config))``
        Iterations; at most ``random_entries`` may be inside, which ``left`` helps to count.
    left : ``Out(1)``
        An iteration leaves in this cycle.
    free : ``In(1)``
        The stages that follow can take an iteration.
    o, value : ``Out(WorkBus(config))``, ``Out(64)``
    request : ``Out(stream.Signature(load_request_layout(config)))``
    returns : ``In(LoadReturns(config))``
    busy : ``Out(1)``
        Loads are in flight.
    """

    def __init__(self, config: Config, level: int, slot: int, unit: int) -> None:
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "i": In(WorkBus(config)),
                "left": Out(1),
                "free": In(1),
                "o": Out(WorkBus(config)),
                "value": Out(64),
                "request": Out(stream.Signature(load_request_layout(config))),
                "returns": In(LoadReturns(config)),
                "busy": Out(1),
            }
        )
        self._config, self._slot, self._unit = config, slot, unit
        self._depth = random_entries(config)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        entering = WorkBus(self._config).create(path=("entering",))
        address = Signal(self._config.address_bits)
        needed = self._address(m, entering, address)
        tail, head = Signal(range(self._depth)), Signal(range(self._depth))
        done = Signal(self._depth)
        m.submodules.elements = elements = _Elements(self._config, self._unit, self._depth)
        m.submodules.sender = sender = _Sender(self._config, self._unit, self._depth)
        control = getattr(self.words, f"load{self._slot}")
        connect(m, flipped(self.returns), elements.returns)
        connect(m, sender.request, flipped(self.request))
        m.d.comb += [
            elements.write.eq(entering.valid),
            elements.entry.eq(tail),
            elements.offset.eq(address),
            elements.size.eq(control.size),
            elements.is_signed.eq(control.is_signed),
            elements.head.eq(head),
            sender.write.eq(entering.valid),
            sender.entry.eq(tail),
            sender.address.eq(address),
            sender.needed.eq(needed),
            sender.back.eq(elements.stored),
            self.busy.eq(sender.busy),
        ]
        with m.If(elements.stored):
            m.d.sync += done.bit_select(elements.stored_entry, 1).eq(1)
        with m.If(entering.valid):
            m.d.sync += [tail.eq(tail + 1), done.bit_select(tail, 1).eq(~needed)]
        self._leave(m, entering, tail, head, done, elements.value)
        return m

    def _address(self, m: Module, entering: WorkBus, address: Signal) -> Value:
        """Operands, then their sum; returns whether a load is needed, valid with ``entering``."""
        words, slot = self.words, self._slot
        control, constant = getattr(words, f"load{slot}"), getattr(words, f"load{slot}_base")
        read = WorkBus(self._config).create(path=("read",))
        index, base = Signal(self._config.address_bits), Signal(self._config.address_bits)
        register(m, read, self.i)
        register(m, entering, read)
        indices = chosen(m, "index", control.index, [self.i.induction, *self.i.registers])
        bases = operand(m, "base", control.base, constant, self.i.registers)
        with m.If(self.i.valid):
            m.d.sync += [index.eq(indices), base.eq(bases)]
        with m.If(read.valid):
            m.d.sync += address.eq(base + (index << control.size))
        return entering.work & control.enable

    def _leave(self, m: Module, entering: WorkBus, tail: Signal, head: Signal, done: Signal, value: Value) -> None:
        """The ring of waiting iterations, in block RAM: the next one is read while the one before leaves."""
        waiting, entered, next_head = Signal(range(self._depth + 1)), Signal(), Signal.like(head)
        members = [(getattr(self.o, name), getattr(entering, name)) for name in WORK_FIELDS]
        pairs: list[Any] = []
        for to, of in members:
            pairs += zip(to, of, strict=True) if isinstance(to, list) else [(to, of)]
        sources = Cat(Value.cast(of) for _, of in pairs)
        m.submodules.ring = ring = memory.Memory(shape=len(sources), depth=self._depth, init=[], attrs=BLOCK_RAM)
        write, read = ring.write_port(), ring.read_port(domain="sync")
        m.d.comb += [
            self.left.eq((waiting != 0) & done.bit_select(head, 1) & self.free),
            next_head.eq(head + self.left),
            write.en.eq(entering.valid),
            write.addr.eq(tail),
            write.data.eq(sources),
            read.addr.eq(next_head),
        ]
        m.d.sync += [
            entered.eq(entering.valid),  # what is written can be read a cycle later
            waiting.eq(waiting + entered - self.left),
            self.o.valid.eq(self.left),
            head.eq(next_head),
        ]
        with m.If(self.left):
            m.d.sync += [Cat(Value.cast(to) for to, _ in pairs).eq(read.data), self.value.eq(value)]


class _Elements(wiring.Component):
    """Cuts the elements out of returning lines and keeps them until their iteration leaves.

    Members: ``write`` stores the byte ``offset`` in its line of the element for ``entry``; ``stored`` tells, one
    cycle after a line came, that the element of ``stored_entry`` is there from the next cycle on; ``value`` is the
    element of ``head``.
    """

    def __init__(self, config: Config, unit: int, depth: int) -> None:
        super().__init__(
            {
                "write": In(1),
                "entry": In(range(depth)),
                "offset": In(exact_log2(config.bus_bytes)),
                "size": In(2),
                "is_signed": In(1),
                "returns": In(LoadReturns(config)),
                "stored": Out(1),
                "stored_entry": Out(range(depth)),
                "head": In(range(depth)),
                "value": Out(64),
            }
        )
        self._config, self._unit, self._depth = config, unit, depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.offsets = offsets = memory.Memory(shape=len(self.offset), depth=self._depth, init=[])
        m.submodules.values = values = memory.Memory(shape=64, depth=self._depth, init=[])
        m.submodules.element = element = ElementShift()
        note, offset = offsets.write_port(), offsets.read_port(domain="comb")
        keep, value = values.write_port(), values.read_port(domain="comb")
        mine, entry = returned(m, self._config, self.returns, self._unit)
        m.d.comb += [
            note.en.eq(self.write),
            note.addr.eq(self.entry),
            note.data.eq(self.offset),
            offset.addr.eq(entry),
            element.size.eq(self.size),
            element.is_signed.eq(self.is_signed),
            keep.en.eq(self.stored),
            keep.addr.eq(self.stored_entry),
            keep.data.eq(element.value),
            value.addr.eq(self.head),
            self.value.eq(value.data),
        ]
        m.d.sync += [
            self.stored.eq(mine),
            self.stored_entry.eq(entry),
            element.word.eq(word_of(self.returns.data, offset.data)),
            element.offset.eq(offset.data),
        ]
        return m


class _Sender(wiring.Component):
    """Sends the requests of the iterations in the ring, in order, as many as may be in flight.

    Members: ``write`` stores ``address`` for ``entry`` and whether a load is ``needed``; ``back``: an element
    came back.
    """

    def __init__(self, config: Config, unit: int, depth: int) -> None:
        super().__init__(
            {
                "write": In(1),
                "entry": In(range(depth)),
                "address": In(config.address_bits),
                "needed": In(1),
                "back": In(1),
                "request": Out(stream.Signature(load_request_layout(config))),
                "busy": Out(1),
            }
        )
        self._config, self._unit, self._depth = config, unit, depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        wish = data.StructLayout({"address": self._config.address_bits, "needed": 1})
        m.submodules.wishes = wishes = memory.Memory(shape=wish, depth=self._depth, init=[])
        write, read = wishes.write_port(), wishes.read_port(domain="comb")
        next_entry = Signal(range(self._depth))
        unsent, flying = Signal(range(self._depth + 1)), Signal(range(self._config.random_outstanding + 1))
        look, send = Signal(), Signal()
        request = self.request.payload
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.entry),
            write.data.address.eq(self.address),
            write.data.needed.eq(self.needed),
            read.addr.eq(next_entry),
            send.eq(read.data.needed),
            look.eq(
                (unsent != 0)
                & (~send | (flying != self._config.random_outstanding))
                & (~self.request.valid | self.request.ready)
            ),
            self.busy.eq(flying != 0),
        ]
        m.d.sync += [
            unsent.eq(unsent + self.write - look),
            flying.eq(flying + (look & send) - self.back),
            next_entry.eq(next_entry + look),
        ]
        with m.If(~self.request.valid | self.request.ready):
            m.d.sync += [
                self.request.valid.eq(look & send),
                request.line.eq(read.data.address[exact_log2(self._config.bus_bytes) :]),
                request.beats.eq(1),
                request.slot.unit.eq(self._unit),
                request.slot.entry.eq(next_entry),
            ]
        return m
