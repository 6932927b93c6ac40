"""A second place for iterations that wait for their lines."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.bundles import WORK_FIELDS, WorkBus
from daedal.hw.config import Config


class Spare(wiring.Component):
    """Lets iterations through at once; keeps one that is not taken, so that ``ready`` needs to know registers only.

    That an iteration's lines are at hand is known late in a cycle, and would have to reach all stages before.

    Members
    -------
    i, addresses : ``In(WorkBus(config))``, ``In(address_bits).array(slots)``
        Iterations and the addresses of their elements.
    ready : ``Out(1)``
        ``i`` is taken; a register's value.
    o, o_addresses : the same, on the other side.
    take : ``In(1)``
        ``o`` is taken.
    """

    def __init__(self, config: Config, slots: int) -> None:
        super().__init__(
            {
                "i": In(WorkBus(config)),
                "addresses": In(config.address_bits).array(slots),
                "ready": Out(1),
                "o": Out(WorkBus(config)),
                "o_addresses": Out(config.address_bits).array(slots),
                "take": In(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        kept = WorkBus(self._config).create(path=("kept",))
        kept_addresses = [
            Signal(self._config.address_bits, name=f"kept_address{n}") for n in range(len(self.addresses))
        ]
        m.d.comb += [self.ready.eq(~kept.valid), self.o.valid.eq(kept.valid | self.i.valid)]
        m.d.sync += kept.valid.eq(self.o.valid & ~self.take)
        sources = [*_parts(self.i), *self.addresses]
        places = [*_parts(kept), *kept_addresses]
        for to, place, source in zip([*_parts(self.o), *self.o_addresses], places, sources, strict=True):
            m.d.comb += to.eq(Mux(kept.valid, place, source))
            with m.If(self.i.valid & ~kept.valid):
                m.d.sync += place.eq(source)
        return m


def _parts(bus: Any) -> list[Value]:
    """The signals of a ``WorkBus`` but ``valid``."""
    parts: list[Value] = []
    for name in WORK_FIELDS:
        member = getattr(bus, name)
        parts += [Value.cast(part) for part in (member if isinstance(member, list) else [member])]
    return parts
