"""The passes of a reduction."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config import Config
from daedal.hw.execute_unit.lane_op import LaneOp
from daedal.hw.execute_unit.records import issue_layout
from daedal.hw.execute_unit.schedule import READ_AFTER_WRITE
from daedal.hw.isa.execute import PARTIAL_SUMS, OperandKind
from daedal.hw.state_names import name_states


def neutral(op: Value) -> Value:
    """What changes no partial result of this ``LaneOp``: an infinity for MAX and MIN, else -0.0."""
    extreme = op.matches(LaneOp.MAX, LaneOp.MIN)
    return Cat(Const(0, 23), extreme.replicate(8), op != LaneOp.MIN)


class ReduceSteps(wiring.Component):
    """Makes the passes of an instruction of mode REDUCE from its row.

    The partial results lie in vector register ``c``: as many as the row has elements, rounded up to a power of two,
    and ``PARTIAL_SUMS`` at most. (Two at least.) The first pass fills them with what changes nothing, the second
    accumulates the row, its destination going round. Each pass after that combines the upper half of them with the
    lower; the last goes to the scalar register.

    Members
    -------
    active : ``In(1)``; row : ``In(issue_layout(config))``
        A reduction waits.
    o : ``Out(stream.Signature(issue_layout(config)))``
        The passes.
    pops : ``Out(1)``
        This pass is the one that uses the instruction's operands.
    done : ``Out(1)``
        The last pass is taken in this cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "active": In(1),
                "row": In(issue_layout(config)),
                "o": Out(stream.Signature(issue_layout(config))),
                "pops": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._distance = distance = Signal(range(PARTIAL_SUMS // 2 + 1))
        self._taken = taken = Signal()
        o, row = self.o.payload, self.row
        span, lanes = self._span(), exact_log2(self.config.lanes)
        m.d.comb += [
            self.o.valid.eq(self.active),
            taken.eq(self.o.valid & self.o.ready),
            o.eq(row),
            o.destination.eq(row.c), o.to_scalar.eq(0),
        ]  # fmt: skip
        with m.FSM() as fsm:
            with m.State("FILL"):
                m.d.comb += self._fill(span)
                m.d.sync += distance.eq(((span + 1) << lanes) >> 1)
                with m.If(taken):
                    m.next = "ACCUMULATE"
            with m.State("ACCUMULATE"):
                m.d.comb += [self.pops.eq(1), o.c_used.eq(1), o.wrap.eq(1), o.masked.eq(1)]
                with m.If(taken):
                    m.next = "COMBINE"
            with m.State("COMBINE"):
                m.d.comb += [*self._combine(distance[lanes:], distance), self.done.eq(taken & distance[0])]
                with m.If(taken):
                    m.d.sync += distance.eq(distance >> 1)
                with m.If(self.done):
                    m.next = "FILL"
        name_states(fsm, "ReduceState")
        return m

    def _span(self) -> Value:
        """The number of the last beat of partial results: of so many ones as the row's last beat has digits."""
        beats = PARTIAL_SUMS // self.config.lanes
        ones = [self.row.row.last_beat[k:].any() for k in range(exact_log2(beats))]
        if self.config.lanes == 1:
            ones[0] = Const(1)
        return Cat(ones)

    def _fill(self, span: Value) -> list[object]:
        o = self.o.payload
        last = READ_AFTER_WRITE - 1
        return [
            o.op.eq(LaneOp.MOVE), o.partial.eq(1), o.c_used.eq(0),
            o.a.kind.eq(OperandKind.SCALAR), o.scalar.eq(neutral(Value.cast(self.row.op))), *_none(o.b),
            o.row.last_beat.eq(span), o.row.wait.eq(Mux(span < last, last - span, 0)),
        ]  # fmt: skip

    def _combine(self, beats: Value, distance: Signal) -> list[object]:
        """The upper half is operand ``a``, ``beats`` further on or in the same beat."""
        o, op = self.o.payload, Value.cast(self.row.op)
        return [
            o.op.eq(Mux(op.matches(LaneOp.MAX, LaneOp.MIN), op, LaneOp.ADD)), o.partial.eq(1),
            o.a.kind.eq(OperandKind.REGISTER), o.a.zero.eq(0), o.a.register.eq(self.row.c),
            o.a_offset.eq(beats), o.pick.eq(distance), *_none(o.b), o.c_used.eq(1), o.drain.eq(1),
            o.row.last_beat.eq(Mux(beats.any(), beats - 1, 0)), o.row.wait.eq(READ_AFTER_WRITE - 1),
            o.to_scalar.eq(distance[0]), o.destination.eq(Mux(distance[0], self.row.destination, self.row.c)),
        ]  # fmt: skip


def _none(operand: data.View) -> list[object]:
    """No operand."""
    return [operand.kind.eq(OperandKind.REGISTER), operand.zero.eq(1)]
