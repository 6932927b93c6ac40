"""What flows inside a level, and small helpers to pass it from stage to stage."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.hdl._ast import Assign
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.interfaces import flags_layout, load_slot_layout
from daedal.hw.isa.launch import Cause


class WorkBus(wiring.Signature):
    """A bundle inside of a level, without back-pressure; one signal per register, which simulates faster.

    ``work``: an iteration of this level that is not poisoned. ``empty``: an activation without iterations.
    ``induction`` and ``limit``: the induction variable and the check's limit, for random loads.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "valid": Out(1),
                "registers": Out(config.address_bits).array(config.registers),
                "flags": Out(flags_layout(config)),
                "work": Out(1),
                "empty": Out(1),
                "induction": Out(config.address_bits),
                "limit": Out(config.address_bits),
            }
        )


WORK_FIELDS = ("registers", "flags", "work", "empty", "induction", "limit")
"""What a ``WorkBus`` carries beside ``valid``."""


RESULT_FIELDS = ("registers", "flags", "work", "empty")
"""The same where there is no load any more."""


def assign(target: Any, source: Any, fields: Iterable[str] = WORK_FIELDS) -> list[Assign]:
    """Statements that copy the members ``fields`` of one interface to another; arrays element by element."""
    statements = []
    for name in fields:
        to, of = getattr(target, name), getattr(source, name)
        pairs = zip(to, of, strict=True) if isinstance(to, list) else [(to, of)]
        statements += [Value.cast(t).eq(Value.cast(o)) for t, o in pairs]
    return statements


def register(m: Module, later: Any, bus: Any, fields: Iterable[str] = WORK_FIELDS) -> None:
    """``later`` is ``bus`` (both a ``WorkBus``) a cycle later; it keeps what it has while nothing comes.

    That spares the simulator, and the chip, moving what nobody looks at.
    """
    m.d.sync += later.valid.eq(bus.valid)
    with m.If(bus.valid):
        m.d.sync += assign(later, bus, fields)


def delayed(m: Module, bus: Any, cycles: int = 1) -> Any:
    """``bus`` (a ``WorkBus``) ``cycles`` later."""
    for _ in range(cycles):
        later = bus.signature.create()
        register(m, later, bus)
        bus = later
    return bus


def operand(source: Value, constant: Value, registers: Iterable[Value]) -> Value:
    """The constant, or the register that ``source`` (a Source, LoadIndex or Predicate) names."""
    return Array([constant, *registers])[Value.cast(source)]


def names(source: Value, register: int) -> Value:
    """Whether ``source`` (a Source or Destination) names stream register ``register``."""
    return Value.cast(source) == register + 1


class Outcome(NamedTuple):
    """What becomes of a bundle of the parent: iterations, none, or a fault; it only passes if all are 0."""

    run: Value
    empty: Value
    order: Value


def activation_flags(to: Any, parent: Any, level: int, outcome: Any, first: Value, last: Value) -> list[Assign]:
    """Statements that give an activation's bundle its flags, all but ``last`` and ``context``.

    ``parent``: the flags of the parent's bundle; ``outcome``: anything with the members of ``Outcome``; ``first``,
    ``last``: the activation's first, last bundle.
    """
    own, active = 1 << level, outcome.run | outcome.empty
    return [
        to.live.eq(Mux(outcome.run, 1, parent.live & ~outcome.empty & ~outcome.order)),
        to.begin.eq(Mux(first, parent.begin | Mux(active, own, 0), 0)),
        to.iteration.eq(Mux(first, parent.iteration, 0) | Mux(outcome.run, own, 0)),
        to.end.eq(Mux(last, parent.end | Mux(active, own, 0), 0)),
        to.cause.eq(Mux(outcome.order, Cause.BOUNDS_ORDER, parent.cause)),
        to.fault_level.eq(Mux(outcome.order, level, parent.fault_level)),
        to.replaced.eq(Mux(first, parent.replaced, 0)),
    ]


def load_request_layout(config: Config) -> data.StructLayout:
    """A read for a scalar load: ``beats`` lines from line number ``line``; beats come back with ``slot``. ``side``:
    the launch, which the access unit knows, not the load.
    """
    return data.StructLayout(
        {
            "side": 1,
            "line": line_bits(config),
            "beats": range(config.burst_lines + 1),
            "slot": load_slot_layout(config),
        }
    )


def line_bits(config: Config) -> int:
    """Bits of a line's number."""
    return config.address_bits - exact_log2(config.bus_bytes)


def returned(m: Module, config: Config, returns: Any, unit: int) -> tuple[Signal, Value]:
    """Whether the beat on the (registered) return bus is for load unit ``unit``, and for which entry.

    ``returns`` is a ``LoadReturns`` interface.
    """
    slot = data.View(load_slot_layout(config), returns.slot)
    mine = Signal(name=f"returned{unit}")
    m.d.comb += mine.eq(returns.valid & (slot.unit == unit))
    return mine, slot.entry


class LoadReturns(wiring.Signature):
    """Beats for scalar loads, one cycle after the return bus."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {"valid": Out(1), "slot": Out(load_slot_layout(config).size), "data": Out(8 * config.bus_bytes)}
        )
