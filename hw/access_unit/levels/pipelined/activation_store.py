"""What bundles of one activation have in common, kept once."""

from amaranth.hdl import Elaboratable, Module, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import Outcome, WorkBus, activation_flags
from daedal.hw.access_unit.levels.pipelined.activation import ActivationBus
from daedal.hw.access_unit.levels.pipelined.iteration_bus import IterationBus, activation_entries
from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import DISTRIBUTED_RAM


class ActivationStore(wiring.Component):
    """Keeps the parent's registers and flags and the check's limit by entry, and makes bundles of them; combinational.

    So the stages from an activation's start to its loaded elements carry an entry's number instead of all that.

    Members
    -------
    i, write, write_entry : ``In(ActivationBus(config, slots))``, ``In(1)``, ``In``
        An activation to be kept from the next cycle on.
    stops, order_value : ``Out(1)``, ``Out(64)``
        There was one whose bounds are in the wrong order, or it comes now; the upper bound of the first of these.
    next_entry : ``Out``
        Entries in turn, for activations that end in the order in which they come.
    turn, o : ``In(TurnBus(config, level))``, ``Out(WorkBus(config))``
        A turn, and its bundle; the induction register is not written yet.
    """

    def __init__(self, config: Config, level: int) -> None:
        entry = range(activation_entries(config, level))
        super().__init__(
            {
                "i": In(ActivationBus(config, config.sequential_loads[level])),
                "write": In(1),
                "write_entry": In(entry),
                "next_entry": Out(entry),
                "stops": Out(1),
                "order_value": Out(64),
                "turn": In(IterationBus(config, level)),
                "o": Out(WorkBus(config)),
            }
        )
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        with m.If(self.write):
            m.d.sync += self.next_entry.eq(self.next_entry + 1)
        ordered = Signal()
        m.d.comb += self.stops.eq(ordered | (self.write & self.i.order))
        with m.If(self.write & self.i.order & ~ordered):
            m.d.sync += [ordered.eq(1), self.order_value.eq(self.i.upper.as_signed())]
        flags = self.i.flags.shape()(self._kept(m, "flags", self.i.flags.as_value()))
        run, empty, order = (self._kept(m, name, getattr(self.i, name)) for name in ("run", "empty", "order"))
        turn = self.turn
        m.d.comb += [
            *(to.eq(self._kept(m, f"register{n}", of))
              for n, (to, of) in enumerate(zip(self.o.registers, self.i.registers, strict=True))),
            self.o.limit.eq(self._kept(m, "limit", self.i.limit)),
            self.o.valid.eq(turn.valid),
            self.o.work.eq(turn.work),
            self.o.empty.eq(empty),
            self.o.induction.eq(turn.induction),
            *activation_flags(self.o.flags, flags, self._level, Outcome(run, empty, order), turn.first, turn.last),
            self.o.flags.last.eq(turn.final),
            self.o.flags.context.eq(turn.context),
        ]  # fmt: skip
        return m

    def _kept(self, m: Module, name: str, value: Value) -> Signal:
        """``value`` of the activation that ``turn`` is of."""
        depth = activation_entries(self._config, self._level)
        m.submodules[name] = ring = memory.Memory(shape=len(value), depth=depth, init=[], attrs=DISTRIBUTED_RAM)
        write, read = ring.write_port(), ring.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_entry),
            write.data.eq(value),
            read.addr.eq(self.turn.entry),
        ]
        kept: Signal = read.data
        return kept
