"""Elements of 1 to 8 bytes out of lines."""

from amaranth.hdl import Array, Cat, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.spread import spread

WORD_BYTES = 8


def word_of(line: Value, offset: Value) -> Value:
    """The 64-bit word of ``line`` that byte ``offset`` is in."""
    words = [line.word_select(n, 8 * WORD_BYTES) for n in range(len(line) // (8 * WORD_BYTES))]
    return Array(words)[offset[3:]] if len(words) > 1 else words[0]


class Element(wiring.Component):
    """The element of ``1 << size`` bytes at byte ``offset`` of ``word``, extended to 64 bits; combinational.

    Bits of ``offset`` below the element's size are ignored.
    """

    word: In(64)
    offset: In(3)
    size: In(2)
    is_signed: In(1)
    value: Out(64)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        half, quarter, byte = Signal(32), Signal(16), Signal(8)
        m.d.comb += [
            half.eq(self.word.word_select(self.offset[2], 32)),
            quarter.eq(half.word_select(self.offset[1], 16)),
            byte.eq(quarter.word_select(self.offset[0], 8)),
        ]
        with m.Switch(self.size):
            for code, part in enumerate((byte, quarter, half)):
                with m.Case(code):
                    m.d.comb += self.value.eq(self._extended(part))
            with m.Default():
                m.d.comb += self.value.eq(self.word)
        return m

    def _extended(self, part: Signal) -> Value:
        return Cat(part, spread(self.is_signed & part[-1], 64 - len(part)))
