"""The stream registers of a serial level's present iteration."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import names
from daedal.hw.config.core import Config
from daedal.hw.isa.words import Destination
from daedal.hw.lib.replicate import replicate


class SerialRegisters(wiring.Component):
    """What an iteration has written, and of its parent the rest.

    The outermost level has no parent: its registers are 0 at the start of each iteration, and it holds nothing else.

    Members
    -------
    parent : ``In(address_bits).array(registers)``
        The parent's registers, which stay while the activation lasts.
    clear : ``In(1)``
        An iteration starts: nothing is written.
    write, target, value : ``In(1)``, ``In(Destination)``, ``In(address_bits)``
    chosen, parents : ``In(registers)``, ``In(1)``
        A bit for the register to be read, if any; whether that of the parent.
    operand : ``Out(address_bits)``
        Its value; 0 if none is chosen. Combinational.
    view : ``Out(address_bits).array(registers)``
        The iteration's registers, unless ``parents``.
    """

    def __init__(self, config: Config, level: int) -> None:
        bits, count = config.address_bits, config.registers
        super().__init__(
            {
                "parent": In(bits).array(count),
                "clear": In(1),
                "write": In(1),
                "target": In(Destination),
                "value": In(bits),
                "chosen": In(count),
                "parents": In(1),
                "operand": Out(bits),
                "view": Out(bits).array(count),
            }
        )
        self._outermost = level == 0

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        operand: Value = Value.cast(0)
        for number, (view, parent) in enumerate(zip(self.view, self.parent, strict=True)):
            written = Signal.like(view, name=f"written{number}")
            writes = self.write & names(self.target, number)
            with m.If(writes):
                m.d.sync += written.eq(self.value)
            if self._outermost:
                with m.If(self.clear):
                    m.d.sync += written.eq(0)
                m.d.comb += view.eq(written)
                read = self.chosen[number] & ~self.parents
            else:
                is_written = Signal(name=f"is_written{number}")
                m.d.sync += is_written.eq((is_written | writes) & ~self.clear)
                m.d.comb += view.eq(Mux(is_written & ~self.parents, written, parent))
                read = self.chosen[number]
            operand = operand | (view & replicate(read, len(view)))
        m.d.comb += self.operand.eq(operand)
        return m
