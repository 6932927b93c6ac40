"""Which entries of a table were written in a launch, for each of the two launches at work."""

from amaranth import Module, Signal, Value

from daedal.hw.interfaces import ConfigBus


def sides(count: int) -> list[Signal]:
    """For each side, a bit for each of ``count`` entries."""
    return [Signal(count, name=f"defined{side}") for side in range(2)]


def note(m: Module, bus: ConfigBus, defined: list[Signal], written: Value) -> None:
    """Forget all entries of a side when its launch begins; keep that the one of a word was ``written``."""
    for side, entries in enumerate(defined):
        with m.If(bus.begin & (bus.side == side)):
            m.d.sync += entries.eq(0)
        with m.Elif(written & (bus.side == side)):
            m.d.sync += entries.bit_select(bus.word.index, 1).eq(1)
