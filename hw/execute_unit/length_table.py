"""The vector length registers."""

from amaranth import Array, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config import ELEMENT_BYTES, Config
from daedal.hw.execute_unit.records import row_layout
from daedal.hw.execute_unit.schedule import READ_AFTER_WRITE
from daedal.hw.interfaces import ConfigBus
from daedal.hw.isa.execute import LENGTH_BITS
from daedal.hw.isa.program_words import VALUE_BITS, Unit


class LengthTable(wiring.Component):
    """Keeps each length as the row it makes; both look-ups are combinational.

    Members
    -------
    config_bus : ``In(ConfigBus())``
        Words of unit LENGTH are taken; they count from the next cycle on.
    launch : ``In(1)``
        All lengths become 0.
    index : ``In(LENGTH_BITS)``
        Length register to look up.
    row : ``Out(row_layout(config))``; bad : ``Out(1)``
        Its row; it is ``bad`` if there is no such register or its value is 0 or over ``vl_max``.
    fault_index : ``In(LENGTH_BITS)``; fault_value : ``Out(40)``
        A second look-up, of the value as it was written (0 before).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "launch": In(1),
                "index": In(LENGTH_BITS),
                "row": Out(row_layout(config)),
                "bad": Out(1),
                "fault_index": In(LENGTH_BITS),
                "fault_value": Out(VALUE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        layout, count = row_layout(self.config), self.config.lengths
        rows = Array(Signal(layout, name=f"row{n}") for n in range(count))
        good, written = Signal(count), Signal(count)
        m.submodules.values = values = memory.Memory(shape=VALUE_BITS, depth=count, init=[])
        write, read = values.write_port(), values.read_port(domain="comb")
        word = self.config_bus.word
        m.d.comb += [
            write.en.eq(self.config_bus.valid & (word.unit == Unit.LENGTH)),
            write.addr.eq(word.index),
            write.data.eq(word.value),
            read.addr.eq(self.fault_index),
            self.fault_value.eq(Mux(written.bit_select(self.fault_index, 1), read.data, 0)),
            self.row.eq(rows[self.index]),
            self.bad.eq(~good.bit_select(self.index, 1)),
        ]
        with m.If(self.launch):
            m.d.sync += [good.eq(0), written.eq(0)]
        with m.If(write.en):
            before = Signal(VALUE_BITS)
            m.d.comb += before.eq(word.value - 1)
            m.d.sync += [
                written.bit_select(word.index, 1).eq(1),
                good.bit_select(word.index, 1).eq(~before[exact_log2(self.config.vl_max) :].any()),
                self._row(rows[word.index], before),
            ]
        return m

    def _row(self, row: data.View, before: Signal) -> list[object]:
        """The row of ``before + 1`` elements."""
        lanes = exact_log2(self.config.lanes)
        last_beat = before[lanes : exact_log2(self.config.vl_max)]
        return [
            row.last_beat.eq(last_beat),
            row.tail_bytes.eq((before[:lanes] + 1) * ELEMENT_BYTES),
            row.wait.eq(Mux(last_beat < READ_AFTER_WRITE - 1, READ_AFTER_WRITE - 1 - last_beat, 0)),
        ]
