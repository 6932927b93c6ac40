"""A second place for iterations that wait for their lines."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import assign
from daedal.hw.access_unit.levels.pipelined.iteration_bus import TURN_FIELDS, IterationBus
from daedal.hw.config.core import Config


class AddressedBus(wiring.Signature):
    """A ``IterationBus`` with ``addresses``, those of an iteration's elements, one for each sequential load."""

    def __init__(self, config: Config, level: int) -> None:
        addresses = Out(config.address_bits).array(config.sequential_loads[level])
        super().__init__({**dict(IterationBus(config, level).members), "addresses": addresses})


class IterationSkid(wiring.Component):
    """Lets iterations through at once; keeps one that is not taken, so that ``ready`` needs to know registers only.

    That an iteration's lines are at hand is known late in a cycle, and would have to reach all stages before.

    Members
    -------
    i, o : ``In(AddressedBus(config, level))``, ``Out`` of the same
        Iterations.
    ready : ``Out(1)``
        ``i`` is taken; a register's value.
    take : ``In(1)``
        ``o`` is taken.
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__(
            {
                "i": In(AddressedBus(config, level)),
                "ready": Out(1, init=1),
                "o": Out(AddressedBus(config, level)),
                "take": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        kept = self.i.signature.create(path=("kept",))
        fields = (*TURN_FIELDS, "addresses")
        m.d.comb += self.o.valid.eq(kept.valid | self.i.valid)
        # A register of its own, since the one that chooses what is at the output has many readers.
        m.d.sync += [kept.valid.eq(self.o.valid & ~self.take), self.ready.eq(~self.o.valid | self.take)]
        with m.If(kept.valid):
            m.d.comb += assign(self.o, kept, fields)
        with m.Else():
            m.d.comb += assign(self.o, self.i, fields)
            with m.If(self.i.valid):
                m.d.sync += assign(kept, self.i, fields)
        return m
