"""Which vector registers still wait for results."""

from amaranth import Cat, Module, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.execute_unit.schedule import LOOP, READ_AFTER_WRITE
from daedal.hw.interfaces import context_bits


class Hazards(wiring.Component):
    """Tells whether a row that starts now would find its results beat by beat.

    A row of n beats was issued in n cycles at least, so what starts k cycles after its last beat follows each
    beat by k + n - 1 cycles or more. An operand ``a`` or ``b`` must follow by ``READ_AFTER_WRITE`` cycles, in
    whatever context; ``c``, which matters most, by ``LOOP`` in the same context.

    Members
    -------
    issued : ``In(1)``; destination; wait : ``In(range(READ_AFTER_WRITE))``
        The last beat of a row is issued that goes to ``destination``; ``wait`` is READ_AFTER_WRITE - n, at
        least 0.
    context
        Of the row that is issued, and of the one that would start.
    a, b, c
        Register numbers to ask for.
    a_waits, b_waits, c_waits : ``Out(1)``
        An operand in that register must not be used by a row that starts in this cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        register = range(config.vector_registers)
        super().__init__(
            {
                "issued": In(1),
                "destination": In(register),
                "wait": In(range(READ_AFTER_WRITE)),
                "context": In(context_bits(config)),
                **{name: In(register) for name in "abc"},
                **{f"{name}_waits": Out(1) for name in "abc"},
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        registers = self.config.vector_registers
        waits = Signal(registers)
        for n in range(registers):
            left = Signal(range(READ_AFTER_WRITE), name=f"left{n}")
            with m.If(self.issued & (self.destination == n)):
                m.d.sync += left.eq(self.wait)
            with m.Elif(waits[n]):
                m.d.sync += left.eq(left - 1)
            m.d.comb += waits[n].eq(left != 0)
        m.d.comb += [
            self.a_waits.eq(waits.bit_select(self.a, 1)),
            self.b_waits.eq(waits.bit_select(self.b, 1)),
            self.c_waits.eq(self._accumulates(m)),
        ]
        return m

    def _accumulates(self, m: Module) -> Value:
        """Whether ``c`` was the destination too shortly ago: a place for each of the last ``LOOP`` - 1 cycles."""
        ours, waits = Cat(self.context, self.c), []
        before = [self.issued, Cat(self.context, self.destination), self.wait]
        for age in range(1, LOOP):
            recent = [Signal.like(value, name=f"{name}{age}") for name, value in zip(NAMES, before, strict=True)]
            m.d.sync += [to.eq(of) for to, of in zip(recent, before, strict=True)]
            valid, destination, wait = before = recent
            waits.append(valid & (destination == ours) & (wait >= READ_AFTER_WRITE - LOOP + age))
        return Cat(*waits).any()


NAMES = ("issued", "destination", "wait")
