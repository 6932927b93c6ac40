"""The trees of reductions, whose beats go between those of the rows that follow."""

from amaranth import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.execute_unit.stage_layouts import partial_area, partial_beats, partial_step, register_number
from daedal.hw.isa.instructions import OCTET, PARTIAL_SUMS

PATIENCE = 31
"""Most cycles that a beat of a tree waits for one in which no row could issue a beat."""


def neutral(op: Value) -> Value:
    """What changes no partial result of this ``LaneOp``: an infinity for MAX and MIN, else -0.0."""
    extreme = op.matches(LaneOp.MAX, LaneOp.MIN)
    return Cat(Const(0, 23), extreme.replicate(8), op != LaneOp.MIN)


def combine_layout(config: Config) -> data.StructLayout:
    """A beat of a tree: beat ``beat`` of ``register`` becomes itself combined by ``op`` with the elements ``pick``
    further on in the beat ``offset`` further on. The ``final`` one is for scalar register ``target``. ``alone``:
    there is nothing to combine with.
    """
    return data.StructLayout(
        {
            "op": LaneOp,
            "register": register_number(config),
            "beat": range(config.register_beats),
            "offset": range(config.register_beats),
            "pick": range(config.lanes),
            "final": 1,
            "alone": 1,
            "target": range(config.scalars),
        }
    )


class ReductionTree(wiring.Component):
    """Combines the partial results of reductions: the upper half of them with the lower, and again, down to one.

    Those of ``octets`` go the other way: each with its neighbour, pairs with pairs, and fours with fours.

    A row of n beats has n beats of partial results, ``PARTIAL_SUMS`` elements at most, with what changes nothing behind
    the row's last element. Each halving begins ``read_after_write`` cycles after the last beat of what it needs, so
    trees of several rows are under way at a time. What is due goes before all else, unless it is to wait.

    Members
    -------
    start : ``In(1)``; op; area; target; last_beat; octets
        The last beat of a row to reduce is issued in this cycle, by this ``LaneOp`` into this area, for this scalar
        register, with ``octets`` or without; not in a cycle in which a beat is ``due``, or would be but for ``wait``.
    register
        The vector register in which the areas are; stable while there are any.
    wait : ``In(1)``
        A beat is not due yet, if it has waited less than ``PATIENCE`` cycles.
    due, here : ``Out(1)``; o : ``Out(combine_layout(config))``
        A beat, which is issued in this cycle; ``here`` says the same, from a register of its own.
    finished : ``Out(1)``; finished_area
        It is the last of its tree, which leaves this area.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "start": In(1),
                "op": In(LaneOp),
                "area": In(partial_area(config)),
                "target": In(range(config.scalars)),
                "last_beat": In(range(config.register_beats)),
                "octets": In(1),
                "register": In(register_number(config)),
                "wait": In(1),
                "due": Out(1),
                "here": Out(1),
                "o": Out(combine_layout(config)),
                "finished": Out(1),
                "finished_area": Out(partial_area(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        beats, lanes = partial_beats(self.config), exact_log2(self.config.lanes)
        here, waited, enough = Signal(), Signal(range(PATIENCE + 1)), Signal()
        # The other way round, or synthesis would make one register of the two.
        self._away = Signal(init=1)
        present, beat, last = Signal(self._step_layout()), Signal(range(max(beats // 2, 1))), Signal()
        following, final = Signal.like(present), Signal()
        o, away = self.o, present.distance[lanes:]
        op = Value.cast(self.op)
        m.d.comb += [
            self.due.eq(here & ~(self.wait & ~enough)),
            self.here.eq(~self._away & ~(self.wait & ~enough)),
            last.eq(beat == present.last),
            final.eq(present.distance[0]),
            self.finished.eq(self.due & last & final),
            self.finished_area.eq(present.area),
            o.op.eq(Mux(present.extreme, Mux(present.least, LaneOp.MIN, LaneOp.MAX), LaneOp.ADD)),
            o.register.eq(self.register),
            o.beat.eq(beat | (present.area << exact_log2(partial_step(self.config)))),
            o.offset.eq(away), o.pick.eq(present.distance[:lanes]), o.target.eq(present.target),
            o.final.eq(final), o.alone.eq(present.alone),
            following.eq(present),
            following.distance.eq(present.distance >> 1),
            following.last.eq(_below(away >> 1)),
        ]  # fmt: skip
        if self.config.octets:
            with m.If(present.octets):
                m.d.comb += [
                    final.eq(present.distance[2] | (present.distance[1] & present.short)),
                    following.distance.eq(present.distance << 1),
                    following.last.eq(present.last & ~away.any() & ~present.distance[lanes - 1]),
                ]
        with m.If(self.start):
            m.d.comb += [
                *self._first(following),
                following.area.eq(self.area), following.target.eq(self.target),
                following.extreme.eq(op.matches(LaneOp.MAX, LaneOp.MIN)), following.least.eq(op == LaneOp.MIN),
            ]  # fmt: skip
        with m.If(self.due):
            m.d.sync += [beat.eq(Mux(last, 0, beat + 1)), waited.eq(0), enough.eq(0)]
        with m.Elif(here):
            m.d.sync += [waited.eq(waited + 1), enough.eq(waited == PATIENCE - 1)]
        self._delay(m, here, present, following, final, goes_on=~here | (self.due & last))
        return m

    def _delay(
        self, m: Module, here: Signal, present: data.View, following: data.View, final: Value, *, goes_on: Value
    ) -> None:
        """What was issued in a cycle is ``here`` for its next step ``read_after_write`` cycles later, or more."""
        depth = latencies(self.config).read_after_write - 1
        m.submodules.steps = steps = memory.Memory(shape=present.shape(), depth=1 << ceil_log2(depth + 1), init=[])
        write, read = steps.write_port(), steps.read_port(domain="comb")
        waiting = Signal(depth)
        m.d.comb += [
            write.en.eq(1),
            write.data.eq(following),
            read.addr.eq(write.addr - depth),
        ]
        with m.If(goes_on):
            m.d.sync += [
                write.addr.eq(write.addr + 1),
                waiting.eq(Cat(self.start | (self.due & ~final), waiting)),
                here.eq(waiting[-1]),
                self._away.eq(~waiting[-1]),
                present.eq(read.data),
            ]

    def _first(self, step: data.View) -> list[object]:
        """The first step for a row with this last beat."""
        beats, lanes = partial_beats(self.config), exact_log2(self.config.lanes)
        digits = exact_log2(beats)
        # As many ones as the number of the last beat of partial results has digits.
        ones: list[Value] = [self.last_beat[k:].any() for k in range(digits)]
        alone: Value = Const(0)
        if self.config.lanes == 1:
            ones[0], alone = Const(1), self.last_beat == 0
        span = Value.cast(Cat(ones))
        beyond = self.last_beat[digits:].any()
        distance: Value = ((span + 1) << lanes) >> 1
        last: Value = (self.last_beat | beyond.replicate(max(digits, 1))) & (span >> 1)
        octets = []
        if self.config.octets:
            # Beats of eight: two of 4 lanes, of which a short row fills one, or one of 8.
            several = self.last_beat.any() if self.config.lanes < OCTET else Const(0)
            distance, last = Mux(self.octets, 1, distance), Mux(self.octets, several, last)
            octets = [step.octets.eq(self.octets), step.short.eq(~several & (self.config.lanes < OCTET))]
        return [step.distance.eq(distance), step.last.eq(last), step.alone.eq(alone), *octets]

    def _step_layout(self) -> data.StructLayout:
        """The elements from what is combined to what it is combined with, and the last beat that has such.

        ``short``: a row of ``octets`` that has half of them.
        """
        return data.StructLayout(
            {
                "distance": range(PARTIAL_SUMS // 2 + 1),
                "last": range(max(partial_beats(self.config) // 2, 1)),
                "alone": 1,
                **({"octets": 1, "short": 1} if self.config.octets else {}),
                "extreme": 1,
                "least": 1,
                "area": Shape.cast(partial_area(self.config)),
                "target": range(self.config.scalars),
            }
        )


def _below(power: Value) -> Value:
    """One less than a power of two; 0 for 0."""
    return Cat(power[k + 1 :].any() for k in range(max(len(power) - 1, 1)))


class PartialAreas(wiring.Component):
    """Gives out the places for partial results, which all lie in one vector register at a time.

    An area is ``partial_beats`` long, or all that a context owns. A row that has more beats than a context owns takes
    any, one of fewer those of its context's share, in turn.

    Members
    -------
    register; context; long
        What a row wants.
    take : ``In(1)``
        It gets ``area``; only if that is ``free``.
    free : ``Out(1)``; area : ``Out``
        Which one it is.
    leave : ``In(1)``; leave_area
        That one is no longer needed.
    any : ``Out(1)``; present : ``Out``
        Some are in use, in this register.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "register": In(register_number(config)),
                "context": In(range(config.context_count)),
                "long": In(1),
                "take": In(1),
                "free": Out(1),
                "area": Out(partial_area(config)),
                "leave": In(1),
                "leave_area": In(partial_area(config)),
                "any": Out(1),
                "present": Out(register_number(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        beats, config = partial_beats(self.config), self.config
        step = partial_step(config)
        # Contexts that own less than ``partial_beats`` share a flag with others.
        wide = exact_log2(beats // step)
        areas, share = config.register_beats // beats, config.context_beats // step
        used, turn = Signal(areas), Signal(range(areas))
        own = (turn & (share - 1)) | (self.context << exact_log2(share))
        m.d.comb += [
            self.any.eq(used.any()),
            self.area.eq(Mux(self.long, turn << wide, own)),
            self.free.eq(~used.bit_select(self.area >> wide, 1) & (~self.any | (self.present == self.register))),
        ]
        with m.If(self.leave):
            m.d.sync += used.bit_select(self.leave_area >> wide, 1).eq(0)
        with m.If(self.take):
            m.d.sync += [used.bit_select(self.area >> wide, 1).eq(1), turn.eq(turn + 1), self.present.eq(self.register)]
        return m
