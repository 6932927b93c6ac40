"""Issues the beats of a row into the lanes."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_divide import Factor
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.frontend.scoreboard import Scoreboard, near_wait
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.execute_unit.stage_layouts import is_long, issue_layout, partial_beats
from daedal.hw.execute_unit.vector.pass_order import PassOrder
from daedal.hw.interfaces import lane_beat_stream
from daedal.hw.isa.elements import LANE
from daedal.hw.isa.instructions import OperandKind

STATES = (
    "last", "busy", "active", "misframed0", "misframed1", "misframed_kept", "misframed", "bad_index", "no_room",
    "hazard", "starved", "starved0",
)  # fmt: skip


PRESENT = ("writes", "waits", "near", "long")
"""What is registered of the row that is held: it has results; later rows may have to wait for them, also to add to
them; and the row is a long one."""


class BeatIssue(wiring.Component):
    """Takes rows and issues each as beats, one per cycle, in order.

    A row is taken when its first beat will find the results it reads; before each beat it waits for the beats it pops.
    The next row is taken with the last beat, so rows follow each other without a gap.

    With ``Config.two_pass`` a row of AFFINE is issued twice: the bias is added to ``c`` and nothing is popped; ``loop``
    cycles later or more the row, which is popped then, is added to that.

    Members
    -------
    i : ``In(stream.Signature(issue_layout(config)))``
        Rows.
    factor : ``In(Factor)``
        The reciprocal for one that divides; ``held_factor`` is that of ``present``.
    vector0, vector1 : ``In(lane_beat_stream(config))``
        Vector queues; both are popped in lockstep by a row that uses both.
    kept : ``In(lane_beat_stream(config))``; fits : ``In(1)``
        Rows that are kept. Whether ``present``, the row that was taken last, needs no room among them, or has it.
    halt : ``In(1)``
        Issue nothing.
    combining : ``In(1)``
        A tree has a beat in this cycle.
    finished : ``In(1)``; target
        That is its last, and goes to this scalar register.
    fire : ``Out(1)``
        A beat is issued in this cycle.
    begins : ``Out(1)``
        A beat of a division by a long reciprocal is issued for the first of two times. The second one follows at once,
        or it begins again.
    biases : ``Out(1)``, with two passes
        The beat is one of the first of them, and takes the bias of the row in front of queue 0.
    present : ``Out(issue_layout(config))``; beat : ``Out(range(register_beats))``
        Its row and its number in that.
    last : ``Out(1)``
        That is the row's last beat.
    flows : ``Out(1)``
        A beat was issued in the cycle before, and nothing but a beat of a tree keeps the row from issuing one in this;
        not of the last beat that a reduction has.
    flying : ``In(1)``
        Some result of a beat issued in an earlier cycle is still to come.
    element : ``In(32)``
        What the scalar register has that ``present`` names as its index.
    busy : ``Out(1)``
        A row is held, and this cycle does not issue its last beat.
    active : ``Out(1)``
        A row is held.
    misframed0, misframed1 : ``Out(1)``
        The beat popped from that queue in this cycle is not the one that its row needs.
    misframed_kept : ``Out(1)``; misframed : ``Out(1)``
        The same of a beat that was kept; of any.
    bad_index, no_room : ``Out(1)``
        There is no element ``element``; no room to keep the row. The row is never issued.
    hazard, starved : ``Out(1)``
        A row waits in this cycle for results, taken or not; for a vector queue.
    starved0 : ``Out(1)``
        It is vector queue 0 that it waits for, perhaps not only that.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "i": In(stream.Signature(issue_layout(config))),
                "vector0": In(lane_beat_stream(config)),
                "vector1": In(lane_beat_stream(config)),
                "kept": In(lane_beat_stream(config)),
                "fits": In(1),
                "halt": In(1),
                "combining": In(1),
                "finished": In(1),
                "target": In(range(config.scalars)),
                "factor": In(Factor),
                "held_factor": Out(Factor),
                "fire": Out(1),
                "begins": Out(1),
                "flows": Out(1),
                "present": Out(issue_layout(config)),
                "beat": Out(range(config.register_beats)),
                "flying": In(1),
                "element": In(LANE.bits),
                **({"biases": Out(1)} if config.two_pass else {}),
                **{name: Out(1) for name in STATES},
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        first, last, ready = Signal(), self.last, Signal()
        conflicts, crowded, row, missing = Signal(), Signal(), self.present, Signal()
        goes_on, waited = Signal(), Signal()
        # A row that has waited is taken in a cycle in which nothing is issued.
        m.d.sync += [goes_on.eq(self.fire & ~last), waited.eq(conflicts)]
        unwritten, waits = row.kept & ~self.kept.valid, Signal()
        ended, early = self.fire & last, crowded | unwritten
        if self.config.two_pass:
            m.submodules.order = self._order = PassOrder(self.config)
            ended, early = ended & ~self._order.is_first, early | self._order.rests
        beyond, looked, unknown, able = Signal(), Signal(), Signal(), Signal()
        half, begun = Signal(), Signal()
        m.d.sync += begun.eq(self.begins)
        m.d.sync += [beyond.eq(self._beyond()), looked.eq(self.busy)]
        m.d.comb += [
            conflicts.eq(self._conflicts(m)),
            crowded.eq(self._crowded(m)),
            self.flows.eq(goes_on & ~crowded & ~(last & row.reduces)),
            waits.eq(early),
            self.hazard.eq(~self.combining & Mux(self.active, waits, self.i.valid & (conflicts | waited))),
            self.no_room.eq(self.active & first & ~self.halt & ~self.fits),
            # The element is looked at a cycle before it is used.
            self.bad_index.eq(self.active & ~self.halt & row.indexed & looked & beyond),
            unknown.eq(row.indexed & (~looked | beyond)),
            # What comes late comes last: that a tree has a beat, and that a queue has none.
            able.eq(self.active & ~waits & ~self.halt & ~unknown & ~(first & ~self.fits)),
            ready.eq(able & ~self.combining),
            self.fire.eq(able & ~self.combining & ~missing & ~half),
            self.begins.eq(able & ~self.combining & half),
            half.eq(row.divides & self.held_factor.long & ~begun),
            self.busy.eq(self.active & ~ended),
            self.i.ready.eq(~self.busy & ~conflicts),
        ]
        self._pop(m, ready, last, missing)
        with m.If(self.fire):
            m.d.sync += [
                self.beat.eq(self.beat + 1),
                first.eq(0),
                last.eq(self.beat + 1 == self.present.row.last_beat),
            ]
        with m.If(~self.busy):
            m.d.sync += [
                self.active.eq(self.i.valid & ~conflicts), self.present.eq(self.i.payload),
                self.held_factor.eq(self.factor),
                self.beat.eq(0), first.eq(1), last.eq(self.i.payload.row.last_beat == 0),
            ]  # fmt: skip
        if self.config.two_pass:
            self._turn(m)
        return m

    def _turn(self, m: Module) -> None:
        """The first pass over a row adds the bias, and the second one the row to what that gave."""
        order, row, new = self._order, self.present, self.i.payload
        m.d.comb += [
            order.takes.eq(~self.busy), order.twice.eq(new.affine), order.ends.eq(self.fire & self.last),
            order.last_beat.eq(row.row.last_beat), self.biases.eq(order.is_first),
        ]  # fmt: skip
        with m.If(order.turns):
            m.d.sync += [
                row.affine.eq(1), row.op.eq(LaneOp.FMA), row.c.eq(row.destination), row.c_used.eq(1),
                self.beat.eq(0), self.last.eq(row.row.last_beat == 0),
            ]  # fmt: skip
        with m.If(~self.busy & new.affine):
            m.d.sync += [row.affine.eq(0), row.op.eq(Mux(new.plain, LaneOp.ADD, LaneOp.MUL_ADD))]

    def _conflicts(self, m: Module) -> Signal:
        """Whether results would be missing that the next row needs, if the present one ends in this cycle."""
        m.submodules.hazards = hazards = Scoreboard(self.config)
        row, present = self.i.payload, self.present
        conflicts, writes, waits, near, long = (Signal(name=name) for name in ("conflicts", *PRESENT))
        results, nearest = row.writes & ~row.reduces, near_wait(self.config)
        with m.If(~self.busy):
            m.d.sync += [
                writes.eq(results), waits.eq(results & row.row.wait.any()),
                near.eq(results & (row.row.wait >= nearest)),
                long.eq(results & is_long(self.config, row.row)),
            ]  # fmt: skip
        a_register, b_register = (one.kind == OperandKind.REGISTER for one in (row.a, row.b))
        a_scalar, b_scalar = (one.kind == OperandKind.SCALAR_REGISTER for one in (row.a, row.b))
        m.d.comb += [
            hazards.issued.eq(self.finished | (self.active & ~self.busy & writes)),
            # The scalar that a tree ends with is named by nobody before the next cycle.
            hazards.ends_to.eq(present.destination), hazards.ends_waits.eq(self.active & waits),
            hazards.ends_near.eq(self.active & near), hazards.ends_long.eq(self.active & long),
            hazards.ends_to_scalar.eq(present.to_scalar),
            hazards.to_scalar.eq(present.to_scalar | self.finished),
            hazards.a_scalar.eq(a_scalar), hazards.b_scalar.eq(b_scalar), hazards.c_scalar.eq(row.c_scalar),
            hazards.index.eq(row.index),
            hazards.destination.eq(Mux(self.finished, self.target, present.destination)),
            hazards.wait.eq(Mux(self.finished, latencies(self.config).read_after_write - 1, present.row.wait)),
            hazards.issued_context.eq(present.context), hazards.issued_long.eq(long),
            hazards.a.eq(row.a.register), hazards.b.eq(row.b.register), hazards.c.eq(row.c),
            hazards.context.eq(row.context), hazards.long.eq(is_long(self.config, row.row)),
            conflicts.eq(
                # A division comes when its dividend is there.
                ((a_register | a_scalar) & ~row.a.zero & ~row.divides & hazards.a_waits)
                | ((b_register | b_scalar) & ~row.b.zero & hazards.b_waits)
                | (row.c_used & ~row.reduces & hazards.c_waits)
                | (row.indexed & (hazards.index_waits | self.flying | self.active | self.combining))
            ),
        ]  # fmt: skip
        return conflicts

    def _crowded(self, m: Module) -> Value:
        """Whether the partial results to which the beat would be added are less than ``loop`` cycles old."""
        around, loop = partial_beats(self.config), latencies(self.config).loop
        if not self.config.scalars or around >= loop:
            return Const(0)
        recent, count = Signal(loop - 2), Signal(range(loop))
        m.d.comb += count.eq(sum(recent[1:], recent[0]))
        m.d.sync += recent.eq(Cat(self.fire, recent))
        crowded = self._is_crowded(m, around, count)
        if self.config.octets:
            crowded = Mux(self.present.octets, self._is_crowded(m, around // 2, count), crowded)
        return self.present.reduces & crowded

    def _is_crowded(self, m: Module, around: int, count: Signal) -> Value:
        """The same of partial results that are so many beats; ``count`` of the last ``loop`` - 2 cycles had a beat."""
        # A register says it, so that it is there when the cycle begins.
        full, again = Signal(), Signal()
        m.d.sync += full.eq(Mux(self.fire, count >= around - 1, count >= around))
        with m.If(self.fire):
            m.d.sync += again.eq((self.beat + 1)[exact_log2(around) :].any())
        with m.If(~self.busy):
            m.d.sync += again.eq(0)
        return again & full

    def _beyond(self) -> Value:
        """Whether ``element`` is no element of a register, or not one of the context's."""
        of_all, share = self.config.vl_max, self.config.context_beats * self.config.lanes
        beyond_share = self.element[exact_log2(share) :].any() & (self.present.context != 0)
        return self.element[exact_log2(of_all) :].any() | beyond_share

    def _pop(self, m: Module, ready: Signal, last: Signal, missing: Signal) -> None:
        """Pop what the row needs, and check that it is what the row expects."""
        row = self.present
        needs = Signal(2)
        with m.If(~self.busy):
            for n in range(2):
                operands = (self.i.payload.a, self.i.payload.b)
                uses = [(one.kind == OperandKind.QUEUE) & (one.queue == n) for one in operands]
                m.d.sync += needs[n].eq((uses[0] & ~self.i.payload.kept) | uses[1])
        m.d.comb += [
            missing.eq((needs[0] & ~self.vector0.valid) | (needs[1] & ~self.vector1.valid)),
            self.starved0.eq(ready & needs[0] & ~self.vector0.valid),
            self.starved.eq(ready & missing),
        ]
        expected, whole = Signal(range(self.config.lane_bytes + 1)), Signal(range(self.config.lane_bytes + 1))
        m.d.comb += [expected.eq(Mux(last, row.row.tail_bytes, self.config.lane_bytes)), whole.eq(expected)]
        if self.config.rounds:
            # A row of 16-bit elements comes in granules, each of two of them: an odd one has one more behind it.
            is_odd = row.row.kind.any() & ~(row.head if self.config.quantised else Const(0))
            m.d.comb += whole.eq(expected + Mux(is_odd, expected & LANE.bytes, 0))
        pops0 = needs[0] & ~self.biases if self.config.two_pass else needs[0]
        found = []
        for queue, size, wrong, pops in (
            (self.vector0, whole, self.misframed0, pops0),
            (self.vector1, expected, self.misframed1, needs[1]),
            (self.kept, expected, self.misframed_kept, row.kept),
        ):
            beat, differs = queue.payload, Signal()
            m.d.comb += [
                queue.ready.eq(self.fire & pops),
                differs.eq(pops & ((beat.last != last) | (beat.bytes != size))),
                wrong.eq(self.fire & differs),
            ]
            found.append(differs)
        m.d.comb += self.misframed.eq(self.fire & Cat(*found).any())
