"""The contract of every stream, and a specification that watches all streams of any unit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.hdl import Assert, Assume, Elaboratable, ShapeLike, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

AXI_CHANNELS = ("ar", "r", "aw", "w", "b")


class StreamContract(wiring.Component):
    """Asserts what every producer owes: once valid, stay valid with the same payload until taken.

    ``assumed``: assume it instead. ``excused``: the producer may take back what it offers.
    """

    def __init__(self, shape: ShapeLike, *, assumed: bool = False) -> None:
        super().__init__({"watched": In(stream.Signature(shape)), "ready": In(1), "excused": In(1)})
        self._shape, self._assumed = shape, assumed

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        waiting, payload = Signal(), Signal(self._shape)
        m.d.sync += [waiting.eq(self.watched.valid & ~self.ready), payload.eq(self.watched.payload)]
        claim = Assume if self._assumed else Assert
        with m.If(waiting & ~self.excused):
            m.d.comb += claim(self.watched.valid, "valid fell before the payload was taken")
            m.d.comb += claim(self.watched.payload == payload, "payload changed while waiting")
        return m


@dataclass(frozen=True)
class Channel:
    """A stream, or a channel of an AXI interface, of a unit; ``produced`` by it, or taken."""

    name: str
    produced: bool
    valid: Value
    ready: Value
    payload: Value


def channels(unit: wiring.Component) -> Iterator[Channel]:
    """All streams and AXI channels of ``unit``."""
    for name, member in unit.signature.members.items():
        if member.is_port:
            continue
        for label, interface in _elements(name, getattr(unit, name)):
            yield from _channels(label, interface, member)


def _elements(name: str, interface: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(interface, list):
        yield name, interface
        return
    for number, element in enumerate(interface):
        yield from _elements(f"{name}{number}", element)


def _channels(name: str, interface: Any, member: wiring.Member) -> Iterator[Channel]:
    """The signature of a member that is In has the flows of its own members turned round already."""
    inner = member.signature.members
    if isinstance(member.signature, stream.Signature):
        payload = Value.cast(interface.payload)
        yield Channel(name, member.flow == Out, interface.valid, interface.ready, payload)
        return
    for prefix in AXI_CHANNELS:
        if f"{prefix}ready" not in inner:
            continue
        parts = [part for part in inner if part.startswith(prefix) and part not in (f"{prefix}valid", f"{prefix}ready")]
        payload = Cat(getattr(interface, part) for part in parts)
        valid, ready = (getattr(interface, f"{prefix}{end}") for end in ("valid", "ready"))
        yield Channel(f"{name}_{prefix}", inner[f"{prefix}valid"].flow == Out, valid, ready, payload)


def inputs(unit: wiring.Component) -> list[Value]:
    """Everything that comes into ``unit``."""
    return [Value.cast(value) for _, member, value in unit.signature.flatten(unit) if member.flow == In]


Hook = Callable[[Module, Any], None]
"""Adds assumptions about the surroundings of a unit."""

Part = Callable[[Value], Value]
"""Of a payload, what its consumer looks at."""

Excuse = Callable[[Module, Any], Value]
"""When a producer may take back or change what it offers: in the cycle of the change, or in the one before."""


class Watch(Elaboratable):
    """A unit whose producers are watched and whose own producers are assumed to keep the contract.

    Parameters
    ----------
    unit
        The unit.
    passed
        Payloads of each channel that must be able to pass, in one run: the goal.
    surroundings
        Adds assumptions, and whatever more is to be asserted.
    excused
        By the name of a channel: when its producer may take back what it offers, in terms of the unit's ports.
    relevant
        By the name of a channel: what of its payload must not change.
    free
        Names of channels whose producer need not keep the contract.
    waits
        Names of channels whose producer waits for ``ready`` before it says ``valid``.
    unused
        Names of channels on which nothing passes in this configuration.
    """

    def __init__(
        self,
        unit: Any,
        *,
        passed: int = 2,
        surroundings: Hook | None = None,
        excused: dict[str, Excuse] | None = None,
        relevant: dict[str, Part] | None = None,
        free: Sequence[str] = (),
        waits: Sequence[str] = (),
        unused: Sequence[str] = (),
    ) -> None:
        self.unit, self.channels = unit, list(channels(unit))
        self._surroundings, self._excused, self._free = surroundings, excused or {}, free
        self._passed, self._relevant = passed, relevant or {}
        self._seen = {
            channel.name: Signal(name=f"{channel.name}_passes")
            for channel in self.channels
            if channel.name not in unused
        }
        produced = [channel for channel in self.channels if channel.produced]
        self._ends = {c.name: (Signal(name=f"{c.name}_r"), Signal(name=f"{c.name}_v")) for c in produced}
        self._through = Signal(name="traffic_passes")
        self.goals = [self._through.name]
        self.unrelated = [(ready.name, valid.name) for name, (ready, valid) in self._ends.items() if name not in waits]

    @property
    def ports(self) -> list[Value]:
        """What ``examine`` wants as ports."""
        readies = [Value.cast(c.ready) for c in self.channels if c.produced]
        others = [value for value in inputs(self.unit) if not any(value is ready for ready in readies)]
        ends = [end for pair in self._ends.values() for end in pair]
        return [*others, *ends, self._through]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.unit = self.unit
        m.d.comb += self._through.eq(Cat(self._seen.values()).all())
        for channel in self.channels:
            self._watch(m, channel)
        if self._surroundings:
            self._surroundings(m, self.unit)
        return m

    def _watch(self, m: Module, channel: Channel) -> None:
        assumed = not channel.produced
        if channel.produced:
            ready, valid = self._ends[channel.name]
            m.d.comb += [channel.ready.eq(ready), valid.eq(channel.valid)]
        if channel.name not in self._free:
            payload = self._relevant.get(channel.name, lambda whole: whole)(channel.payload)
            contract = StreamContract(len(payload), assumed=assumed)
            m.submodules[f"contract_{channel.name}"] = contract
            m.d.comb += [
                contract.watched.valid.eq(channel.valid),
                contract.watched.payload.eq(payload),
                contract.ready.eq(channel.ready),
            ]
            if channel.name in self._excused:
                now, before = Signal(), Signal()
                m.d.comb += [now.eq(self._excused[channel.name](m, self.unit)), contract.excused.eq(now | before)]
                m.d.sync += before.eq(now)
        if channel.name not in self._seen:
            return
        count = Signal(range(self._passed + 1), name=f"{channel.name}_count")
        m.d.comb += self._seen[channel.name].eq(count == self._passed)
        with m.If(channel.valid & channel.ready & ~self._seen[channel.name]):
            m.d.sync += count.eq(count + 1)
