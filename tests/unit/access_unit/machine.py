"""Drives an access unit cycle by cycle: program words in, memory with random delays, everything it sends noted.

It checks the streams' contract and what a request may be on the way.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from daedal.hw.config.core import Config
from daedal.hw.interfaces import (
    Client,
    ConfigWord,
    fault_layout,
    read_request_layout,
    return_layout,
    scalar_layout,
    store_address_layout,
    token_layout,
)
from daedal.hw.isa.address_mapping import class_of, granule_bytes
from daedal.hw.isa.program import Program, pack
from daedal.hw.isa.spec.access import Fetch, StoreAddress
from daedal.hw.isa.words import VALUE_BITS, ControlField, FetchQueue
from daedal.hw.queues.reorder_buffer import reserve_layout
from tests.unit.access_unit.model import Model
from tests.unit.payload import Payload

COUNTERS = ("row", "lookup", "bundle", "token", "replaced")


@dataclass
class Behaviour:
    """How the surroundings behave: probabilities per cycle, and cycles a read takes.

    ``shuffle``: beats come from any read that is due, not from the oldest.
    """

    refuse: float = 0.3
    port_busy: float = 0.3
    latency: tuple[int, int] = (2, 30)
    return_idle: float = 0.3
    shuffle: bool = True


@dataclass
class _Read:
    client: Client
    slot: int
    lines: deque[int]
    due: int


@dataclass
class Sent:
    """What one nest sent."""

    tokens: list[int] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)
    scalars: list[int] = field(default_factory=list)
    stores: list[StoreAddress] = field(default_factory=list)
    fetches: list[Fetch] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    load_lines: list[int] = field(default_factory=list)
    cycles: int = 0
    fault: Any = None
    warned: int | None = None


class Machine:
    """The access unit ``model`` and its surroundings."""

    def __init__(self, model: Model, config: Config, image: bytearray, behaviour: Behaviour, seed: int) -> None:
        self.model, self.config, self.image, self.behaviour = model, config, image, behaviour
        self.chance = random.Random(f"machine{seed}")
        self.cycle = 0
        self.ready: dict[str, bool] = {}
        self.reads: list[_Read] = []
        self.sent = Sent()
        self.slots = dict.fromkeys(FetchQueue, 0)
        self.reserved: deque[tuple[Any, int, int]] = deque()
        self.row: tuple[Any, int, int] | None = None
        layouts = {
            "tokens": token_layout(), "scalars": scalar_layout(config),
            "store_addresses": store_address_layout(config),
            "requests": read_request_layout(config), "reserve": reserve_layout(),
        }  # fmt: skip
        self.payloads = {name: Payload(layout) for name, layout in layouts.items()}
        self.beat = Payload(return_layout(config))
        self.outputs = ("tokens", "scalars", "store_addresses")
        self.held: dict[str, int | None] = dict.fromkeys(layouts)
        self.slot_mask = config.vector_beats - 1
        for name in ("config_bus__valid", "config_bus__clear", "config_bus__side", "start", "halt", "returns__valid"):
            model.set(name, 0)

    def reset(self) -> None:
        """Reset the unit; reads in flight come back before it."""
        self.drain()
        self.model.set("rst", 1)
        self.model.step()
        self.model.step()
        self.model.set("rst", 0)
        self.model.step()
        self.row, self.held = None, dict.fromkeys(self.held)
        self.reserved.clear()

    def drain(self) -> None:
        """Let all reads come back."""
        while self.reads:
            self.step()

    def run(self, program: Program, arguments: list[int], *, limit: int = 20_000) -> list[Sent]:
        """Run all nests of a program, or those up to the first fault."""
        results = []
        self.clear()
        for word in program.body:
            if word.field is not ControlField.RUN:
                value = word.value + (0 if word.argument is None else arguments[word.argument])
                self.write(word, value % (1 << VALUE_BITS))
                continue
            self.model.set("config_bus__valid", 0)
            self.step(3)
            results.append(self.nest(limit))
            if results[-1].fault is not None:
                break
            self.clear()
        return results

    def write(self, word: Any, value: int) -> None:
        """One configuration word."""
        fields = {"value": value, "unit": word.unit, "index": word.index, "field": word.field.value}
        self.model.set("config_bus__word", pack(ConfigWord, fields))
        self.model.set("config_bus__valid", 1)
        self.step()
        self.model.set("config_bus__valid", 0)

    def clear(self) -> None:
        """Disable all levels and events, as when a launch begins."""
        self.model.set("config_bus__clear", 1)
        self.step()
        self.model.set("config_bus__clear", 0)

    def nest(self, limit: int) -> Sent:
        """Start the nest and wait for its end."""
        self.sent = Sent()
        assert self.model.get("done")
        self.model.set("start", 1)
        self.step()
        self.model.set("start", 0)
        self.step()
        while not self.model.get("done"):
            self.step()
            self.sent.cycles += 1
            if self.model.get("fault__valid"):
                self.sent.fault = fault_layout(self.config).from_bits(self.model.get("fault__fault"))
                break
            assert self.sent.cycles < limit, f"not done after {limit} cycles"
        assert not self.reserved, "a reservation without a read"
        assert self.row is None, "a row is not complete"
        return self.sent

    def step(self, cycles: int = 1) -> None:
        """Some clock cycles."""
        for _ in range(cycles):
            self._drive()
            self.model.step()
            self._look()
            self.cycle += 1

    def _offer(self, name: str, ready: bool) -> None:
        self.ready[name] = ready
        self.model.set(f"{name}__ready", ready)

    def _drive(self) -> None:
        model, behaviour, chance = self.model, self.behaviour, self.chance
        for name in self.outputs:
            self._offer(name, chance.random() >= behaviour.refuse)
        self._offer("requests", chance.random() >= behaviour.port_busy)
        self._offer("reserve", chance.random() >= behaviour.refuse)
        if model.peek("reserve__valid"):
            wish = self.payloads["reserve"].unpack(model.peek("reserve__payload"))
            model.set("slot", self.slots[wish.queue])
        self._return()

    def _return(self) -> None:
        ready = [read for read in self.reads if read.due <= self.cycle]
        if not ready or self.chance.random() < self.behaviour.return_idle:
            self.model.set("returns__valid", 0)
            self.model.set("returns__beat", self.chance.getrandbits(8))
            return
        read = self.chance.choice(ready) if self.behaviour.shuffle else ready[0]
        line = read.lines.popleft() * self.config.bus_bytes
        if not read.lines:
            self.reads.remove(read)
        beat = {
            "client": read.client, "slot": read.slot, "bytes": self.config.bus_bytes, "last": 0,
            "data": int.from_bytes(self.image[line % len(self.image) :][: self.config.bus_bytes], "little"),
        }  # fmt: skip
        self.model.set("returns__beat", self.beat.pack(beat))
        self.model.set("returns__valid", 1)

    def _taken(self, name: str) -> Any:
        """The payload that an output stream hands over in this cycle; checks that it waits unchanged."""
        valid = self.model.get(f"{name}__valid")
        bits = self.model.get(f"{name}__payload") if valid else None
        held = self.held[name]
        assert held is None or bits == held, f"{name} changed or fell while it was valid and not ready"
        ready = self.ready[name]
        self.held[name] = None if ready else bits
        return self.payloads[name].unpack(bits) if bits is not None and ready else None

    def _look(self) -> None:
        for name in self.outputs:
            payload = self._taken(name)
            if payload is None:
                continue
            if name == "tokens":
                self.sent.tokens.append(payload.callback)
                self.sent.contexts.append(payload.context)
            elif name == "scalars":
                self.sent.scalars.append(payload.value)
            else:
                self.sent.stores.append(StoreAddress(payload.address, payload.size, bool(payload.stream)))
        wish = self._taken("reserve")
        request = self._taken("requests")
        if wish is not None:
            assert 1 <= wish.beats <= 16
            self.reserved.append((wish.queue, wish.beats, self.slots[wish.queue]))
            self.slots[wish.queue] = self.slots[wish.queue] + wish.beats & self.slot_mask
        if request is not None:
            self._request(request)
        for name in COUNTERS:
            self.sent.counts[name] += self.model.get(f"report__{name}")
        if self.sent.warned is None and self.model.get("report__warning"):
            self.sent.warned = self.model.get("report__warned_value")

    def _request(self, request: Any) -> None:
        config, tag = self.config, request.tag
        size = request.beats * config.bus_bytes
        first, last = request.address, request.address + size - 1
        assert request.address % config.bus_bytes == 0
        assert 1 <= request.beats <= 16
        assert first >> 12 == last >> 12, "a request crosses 4 KiB"
        granule = granule_bytes(class_of(first, config), config)
        assert first // granule == last // granule, "a request crosses a granule"
        if tag.client == Client.LOAD:
            lines = deque(range(first // config.bus_bytes, first // config.bus_bytes + request.beats))
            self.sent.load_lines += lines
            due = self.cycle + self.chance.randint(*self.behaviour.latency)
            self.reads.append(_Read(tag.client, tag.slot, lines, due))
            return
        queue, beats, slot = self.reserved.popleft()
        assert (int(tag.client.value), request.beats) == (int(queue.value), beats), "not what was reserved"
        assert tag.slot == slot
        self._chunk(queue, request)

    def _chunk(self, queue: FetchQueue, request: Any) -> None:
        """Put a row together from its chunks."""
        tag, bus = request.tag, self.config.bus_bytes
        address, size = request.address + tag.shift, (request.beats - 1) * bus + tag.last_bytes
        assert tag.row_last or tag.last_bytes == bus
        assert tag.row_first == (self.row is None)
        if self.row is not None:
            of, start, before = self.row
            assert (of, start + before, tag.shift) == (queue, address, start % bus), "the row goes on elsewhere"
            address, size = start, before + size
        self.row = (queue, address, size)
        if tag.row_last:
            self.sent.fetches.append(Fetch(*self.row))
            self.row = None
