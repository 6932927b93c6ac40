"""Elements of 1 to 8 bytes out of lines."""

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.lib.replicate import replicate

WORD_BYTES = 8


def word_of(line: Value, offset: Value) -> Value:
    """The 64-bit word of ``line`` that byte ``offset`` is in."""
    words = [line.word_select(n, 8 * WORD_BYTES) for n in range(len(line) // (8 * WORD_BYTES))]
    return Array(words)[offset[3:]] if len(words) > 1 else words[0]


class ElementShift(wiring.Component):
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
        is_byte, to_quarter, to_half, sign, top = self.size == 0, self.size < 2, self.size < 3, Signal(), Signal(3)
        # Offset bits below the element's size choose nothing, so the low part of each choice is the element.
        m.d.comb += [
            half.eq(self.word.word_select(self.offset[2] & to_half, 32)),
            quarter.eq(half.word_select(self.offset[1] & to_quarter, 16)),
            byte.eq(quarter.word_select(self.offset[0] & is_byte, 8)),
            # The sign is chosen beside all that, since most bits wait for it: in the element's last byte.
            top.eq(self.offset | Cat(~is_byte, ~to_quarter, ~to_half)),
            sign.eq(self.is_signed & Cat(self.word[7::8]).bit_select(top, 1)),
            self.value.eq(
                Cat(
                    byte,
                    Mux(is_byte, replicate(sign, 8), quarter[8:]),
                    Mux(to_quarter, replicate(sign, 16), half[16:]),
                    Mux(to_half, replicate(sign, 32), self.word[32:]),
                )
            ),
        ]
        return m
