"""Which vector registers still wait for results."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.latencies import Latencies, latencies
from daedal.hw.execute_unit.stage_layouts import register_number
from daedal.hw.interfaces import context_bits


class Scoreboard(wiring.Component):
    """Tells whether a row that starts in the next cycle would find its results beat by beat.

    A row of n beats was issued in n cycles at least, so what starts k cycles after its last beat follows each
    beat by k + n - 1 cycles or more. An operand ``a`` or ``b`` must follow by ``read_after_write`` cycles, in
    whatever context; ``c``, which matters most, by ``loop`` in the same context.

    A long row has beats of other contexts as well, of which a row there may read the last one first: rows of a context
    that is not 0 follow its last beat by ``read_after_write`` cycles. A long row's ``c`` follows rows of all contexts.

    Members
    -------
    issued : ``In(1)``; destination; wait : ``In(range(read_after_write))``
        The last beat of a row is issued that goes to ``destination``; ``wait`` is read_after_write - n, at
        least 0.
    ends_to, ends_to_scalar; ends_waits, ends_near, ends_long : ``In(1)``
        Of the row that is held: the questions count only if it is issued to its end in this cycle, which is known
        later. It has results, and its ``wait`` is not 0; is at least ``near_wait``; it has more beats than a context
        owns.
    issued_context; issued_long : ``In(1)``
        Its context; whether it has more beats than a context owns.
    context; long : ``In(1)``
        The same of the row that would start.
    a, b, c
        Register numbers to ask for.
    to_scalar, a_scalar, b_scalar, c_scalar : ``In(1)``
        The destination, an operand is a scalar register. These are the same in all contexts.
    index : ``In``
        A scalar register more.
    a_waits, b_waits, c_waits, index_waits : ``Out(1)``
        An operand in that register must not be used by a row that starts in the next cycle.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        register = register_number(config)
        super().__init__(
            {
                "issued": In(1),
                "ends_to": In(register),
                "ends_waits": In(1),
                "ends_near": In(1),
                "ends_long": In(1),
                "ends_to_scalar": In(1),
                "destination": In(register),
                "wait": In(range(latencies(config).read_after_write)),
                "issued_context": In(context_bits(config)),
                "issued_long": In(1),
                "context": In(context_bits(config)),
                "long": In(1),
                "index": In(range(config.scalars)),
                **{name: In(register) for name in "abc"},
                **{name: In(1) for name in ("to_scalar", "a_scalar", "b_scalar", "c_scalar")},
                **{f"{name}_waits": Out(1) for name in ("a", "b", "c", "index")},
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        # That a row's last beat is issued comes late: it is counted from the next cycle on.
        self._issued, self._to, self._wait = (Signal.like(one) for one in (self.issued, self.destination, self.wait))
        to_scalar = Signal()
        m.d.sync += [
            self._issued.eq(self.issued & self.wait.any()), self._to.eq(self.destination), self._wait.eq(self.wait),
            to_scalar.eq(self.to_scalar),
        ]  # fmt: skip
        vectors = self._count(m, "left", self.config.vector_registers, self._issued & ~to_scalar)
        scalars = self._count(m, "scalar_left", self.config.scalars, self._issued & to_scalar)

        apart = self._behind_long(m)
        now, before = self.ends_waits, self._issued & self._wait[1:].any()

        def waits(number: Signal, scalar: Signal) -> Value:
            same = now & (self.ends_to_scalar == scalar) & (self.ends_to == number)
            same |= before & (to_scalar == scalar) & (self._to == number)
            return same | Mux(scalar, scalars.bit_select(number, 1), vectors.bit_select(number, 1) | apart)

        m.d.comb += [
            self.a_waits.eq(waits(self.a, self.a_scalar)),
            self.b_waits.eq(waits(self.b, self.b_scalar)),
            self.c_waits.eq(self._accumulates(m) | (~self.c_scalar & apart)),
            self.index_waits.eq(waits(self.index, Const(1))),
        ]
        return m

    def _count(self, m: Module, name: str, registers: int, issued: Value) -> Signal:
        """Which registers still wait in the next cycle, each with a count of the cycles that are left.

        Only a long row waits for none, and none that came to its register before is missing then.
        """
        waits, after = Signal(registers, name=f"{name}_waits"), latencies(self.config).read_after_write
        for n in range(registers):
            left, following = Signal(range(after), name=f"{name}{n}"), Signal(range(after))
            here = issued & (self._to == n)
            m.d.comb += following.eq(Mux(here, self._wait, left) - 1)
            with m.If(here | waits[n]):
                m.d.sync += [left.eq(following), waits[n].eq(following[1:].any())]
        return waits

    def _behind_long(self, m: Module) -> Value:
        """Whether a row of another context than 0 must wait for the end of a long one."""
        after = latencies(self.config).read_after_write
        left = Signal(range(after), name="long_left")
        if self.config.context_count == 1:
            return Const(0)
        m.d.sync += left.eq(Mux(left == 0, 0, left - 1))
        with m.If(self.issued & ~self.to_scalar & self.issued_long):
            m.d.sync += left.eq(after - 1)
        return (self.ends_long | left[1:].any()) & (self.context != 0)

    def _accumulates(self, m: Module) -> Value:
        """Whether ``c`` was the destination too shortly before: a place for this and each of the ``loop`` - 2 cycles
        before it.
        """
        rows = [(self.ends_near, self.ends_to, self.ends_to_scalar, self.issued_context)]
        before = [self.issued, self.destination, self.to_scalar, self.issued_context, self.wait]
        times = latencies(self.config)
        for age in range(2, times.loop):
            now = [Signal.like(value, name=f"{name}{age}") for name, value in zip(NAMES, before, strict=True)]
            m.d.sync += [to.eq(of) for to, of in zip(now[1:], before[1:], strict=True)]
            # Whether it is too near yet is known before the next row asks.
            m.d.sync += now[0].eq(before[0] & (before[4] >= _least(times, age)))
            rows.append(tuple(now[:4]))
            before = now
        waits = []
        for near, destination, scalar, context in rows:
            same = (destination == self.c) & (scalar == self.c_scalar)
            waits.append(near & same & ((context == self.context) | self.c_scalar | self.long))
        return Cat(*waits).any()


NAMES = ("near", "destination", "scalar", "context", "wait")


def _least(times: Latencies, age: int) -> int:
    """The ``wait`` from which on a row is too near if its last beat was issued ``age`` - 1 cycles ago."""
    return times.read_after_write - times.loop + age


def near_wait(config: Config) -> int:
    """The ``wait`` from which on a row that ends keeps the next one from adding to its result."""
    return _least(latencies(config), 1)
