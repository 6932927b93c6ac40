"""The checksum of a program's words, in a word a cycle."""

from functools import reduce
from operator import xor

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.isa.checksum import SUM_BITS, SUM_POLYNOMIAL, SUM_ROTATIONS
from daedal.hw.isa.program import WORD_BYTES


class Checksum(wiring.Component):
    """The sum of ``hw/isa/checksum.py``.

    Members
    -------
    clear : ``In(1)``
        The next word is a program's first.
    word : ``In(64)``, add : ``In(1)``
        A word of the program, in cycles with ``add``.
    fits : ``Out(1)``
        The words so far are a whole program with its checksum. Known in the cycle after the last of them.
    """

    clear: In(1)
    word: In(8 * WORD_BYTES)
    add: In(1)
    fits: Out(1)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        so_far = Signal(SUM_BITS)
        carried = Mux(so_far[-1], Const(SUM_POLYNOMIAL, SUM_BITS), 0)
        with m.If(self.clear):
            m.d.sync += so_far.eq(0)
        with m.Elif(self.add):
            m.d.sync += so_far.eq(so_far ^ Cat(Const(0, 1), so_far[:-1]) ^ carried ^ self._folded())
        m.d.comb += self.fits.eq(so_far == 0)
        return m

    def _folded(self) -> Value:
        lowest, *others = (self.word.word_select(k, SUM_BITS) for k in range(len(self.word) // SUM_BITS))
        turned = [each ^ each.rotate_left(places) for each, places in zip(others, SUM_ROTATIONS, strict=True)]
        return reduce(xor, turned, lowest)
