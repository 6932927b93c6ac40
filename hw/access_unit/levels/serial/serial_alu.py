"""The one adder of a serial level, and what else its operations need."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.multiplier import Multiplier
from daedal.hw.config.core import Config
from daedal.hw.isa.words import SHIFTS, AluOp
from daedal.hw.lib.replicate import replicate


class Work(data.Struct):
    """What is to be done with ``a`` and ``b``: ``add`` (or subtract, if ``minus``), or one of the others.

    ``minus`` is also wanted by all that compare.
    """

    minus: 1
    add: 1
    multiply: 1
    both: 1
    pass_a: 1
    smaller: 1
    greater: 1
    equal: 1
    unequal: 1
    less: 1


def work_of(op: Value) -> dict[str, Value]:
    """The members of ``Work`` for an AluOp; shifts pass what has been shifted already."""
    return {
        "minus": op.matches(AluOp.SUB, AluOp.MIN, AluOp.MAX, AluOp.LESS),
        "add": op.matches(AluOp.ADD, AluOp.SUB),
        "multiply": op == AluOp.MUL,
        "both": op == AluOp.AND,
        "pass_a": op.matches(*SHIFTS),
        "smaller": op == AluOp.MIN,
        "greater": op == AluOp.MAX,
        "equal": op == AluOp.EQUAL,
        "unequal": op == AluOp.NOT_EQUAL,
        "less": op == AluOp.LESS,
    }


class SerialAlu(wiring.Component):
    """Combinational, but for products: their factors must have been there for a cycle.

    Members
    -------
    a, b : ``In(address_bits)``
    work : ``In(Work)``
    carry : ``In(1)``
        1 more.
    total : ``Out(address_bits + 1)``
        Sum or difference of the signed operands.
    equal : ``Out(1)``
    result : ``Out(address_bits)``
    """

    def __init__(self, config: Config, *, multiplies: bool) -> None:
        bits = config.address_bits
        super().__init__(
            {
                "a": In(bits),
                "b": In(bits),
                "work": In(Work),
                "carry": In(1),
                "total": Out(bits + 1),
                "equal": Out(1),
                "result": Out(bits),
            }
        )
        self._config, self._multiplies = config, multiplies

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        a, b, work, bits = self.a, self.b, self.work, self._config.address_bits
        less, takes = Signal(), Signal(2)
        other = Cat(b, b[-1]) ^ replicate(work.minus, bits + 1)
        m.d.comb += [
            self.total.eq((Cat(1, a, a[-1]) + Cat(work.minus | self.carry, other))[1 : bits + 2]),
            self.equal.eq(a == b),
            less.eq(self.total[-1]),
            # a, b, or a AND b: which of the operands a one must be in.
            takes[0].eq(work.both | work.pass_a | Mux(less, work.smaller, work.greater)),
            takes[1].eq(work.both | Mux(less, work.greater, work.smaller)),
        ]
        chosen = (a | replicate(~takes[0], bits)) & (b | replicate(~takes[1], bits)) & replicate(takes.any(), bits)
        truth = (work.equal & self.equal) | (work.unequal & ~self.equal) | (work.less & less)
        result = chosen | (self.total[:bits] & replicate(work.add, bits)) | truth
        if self._multiplies:
            m.submodules.multiplier = multiplier = Multiplier(bits)
            m.d.comb += [multiplier.a.eq(a), multiplier.b.eq(b)]
            product = sum(multiplier.summands[1:], multiplier.summands[0])
            result = result | (product & replicate(work.multiply, bits))
        m.d.comb += self.result.eq(result)
        return m
