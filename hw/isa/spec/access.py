"""The event contract (docs/machine/machine.md) as an executable reference: what the access unit sends, nest by nest.

It decodes a program with ``hw.isa.program`` and shares nothing else with RTL, compiler or emulator; all are
tested against it. It favours clarity over speed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import ROW_GRANULE, STORE_STEP
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.program import Program
from daedal.hw.isa.spec.access_words import Constants, NestWords, nests
from daedal.hw.isa.spec.dealing import deal
from daedal.hw.isa.spec.integer import alu, product, signed
from daedal.hw.isa.words import (
    SIZE_BITS,
    AluOp,
    CheckKind,
    CheckMode,
    EventKind,
    FetchQueue,
    LevelField,
    Sense,
    StepField,
)

TOKEN_BITS = 6

Read = Callable[[int, int], bytes]
"""``read(address, size)`` gives ``size`` bytes of memory."""

_FETCH_QUEUES = {
    FetchQueue.VECTOR0: Queue.VECTOR0,
    FetchQueue.VECTOR1: Queue.VECTOR1,
    FetchQueue.STORE: Queue.STREAM,
}


@dataclass(frozen=True)
class Token:
    """A callback number for the execute unit, and the context whose registers it works on."""

    callback: int
    context: int = 0


@dataclass(frozen=True)
class Scalar:
    """A scalar for the execute unit, as wide as a register."""

    value: int


@dataclass(frozen=True)
class StoreAddress:
    """Where a row of ``size`` bytes goes; ``stream``: its data come from the store stream."""

    address: int
    size: int
    stream: bool


@dataclass(frozen=True)
class Fetch:
    """A row of ``size`` bytes fetched from ``address`` into ``queue``."""

    queue: FetchQueue
    address: int
    size: int


Push = Token | Scalar | StoreAddress | Fetch


@dataclass(frozen=True)
class Fault:
    """What the access unit reports. ``value`` as 64 unsigned bits; ``registers`` of the bundle that faulted.

    ALIGNMENT: ``address`` and ``queue`` of the row or store, ``level`` of the event, ``value`` is the size.
    """

    cause: Cause
    level: int
    value: int
    address: int = 0
    queue: Queue = Queue.NONE
    registers: tuple[int, ...] = ()


@dataclass
class NestTrace:
    """What one nest did. ``bundles`` counts those that reached the event unit, a poisoned one included.

    ``lookups`` counts the INDEX checks of bundles that were not poisoned, ``replaced`` the values that such bundles'
    checks replaced by 0; ``warned`` is the first of these in mode WARN, as 64 unsigned bits.
    """

    pushes: list[Push] = field(default_factory=list)
    bundles: int = 0
    lookups: int = 0
    replaced: int = 0
    warned: int | None = None
    fault: Fault | None = None

    @property
    def tokens(self) -> list[int]:
        """Callback numbers in order."""
        return [push.callback for push in self.pushes if isinstance(push, Token)]

    @property
    def contexts(self) -> list[int]:
        """The contexts of the tokens, in order."""
        return [push.context for push in self.pushes if isinstance(push, Token)]

    @property
    def scalars(self) -> list[int]:
        """Scalars in order."""
        return [push.value for push in self.pushes if isinstance(push, Scalar)]

    @property
    def stores(self) -> list[StoreAddress]:
        """Store addresses in order."""
        return [push for push in self.pushes if isinstance(push, StoreAddress)]

    @property
    def fetches(self) -> list[Fetch]:
        """Row fetches in order."""
        return [push for push in self.pushes if isinstance(push, Fetch)]


@dataclass(frozen=True)
class Bundle:
    """What flows from level to level; the flags are sets of levels. A bundle with a fault is poisoned.

    ``context``: which of the activations that an interleaving level runs side by side the bundle belongs to.
    ``replaced``: the values that checks replaced by 0, outermost level first.
    """

    registers: tuple[int, ...]
    live: bool = True
    begin: frozenset[int] = frozenset()
    iteration: frozenset[int] = frozenset()
    end: frozenset[int] = frozenset()
    fault: Fault | None = None
    context: int = 0
    replaced: tuple["Replaced", ...] = ()


@dataclass(frozen=True)
class Replaced:
    """A value, as 64 unsigned bits, in whose place a check put 0."""

    value: int
    mode: CheckMode


def run_contract(raw: bytes, config: Config, read: Read, arguments: Sequence[int] = ()) -> list[NestTrace]:
    """The traces of the nests of the program ``raw``, up to and including the first one with a fault."""
    traces = []
    for words in nests(Program.from_bytes(raw), arguments, config):
        traces.append(run_nest(words, config, read))
        if traces[-1].fault:
            break
    return traces


def run_nest(words: NestWords, config: Config, read: Read) -> NestTrace:
    """The trace of one nest."""
    bundles: Iterable[Bundle] = [Bundle((0,) * config.registers)]
    for level in range(config.levels):
        bundles = Level(words, config, level, read).transform(bundles)
    trace = NestTrace()
    for bundle in _in_turn(words, config, _counted(bundles, trace)):
        trace.fault = bundle.fault or _do_events(words, config, bundle, trace)
        if trace.fault:
            break
    return trace


def _counted(bundles: Iterable[Bundle], trace: NestTrace) -> Iterator[Bundle]:
    """The bundles as they come to the event unit, counted."""
    for bundle in bundles:
        trace.bundles += 1
        if not bundle.fault:
            _count(bundle, trace)
        yield bundle


def _in_turn(words: NestWords, config: Config, bundles: Iterator[Bundle]) -> Iterator[Bundle]:
    """The bundles as the event unit takes them: dealt to contexts, if a level says so."""
    level = config.context_level
    if level is None or not config.dealt_bundles:
        return bundles
    control = words.level(level).members(LevelField.CONTROL)
    if not (control["enable"] and control["deal"]):
        return bundles
    dealt = deal(bundles, level, config.context_count, config.dealt_bundles)
    return (replace(bundle, context=context) for bundle, context in dealt)


def _operand(source: int, constant: int, registers: Sequence[int]) -> int:
    return registers[source - 1] if source else constant


def _holds(predicate: int, sense: int, registers: Sequence[int]) -> bool:
    return predicate == 0 or (registers[predicate - 1] == 0) == (sense == Sense.ZERO.value)


class Level:
    """One level of a nest."""

    def __init__(self, words: NestWords, config: Config, level: int, read: Read) -> None:
        self.words, self.level, self.read = words.level(level), level, read
        self.control = self.words.members(LevelField.CONTROL)
        self.check = self.words.members(LevelField.CHECK)
        self.counting = self.words.members(LevelField.COUNT)
        self.sequential = range(config.sequential_loads[level])
        self.random = range(len(self.sequential), len(self.sequential) + config.random_loads[level])
        self.alus = range(config.alus[level])
        self.contexts = config.contexts[level]
        self.bits = config.address_bits

    def put(self, registers: list[int], destination: int, value: int) -> None:
        """Write the low bits of ``value`` into the register that ``destination`` names, if any."""
        if destination:
            registers[destination - 1] = value % (1 << self.bits)

    def transform(self, parents: Iterable[Bundle]) -> Iterator[Bundle]:
        """The bundles that this level makes of its parent's."""
        activations = map(self.bundles, parents)
        interleave = self.control["enable"] and self.control["interleave"]
        for bundle in self.interleaved(activations) if interleave else chain.from_iterable(activations):
            yield bundle
            if bundle.fault:
                return

    def bundles(self, parent: Bundle) -> Iterator[Bundle]:
        """What becomes of one bundle of the parent: an activation, or the bundle itself."""
        if self.control["enable"] and parent.live and parent.fault is None:
            return self.activation(parent)
        return iter([parent])

    def interleaved(self, activations: Iterator[Iterator[Bundle]]) -> Iterator[Bundle]:
        """A bundle of each of the ``contexts`` activations, round-robin; one that ends makes place for the next one."""

        def begin() -> tuple[Bundle | None, Iterator[Bundle]]:
            """The first bundle of the next activation and the rest of it, which may be endless."""
            bundles = next(activations, iter(()))
            return next(bundles, None), bundles

        running = [begin() for _ in range(self.contexts)]
        while any(following for following, _ in running):
            for place, (following, rest) in enumerate(running):
                if following:
                    yield replace(following, context=place)
                    following = next(rest, None)
                    running[place] = (following, rest) if following else begin()

    def activation(self, parent: Bundle) -> Iterator[Bundle]:
        """The bundles of one activation."""
        lower = signed(_operand(self.control["lower"], self.words[LevelField.LOWER], parent.registers), self.bits)
        upper = signed(_operand(self.control["upper"], self.words[LevelField.UPPER], parent.registers), self.bits)
        if upper < lower:
            yield self._poison(parent, parent.registers, Cause.BOUNDS_ORDER, upper)
            return
        own = frozenset([self.level])
        values = range(lower, upper, 1 if self.control["interleave"] else self.words[LevelField.STEP])
        if not values:
            registers = list(parent.registers)
            if self.counting["enable"]:
                self.put(registers, self.counting["destination"], 0)
            yield replace(
                parent, registers=tuple(registers), live=False, begin=parent.begin | own, end=parent.end | own
            )
            return
        count = 0
        for i in values:
            first, last = i == values[0], i == values[-1]
            registers, outside = self.iteration(i, parent.registers)
            if isinstance(outside, tuple):
                yield self._poison(parent, tuple(registers), *outside)
                return
            replaced = () if outside is None else (outside,)
            if self.counting["enable"]:
                count += _holds(self.counting["predicate"], self.counting["sense"], registers)
                self.put(registers, self.counting["destination"], count)
            yield Bundle(
                tuple(registers),
                begin=parent.begin | own if first else frozenset(),
                iteration=own | (parent.iteration if first else frozenset()),
                end=parent.end | own if last else frozenset(),
                context=parent.context,
                replaced=(parent.replaced if first else ()) + replaced,
            )

    def iteration(self, i: int, parent: Sequence[int]) -> tuple[list[int], "Replaced | tuple[Cause, int] | None"]:
        """The registers of iteration ``i`` before the count, and what the check found: see ``outside``."""
        registers = list(parent)
        self.put(registers, self.control["induction"], i)
        found = self.commit({slot: self.load(slot, i, parent) for slot in self.sequential}, registers, parent)
        for slot in self.random:
            if isinstance(found, tuple):
                return registers, found
            found = self.commit({slot: self.load(slot, i, registers)}, registers, parent) or found
        if not isinstance(found, tuple):
            for number in self.alus:
                self.alu(number, registers)
        return registers, found

    def load(self, slot: int, i: int, operands: Sequence[int]) -> int:
        """The 64 bits of load ``slot``, 0 if it is not enabled. Address bits below the element's size are ignored."""
        control = self.words.members(LevelField[f"LOAD{slot}"])
        if not control["enable"]:
            return 0
        index = operands[control["index"] - 1] if control["index"] else i
        base = _operand(control["base"], self.words[LevelField[f"LOAD{slot}_BASE"]], operands)
        size = 1 << control["size"]
        address = (base + index * size) % (1 << self.bits) & -size
        value = int.from_bytes(self.read(address, size), "little", signed=bool(control["is_signed"]))
        return value % (1 << 64)

    def commit(
        self, values: dict[int, int], registers: list[int], parent: Sequence[int]
    ) -> "Replaced | tuple[Cause, int] | None":
        """Check the values of these slots and write them into their registers, in slot order."""
        found = self.outside(values, parent)
        if isinstance(found, Replaced):
            values = {**values, self.check["load"]: 0}
        for slot, value in values.items():
            control = self.words.members(LevelField[f"LOAD{slot}"])
            if control["enable"]:
                self.put(registers, control["destination"], value)
        return found

    def outside(self, values: dict[int, int], parent: Sequence[int]) -> "Replaced | tuple[Cause, int] | None":
        """What the check finds in these slots: nothing, a value that is to be replaced, or a fault (cause, value)."""
        if not self.check["enable"] or self.check["load"] not in values:
            return None
        value = values[self.check["load"]]
        limit = signed(_operand(self.check["limit"], self.words[LevelField.CHECK_LIMIT], parent), self.bits)
        if value < limit:
            return None
        mode = CheckMode(self.check["mode"])
        if mode is not CheckMode.FATAL:
            return Replaced(value, mode)
        return (Cause.INDEX if self.check["kind"] == CheckKind.INDEX.value else Cause.OFFSET), value

    def alu(self, number: int, registers: list[int]) -> None:
        """Do ALU operation ``number``."""
        control = self.words.members(LevelField[f"ALU{number}"])
        op = AluOp(control["op"])
        if op is not AluOp.NONE:
            a = _operand(control["a"], self.words[LevelField[f"ALU{number}_A"]], registers)
            b = _operand(control["b"], self.words[LevelField[f"ALU{number}_B"]], registers)
            self.put(registers, control["destination"], alu(op, a, b, self.bits))

    def _poison(self, parent: Bundle, registers: tuple[int, ...], cause: Cause, value: int) -> Bundle:
        fault = Fault(cause, self.level, value % (1 << 64), registers=registers)
        return replace(parent, registers=registers, live=False, fault=fault)


def _count(bundle: Bundle, trace: NestTrace) -> None:
    """Count the values that were replaced, and keep the first one in mode WARN."""
    trace.replaced += len(bundle.replaced)
    for replaced in bundle.replaced:
        if replaced.mode is CheckMode.WARN and trace.warned is None:
            trace.warned = replaced.value


def _do_events(words: NestWords, config: Config, bundle: Bundle, trace: NestTrace) -> Fault | None:
    """Do the events of ``bundle`` in the contract's order."""
    for level in sorted(bundle.iteration):
        check = words.level(level).members(LevelField.CHECK)
        trace.lookups += check["enable"] and check["kind"] == CheckKind.INDEX.value
    order = []
    for level in range(config.levels):
        order += [(level, EventKind.BEGIN)] if level in bundle.begin else []
        order += [(level, EventKind.ITER)] if level in bundle.iteration else []
    order += [(level, EventKind.END) for level in sorted(bundle.end, reverse=True)]
    for level, kind in order:
        event = words.event(level, kind)
        if not _holds(event["predicate"], event["sense"], bundle.registers):
            continue
        for number in range(event["first"], event["first"] + event["count"]):
            if fault := _do_step(words.step(number), config, bundle, level, trace.pushes):
                return fault
    return None


def _do_step(step: Constants, config: Config, bundle: Bundle, level: int, pushes: list[Push]) -> Fault | None:
    control, registers = step.members(StepField.CONTROL), bundle.registers

    def value(name: str, bits: int = config.address_bits) -> int:
        return _operand(control[name], step[StepField[name.upper()]], registers) % (1 << bits)

    def row(name: str) -> tuple[int, int]:
        offset = product(value(f"{name}_index"), value(f"{name}_pitch"))
        return (value(f"{name}_base") + offset) % (1 << config.address_bits), value(f"{name}_size", SIZE_BITS)

    if control["scalar_enable"]:
        pushes.append(Scalar(value("scalar")))
    if control["store_enable"]:
        address, size = row("store")
        if address % STORE_STEP or size % STORE_STEP or not size:
            return Fault(Cause.ALIGNMENT, level, size, address, Queue.STORE_ADDRESS, registers)
        pushes.append(StoreAddress(address, size, bool(control["stream"])))
    if control["token_enable"]:
        pushes.append(Token(value("token", TOKEN_BITS), bundle.context))
    if control["fetch_enable"]:
        address, size = row("fetch")
        queue = FetchQueue(control["queue"])
        lines = -(-(address % config.bus_bytes + size) // config.bus_bytes)
        if address % ROW_GRANULE or size % ROW_GRANULE or not size or lines > -(-size // config.bus_bytes):
            return Fault(Cause.ALIGNMENT, level, size, address, _FETCH_QUEUES[queue], registers)
        pushes.append(Fetch(queue, address, size))
    return None
