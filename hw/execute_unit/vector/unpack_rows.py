"""Rows of elements of 16, 8, 4 and 2 bits, and heads of rows, on their way into the execute unit."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_unsigned import FloatUnsigned
from daedal.hw.execute_unit.fpu.float_widen import FloatWiden
from daedal.hw.execute_unit.stage_layouts import kind_bits
from daedal.hw.interfaces import lane_beat_stream
from daedal.hw.isa.elements import FLOATS8, HEAD_WORDS, LANE, LENGTH_ELEMENTS, UNSIGNED
from daedal.hw.isa.words import LengthField

_UNITS = 16
"""Parts of a beat that are counted: what the lanes take of elements of 2 bits in a cycle."""

_WITHIN = 8
"""Most lanes for which elements of all types behind a head begin at a multiple of what is taken of them in a cycle."""


class UnpackRows(wiring.Component):
    """Makes of each beat as many of binary32 as its elements fill, one per cycle; ``WidenRows`` for all types.

    With 16 lanes a beat of 8-bit integers takes more of a beat than a head, so that behind one it lies in two of the
    parts of which these are chosen, maybe of two beats: the end of the last part is kept.

    Behind a queue it stands for the first row in that. It holds where in a beat it is and how much of the row's head
    was taken: a beat stays at ``i`` until its last part is taken, in the same cycle.

    Members
    -------
    i : ``In(lane_beat_stream(config))``
        Beats as they lie in memory.
    kind : ``In(kind_bits(config))``; head : ``In(1)``
        The type of the row of which a beat is taken, a ``LengthField``; instead a number of its head is, in all lanes.
    whole : ``In(1)``, with AFFINE
        Or the row is taken with its head, of which both numbers are at ``numbers`` with each of its beats.
    bias : ``In(1)``, if that takes two passes
        With it, before the first beat is taken: the second number of the head is in all lanes instead.
    last : ``In(1)``; tail_bytes : ``In(range(lane_bytes + 1))``
        The number of a head is taken with the beat that is the last one, and is in as many bytes as are wanted there.
    clear : ``In(1)``
        A launch starts.
    o : ``Out(lane_beat_stream(config))``
        Beats of binary32; the last one of a row has its ``last``. A beat has 0 bytes if this is not how the row can be
        taken: with a part of its head, or none of its elements, left.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(lane_beat_stream(config)),
                "kind": In(kind_bits(config)),
                "head": In(1),
                "last": In(1),
                "tail_bytes": In(range(config.lane_bytes + 1)),
                "clear": In(1),
                **({"whole": In(1), "numbers": Out(HEAD_WORDS * LANE.bits)} if config.has_affine else {}),
                **({"bias": In(1)} if config.two_pass else {}),
                "o": Out(lane_beat_stream(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        beat, lanes = self.i.payload, self.config.lanes
        heads = Signal(range(HEAD_WORDS + 1))
        step, end, before = Signal(range(_UNITS + 1)), Signal(range(_UNITS + 1)), 0
        if lanes > _WITHIN:
            before = HEAD_WORDS * _UNITS // lanes
        # Below 0 it is in the beat before, of which what is left was kept.
        at = Signal(signed(5)) if before else Signal(range(_UNITS))
        after = Signal(range(-before, 2 * _UNITS))
        final, bad, is_unsigned, stays = Signal(), Signal(), Signal(), Signal()
        over, straddles = Signal(), Signal()
        here, first, headed = self._place(m, at, heads)
        expected = Mux(self.last, self.tail_bytes, self.config.lane_bytes)
        m.d.comb += [
            is_unsigned.eq(self.kind.matches(*(kind.value for kind in UNSIGNED))),
            end.eq((beat.bytes << exact_log2(_UNITS // LANE.bytes)) >> exact_log2(lanes)),
            step.eq(Mux(self.head, _UNITS // lanes, self._step())),
            after.eq(here + step),
            over.eq(after >= end),
            final.eq(over),
            bad.eq(self._bad(heads, first, is_unsigned, final & beat.last, end)),
            self.o.payload.data.eq(self._data(m, here, is_unsigned, straddles, first)),
            self.o.payload.bytes.eq(Mux(bad, 0, Mux(self.head, expected, self._bytes(m, over, end, here)))),
            stays.eq(self.head & ~self.last),
            self.o.payload.last.eq(Mux(self.head, self.last, beat.last & final)),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & final & ~stays),
        ]
        following: Value = Mux(final, 0, after)
        if before:
            goes_on = Signal()
            m.d.comb += [
                straddles.eq(headed & (self.kind == LengthField.UNSIGNED8.value) & ~self._takes_number()),
                goes_on.eq(straddles & ~beat.last),
                final.eq(Mux(goes_on, after + before >= end, over)),
            ]
            following = Mux(final, Mux(goes_on, -before, 0), after)
        with m.If(self.clear):
            m.d.sync += [at.eq(0), heads.eq(0)]
        with m.Elif(self.o.valid & self.o.ready & ~stays):
            taken = Mux(headed, HEAD_WORDS, heads + self.head)
            m.d.sync += [at.eq(following), heads.eq(Mux(final & beat.last, 0, taken))]
        return m

    def _place(self, m: Module, at: Signal, heads: Signal) -> tuple[Value, Value, Value]:
        """Where in the beat elements are taken; whether they are a row's first, with the head; whether that is gone."""
        gone = heads == HEAD_WORDS
        if not self.config.has_affine:
            return at, Const(0), gone
        begun, first, numbers = Signal(), Signal(), Signal.like(self.numbers)
        found = self.i.payload.data[: len(numbers)]
        m.d.comb += [first.eq(self.whole & ~begun), self.numbers.eq(Mux(first, found, numbers))]
        with m.If(self.clear):
            m.d.sync += begun.eq(0)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += begun.eq(self.whole & ~self.o.payload.last)
            with m.If(first):
                m.d.sync += numbers.eq(found)
        number = _UNITS // self.config.lanes
        start: Value | int = HEAD_WORDS * number
        if self.config.two_pass:
            start = Mux(self.bias, number, start)
        return Mux(first, start, at), first, gone | first

    def _takes_number(self) -> Value:
        """Whether a number of a head is wanted."""
        return self.head | self.bias if self.config.two_pass else self.head

    def _bad(self, heads: Signal, first: Value, is_unsigned: Signal, ends: Value, end: Signal) -> Value:
        """Whether this is not how the row can be taken."""
        row = (heads != 0) & ~((heads == HEAD_WORDS) & is_unsigned)
        if self.config.has_affine:
            none = end <= HEAD_WORDS * _UNITS // self.config.lanes
            row = Mux(self.whole, ~is_unsigned | (first & (heads.any() | none)), row)
        return Mux(self.head, (heads == HEAD_WORDS) | ends, row)

    def _step(self) -> Value:
        """Units of a beat that a beat of elements of ``kind`` takes."""
        step: Value = Value.cast(_UNITS)
        for kind in self.config.length_fields[1:]:
            step = Mux(self.kind == kind.value, _UNITS * LENGTH_ELEMENTS[kind].bits // LANE.bits, step)
        return step

    def _bytes(self, m: Module, over: Signal, end: Signal, at: Value) -> Value:
        """Bytes of a beat of binary32: all but for the last part, which has what is left."""
        left = Signal.like(end)
        m.d.comb += left.eq(end - at)
        found: Value = self.i.payload.bytes
        for kind in self.config.length_fields[1:]:
            # A unit has 2 bits for each lane.
            size = 2 * self.config.lanes * LANE.bytes // LENGTH_ELEMENTS[kind].bits
            found = Mux(self.kind == kind.value, Mux(over, left * size, self.config.lane_bytes), found)
        return found

    def _data(self, m: Module, at: Value, is_unsigned: Signal, straddles: Signal, first: Value) -> Value:
        """The elements of ``kind`` at this place, or the number of the head."""
        whole, lanes, digits = self.i.payload.data, self.config.lanes, exact_log2(_UNITS)
        if lanes > _WITHIN:
            at = Mux(straddles, at + HEAD_WORDS, at)[:digits]
        parts = {LANE.bits: whole}
        for digit in reversed(range(digits)):
            bits = LANE.bits >> digits - digit
            part = Signal(bits * lanes, name=f"part{bits}")
            above = parts[2 * bits]
            m.d.comb += part.eq(Mux(at[digit], above[bits * lanes :], above[: bits * lanes]))
            parts[bits] = part
        if lanes > _WITHIN:
            parts[8] = self._straddling(m, parts[8], straddles, first)
        elements = []
        for n in range(lanes):
            element = whole.word_select(n, LANE.bits)
            if self.config.rounds:
                m.submodules[f"widen{n}"] = widen = FloatWiden(self.config)
                m.d.comb += [widen.i.eq(self._narrow(parts, n)), widen.kind.eq(self.kind)]
                element = Mux(self.kind == LengthField.ELEMENTS.value, element, widen.o)
            m.submodules[f"unsigned{n}"] = unsigned = FloatUnsigned()
            integer: Value = parts[2].word_select(n, 2)
            for kind in UNSIGNED[:2]:
                bits = LENGTH_ELEMENTS[kind].bits
                integer = Mux(self.kind == kind.value, parts[bits].word_select(n, bits), integer)
            m.d.comb += unsigned.i.eq(integer)
            number = parts[LANE.bits // lanes]
            elements.append(Mux(self._takes_number(), number, Mux(is_unsigned, unsigned.o, element)))
        return Cat(*elements)

    def _narrow(self, parts: dict[int, Value], n: int) -> Value:
        """An element of 16 bits, or in its lower half one of 8."""
        element = parts[16].word_select(n, 16)
        eights = [kind.value for kind in self.config.length_fields if LENGTH_ELEMENTS[kind] in FLOATS8]
        return Mux(self.kind.matches(*eights), parts[8].word_select(n, 8), element) if eights else element

    def _straddling(self, m: Module, part: Value, straddles: Signal, first: Value) -> Value:
        """8-bit integers that begin in the middle of the part before this one, or this part."""
        half = len(part) // 2
        behind_head = self.i.payload.data[half : 2 * half]
        kept = Signal(half, reset_less=True)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += kept.eq(part[half:])
        return Mux(straddles, Cat(Mux(first, behind_head, kept), part[:half]), part)
