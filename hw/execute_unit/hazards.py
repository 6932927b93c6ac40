"""Which vector registers still wait for results."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config import Config
from daedal.hw.execute_unit.schedule import LOOP, READ_AFTER_WRITE


class Hazards(wiring.Component):
    """Counts down, for each register, the cycles until a row that starts then finds its results beat by beat.

    A row of n beats was issued in n cycles at least, so what starts k cycles after its last beat follows each
    beat by k + n - 1 cycles or more. An operand ``a`` or ``b`` must follow by ``READ_AFTER_WRITE`` cycles,
    ``c`` by ``LOOP``.

    Members
    -------
    issued : ``In(1)``; destination; wait : ``In(range(READ_AFTER_WRITE))``
        The last beat of a row is issued that goes to ``destination``; ``wait`` is READ_AFTER_WRITE - n, at
        least 0.
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
                **{name: In(register) for name in "abc"},
                **{f"{name}_waits": Out(1) for name in "abc"},
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        registers = self.config.vector_registers
        waits, c_waits = Signal(registers), Signal(registers)
        for n in range(registers):
            left = Signal(range(READ_AFTER_WRITE), name=f"left{n}")
            with m.If(self.issued & (self.destination == n)):
                m.d.sync += left.eq(self.wait)
            with m.Elif(waits[n]):
                m.d.sync += left.eq(left - 1)
            m.d.comb += [waits[n].eq(left != 0), c_waits[n].eq(left > READ_AFTER_WRITE - LOOP)]
        m.d.comb += [
            self.a_waits.eq(waits.bit_select(self.a, 1)),
            self.b_waits.eq(waits.bit_select(self.b, 1)),
            self.c_waits.eq(c_waits.bit_select(self.c, 1)),
        ]
        return m
