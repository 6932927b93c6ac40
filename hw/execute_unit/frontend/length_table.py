"""The vector length registers."""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.frontend.defined_bits import note, sides
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.execute_unit.stage_layouts import row_layout
from daedal.hw.interfaces import ConfigBus
from daedal.hw.isa.elements import LANE, LENGTH_ELEMENTS
from daedal.hw.isa.instructions import LENGTH_BITS
from daedal.hw.isa.words import VALUE_BITS, Unit


class LengthTable(wiring.Component):
    """Keeps each length as the row it makes; both look-ups are combinational.

    Members
    -------
    config_bus : ``In(ConfigBus())``
        Words of unit LENGTH are taken; they count from the next cycle on. At its ``begin`` all lengths of that side
        become 0.
    side : ``In(1)``
        Of the launch whose lengths are looked up.
    index : ``In(LENGTH_BITS)``
        Length register to look up.
    row : ``Out(row_layout(config))``; bad : ``Out(1)``
        Its row; it is ``bad`` if there is no such register or its value is 0 or over ``vl_max``, or not a number that
        rows of its elements have (``Element.multiple``).
    fault_index : ``In(LENGTH_BITS)``; fault_value : ``Out(40)``
        A second look-up, of the value as it was written (0 before).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "side": In(1),
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
        size = ceil_log2(count)
        good, written = sides(count), sides(count)
        m.submodules.values = values = memory.Memory(shape=VALUE_BITS, depth=2 << size, init=[])
        m.submodules.rows = rows = memory.Memory(shape=layout, depth=2 << size, init=[])
        write, read = values.write_port(), values.read_port(domain="comb")
        write_row, read_row = rows.write_port(), rows.read_port(domain="comb")
        word, before, fits = self.config_bus.word, Signal(VALUE_BITS), Signal()
        m.d.comb += [
            write.en.eq(self.config_bus.valid & (word.unit == Unit.LENGTH)),
            write.addr.eq(Cat(word.index[:size], self.config_bus.side)),
            write.data.eq(word.value),
            read.addr.eq(Cat(self.fault_index[:size], self.side)),
            self.fault_value.eq(Mux(Array(written)[self.side].bit_select(self.fault_index, 1), read.data, 0)),
            before.eq(word.value - 1),
            fits.eq(self._fits(before)),
            write_row.en.eq(write.en),
            write_row.addr.eq(write.addr),
            *self._row(write_row.data, before),
            read_row.addr.eq(Cat(self.index[:size], self.side)),
            self.row.eq(read_row.data),
            self.bad.eq(~Array(good)[self.side].bit_select(self.index, 1)),
        ]
        note(m, self.config_bus, written, write.en)
        note(m, self.config_bus, good, write.en)
        with m.If(write.en & ~fits):
            m.d.sync += Array(good)[self.config_bus.side].bit_select(word.index, 1).eq(0)
        return m

    def _row(self, row: data.View, before: Signal) -> list[object]:
        """The row of ``before + 1`` elements."""
        lanes, most = exact_log2(self.config.lanes), latencies(self.config).read_after_write - 1
        last_beat = before[lanes : exact_log2(self.config.vl_max)]
        return [
            row.last_beat.eq(last_beat),
            row.tail_bytes.eq((before[:lanes] + 1) * LANE.bytes),
            row.wait.eq(Mux(last_beat < most, most - last_beat, 0)),
            *([row.kind.eq(self.config_bus.word.field)] if self.config.length_fields[1:] else []),
        ]

    def _fits(self, before: Signal) -> Value:
        """Whether there are rows of ``before + 1`` elements."""
        fits = ~before[exact_log2(self.config.vl_max) :].any()
        odd = []
        for kind in self.config.length_fields:
            digits = exact_log2(LENGTH_ELEMENTS[kind].multiple)
            if digits:
                odd.append((self.config_bus.word.field == kind.value) & ~before[:digits].all())
        return fits & ~Cat(*odd).any() if odd else fits
