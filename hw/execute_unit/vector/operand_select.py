"""Choice of operand a or b of a beat."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.stage_layouts import operand_layout
from daedal.hw.isa.elements import LANE
from daedal.hw.isa.instructions import OperandKind
from daedal.hw.lib.ladder import climb
from daedal.hw.lib.replicate import replicate


class OperandSelect(wiring.Component):
    """Brings operand ``a`` or ``b`` from wherever it is, one beat per cycle, ``schedule.SELECT`` cycles.

    Parameters
    ----------
    picks
        Whether elements can be picked.

    Members
    -------
    operand : ``In(operand_layout(config))``; scalar : ``In(32)``
        What the beat issued in this cycle wants.
    vector0, vector1 : ``In(8 * lane_bytes)``
        What the vector queues offer in this cycle.
    is_kept : ``In(1)``; kept : ``In(8 * lane_bytes)``
        Whether it wants a beat that was kept instead; that one.
    popped : ``Out(8 * lane_bytes)``
        The beat popped for the operand issued in the cycle before, if that wanted one.
    stored : ``In(8 * lane_bytes)``
        The beat's register, one cycle later, from the register file.
    pick : ``In(range(lanes))``
        Lane n gets element n + pick of ``stored``, when pick is a power of two greater than n or n is 0;
        with ``Config.octets`` also when pick is a power of two and 2 pick divides n.
    absolute : ``In(1)``
        Without its sign; only if elements can be picked.
    masked : ``In(lanes)``; neutral : ``In(32)``
        These lanes get ``neutral`` instead.
    o : ``Out(8 * lane_bytes)``
        The operand, two cycles after the issue.
    """

    def __init__(self, config: Config, *, picks: bool) -> None:
        self.config, self._picks = config, picks
        width = 8 * config.lane_bytes
        super().__init__(
            {
                "operand": In(operand_layout(config)),
                "scalar": In(LANE.bits),
                "vector0": In(width),
                "vector1": In(width),
                "is_kept": In(1),
                "kept": In(width),
                "popped": Out(width),
                "stored": In(width),
                "pick": In(range(config.lanes)),
                "absolute": In(1),
                "masked": In(config.lanes),
                "neutral": In(LANE.bits),
                "o": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        kind = self.operand.kind
        is_scalar = Value.cast(kind).matches(OperandKind.SCALAR, OperandKind.SCALAR_REGISTER)
        # Those that are there now go one way, in two LUTs for a bit; a register comes a cycle later.
        width, scalars = len(self.popped), self.scalar.replicate(self.config.lanes)
        other, steps = is_scalar | self.is_kept, Signal(3)
        m.d.comb += steps.eq(Cat(other, is_scalar | (self.operand.queue & ~self.is_kept), other))
        present = climb([self.vector0, self.vector1, self.kept, scalars], steps)
        popped = register(m, Mux((kind == OperandKind.QUEUE) | is_scalar, present, Const(0, width)), "popped")
        m.d.comb += self.popped.eq(popped)
        is_stored = register(m, (kind == OperandKind.REGISTER) & ~self.operand.zero, "is_stored")
        pick = register(m, self.pick, "pick_late") if self._picks and self.config.lanes > 1 else Const(0)
        absolute = register(m, self.absolute, "absolute_late")
        masked, neutral = register(m, self.masked, "masked_late"), register(m, self.neutral, "neutral_late")
        for n in range(self.config.lanes):
            # One of the two is zero, which costs less than a choice.
            picked = self._picked(m, n, pick) & replicate(is_stored, LANE.bits)
            value = popped.word_select(n, LANE.bits) | picked
            if self._picks:
                value = Cat(value[:31], value[31] & ~absolute)
            chosen = Mux(masked[n], neutral, value)
            m.d.comb += self.o.word_select(n, LANE.bits).eq(register(m, chosen, f"chosen{n}"))
        return m

    def _picked(self, m: Module, n: int, pick: Value) -> Value:
        """The element for lane ``n``."""
        elements = [self.stored.word_select(k, LANE.bits) for k in range(self.config.lanes)]
        picked = Signal(LANE.bits, name=f"picked{n}")
        m.d.comb += picked.eq(elements[n])
        with m.Switch(pick):
            for places in range(1, 1 << len(pick) if self.config.lanes > 1 else 1):
                one_step = places & (places - 1) == 0 and (places > n or (self.config.octets and n % (2 * places) == 0))
                if n + places < self.config.lanes and (n == 0 or one_step):
                    with m.Case(places):
                        m.d.comb += picked.eq(elements[n + places])
        return picked
