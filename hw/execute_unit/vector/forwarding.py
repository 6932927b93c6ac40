"""The way of addend and result between lanes and registers, which is the loop of an accumulation."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.latencies import SELECT, latencies
from daedal.hw.execute_unit.stage_layouts import register_place
from daedal.hw.isa.elements import LANE
from daedal.hw.lib.delay import delayed
from daedal.hw.lib.fanout import fanout


class Forwarding(wiring.Component):
    """Delivers ``c`` as late as the lanes can take it, from the register file or from results on their way to
    it.

    A result becomes visible as ``c`` for beats issued ``loop`` or more cycles after its own.

    Members
    -------
    fire : ``In(1)``
        A beat is issued in this cycle; the next five belong to it.
    c_address, c_used
        The register beat to add, a ``register_place``; +0.0 if not used.
    extreme, negative : ``In(1)``
        With ``c`` not used: an infinity instead of the zero; with a sign.
    adds_b : ``In(1)``
        The addend is operand b.
    address, writes
        Where its result goes, if it is written.
    b : ``In(8 * lane_bytes)``
        Operand b, ``SELECT`` cycles after the issue.
    read_address : ``Out``; read_data : ``In``
        Port c of the register file; the data come one cycle after the address.
    c : ``Out(8 * lane_bytes)``; chain : ``Out(lanes)``
        The addend, ``addend`` cycles after the issue. Under ``chain``, all bits alike, ``result`` is it instead.
    result : ``In(8 * lane_bytes)``
        The result, ``result`` cycles after the issue.
    write : ``Out(1)``; write_address
        Whether and where to write it, in the same cycle.
    flying : ``Out(1)``
        Some result is still to come.
    """

    def __init__(self, config: Config) -> None:
        self.config, self._times = config, latencies(config)
        address, width = register_place(config), 8 * config.lane_bytes
        super().__init__(
            {
                "fire": In(1),
                "c_address": In(address),
                "c_used": In(1),
                "extreme": In(1),
                "negative": In(1),
                "adds_b": In(1),
                "address": In(address),
                "writes": In(1),
                "b": In(width),
                "read_address": Out(address),
                "read_data": In(width),
                "c": Out(width),
                "chain": Out(config.lanes),
                "result": In(width),
                "write": Out(1),
                "write_address": Out(address),
                "flying": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        fired, addresses = self._results(m)
        addend = self._times.addend
        reads = _ages(m, self.c_address, "c", addend - 2)
        used = register(m, self.c_used, "used", cycles=addend - 2)
        adds_b = register(m, self.adds_b, "adds_b_late", cycles=SELECT)
        later = register(m, adds_b, "adds_b_later", cycles=addend - 2 - SELECT)
        at_once, soon = self._forwards(m, fired, addresses, reads[1])
        m.d.comb += self.read_address.eq(reads[addend - 2])
        # One of the two is zero. What is not wanted is known before, and is kept out by the registers' resets.
        wanted = register(m, used & ~later, "wanted")
        kept = register(m, Mux(wanted, Mux(register(m, soon, "wants_result"), self.result, self.read_data), 0), "kept")
        m.d.comb += [
            self.c.eq(kept | self._constant(m, adds_b)),
            self.chain.eq(Cat(fanout(m, at_once, "at_once", self.config.lanes))),
        ]
        return m

    def _constant(self, m: Module, adds_b: Value) -> Value:
        """Operand b if that is the addend, else an infinity or a zero; when ``c`` is wanted."""
        extreme, negative = register(m, Cat(self.extreme, self.negative), "constant", cycles=SELECT)
        constant = Cat(Const(0, 23), extreme.replicate(8), negative).replicate(len(self.c) // LANE.bits)
        chosen = register(m, Mux(adds_b, self.b, constant), "b_or_constant")
        wait = self._times.addend - 1 - SELECT
        late: Value
        if self.config.has_affine:
            late = delayed(m, chosen, "b_late", cycles=wait)
        else:
            late = register(m, chosen, "b_late", cycles=wait)
        return late

    def _results(self, m: Module) -> tuple[list[Value], list[Value]]:
        """Carry the destination beside the beat; return validity and address by age."""
        result = self._times.result
        written = register(m, self.writes, "written", cycles=result)
        addresses = _ages(m, self.address, "address", result)
        flying = Signal(result)
        m.d.sync += flying.eq(Cat(self.fire, flying))
        m.d.comb += [
            self.flying.eq(flying.any()),
            self.write_address.eq(addresses[result]),
            self.write.eq(flying[-1] & written),
        ]
        return [self.fire, *flying], addresses

    def _forwards(self, m: Module, fired: list[Value], addresses: list[Value], c: Value) -> tuple[Value, Value]:
        """Whether ``c`` is the result ``loop`` cycles before, a cycle early, or the one before that, when it is there.

        The register file itself sees to one more cycle of distance, writing in the cycle of the read.
        """
        addend, loop = self._times.addend, self._times.loop
        used = register(m, self.c_used, "used_first")
        found = [used & fired[1 + k] & (c == addresses[1 + k]) for k in (loop, loop + 1)]
        # Compared at age 1; the first is wanted at age ``addend``, the second two cycles earlier.
        at_once = register(m, found[0], "at_once_soon", cycles=addend - 2)
        soon = register(m, found[1], "soon", cycles=addend - 3)
        return at_once, soon


def _ages(m: Module, value: Value, name: str, last: int) -> list[Value]:
    """``value`` by age, from 0 to ``last``."""
    ages = [value]
    for age in range(1, last + 1):
        ages.append(register(m, ages[-1], f"{name}_{age}"))
    return ages
