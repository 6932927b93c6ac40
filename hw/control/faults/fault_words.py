"""The words of a record about a launch's fault, or its first warning, in one small memory."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import RecordWord
from daedal.hw.lib.ram_style import DISTRIBUTED_RAM

NUMBER_BITS = 4
WARNED = 14
"""The words of warnings are behind those of a fault, one for each side."""


class FaultWords(wiring.Component):
    """Keeps a fault's value, address and registers, copied one after the other, and the first warning of each side.

    A unit's fault stays as it is until the unit is reset, so there is time: the words are copied in the ``copy_cycles``
    cycles after ``copy``. Each is in memory a cycle later, and a launch's last warning is known as late; the record
    that asks for them is written later than that.

    Members
    -------
    copy : ``In(1)``
        Strobe: there is a fault.
    number : ``Out``, word : ``In(64)``
        The word (``RecordWord``) that is copied in this cycle, 0 if none is, and what it is.
    forget : ``In(1)``
        Strobe: another launch is the present one, or the fault is taken back.
    warning, warned_side : ``In(1)``, warned_value : ``In(64)``
        Strobe: a value of the launch of this side was replaced.
    begin, begin_side : ``In(1)``
        Strobe: a launch begins on this side, without a warning.
    side : ``In(1)``
        Of the present launch.
    asked : ``In``, told : ``Out(64)``
        A word of the record, below COUNTERS and not HEAD; VALUE is that of the warning if there is no fault.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("copy", "forget", "warning", "warned_side", "begin", "begin_side", "side")
        super().__init__(
            {
                **{name: In(1) for name in strobes},
                "warned_value": In(64),
                "number": Out(NUMBER_BITS),
                "word": In(64),
                "asked": In(NUMBER_BITS),
                "told": Out(64),
            }
        )
        self._last = RecordWord.REGISTER0.value + config.registers - 1

    @property
    def copy_cycles(self) -> int:
        """Cycles in which the units must keep their faults."""
        return self._last

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.words = words = Memory(shape=64, depth=1 << NUMBER_BITS, init=[], attrs=DISTRIBUTED_RAM)
        write, read = words.write_port(), words.read_port(domain="comb")
        faulted, warned, copying, note, of_warning = Signal(), Signal(2), Signal(), Signal(), Signal()
        only_warned = Signal()
        m.d.sync += [
            write.en.eq(copying | note),
            write.addr.eq(Mux(copying, self.number, WARNED + self.warned_side)),
            write.data.eq(Mux(copying, self.word, self.warned_value)),
            only_warned.eq(~faulted & warned.bit_select(self.side, 1)),
        ]
        m.d.comb += [
            copying.eq(self.number != 0),
            note.eq(self.warning & ~warned.bit_select(self.warned_side, 1) & ~faulted),
            of_warning.eq(only_warned & (self.asked == RecordWord.VALUE)),
            read.addr.eq(Mux(of_warning, WARNED + self.side, self.asked)),
            self.told.eq(Mux(faulted | of_warning, read.data, 0)),
        ]
        with m.If(note):
            m.d.sync += warned.bit_select(self.warned_side, 1).eq(1)
        with m.If(self.begin):
            m.d.sync += warned.bit_select(self.begin_side, 1).eq(0)
        with m.If(self.copy):
            m.d.sync += [faulted.eq(1), self.number.eq(RecordWord.VALUE)]
        with m.Elif(copying):
            m.d.sync += self.number.eq(Mux(self.number == self._last, 0, self.number + 1))
        with m.If(self.forget):
            m.d.sync += faulted.eq(0)
        return m
