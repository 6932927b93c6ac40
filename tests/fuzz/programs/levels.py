"""Random levels of a nest whose loops are short and whose loads stay inside of their arrays."""

from dataclasses import dataclass, field

from daedal.hw.isa.address_mapping import CLASSES, in_class
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import SHIFTS, VALUE_BITS, AluOp, CheckKind, CheckMode, LevelField
from tests.fuzz.programs.dice import Dice
from tests.fuzz.programs.image import ALIGNS, ARRAYS, FIRST, MEMORY_BYTES, OFFSET_STEP, OUT, SIZES, TABLE, Array
from tests.fuzz.programs.ranges import Range

ALIGNED = tuple(ALIGNS)
LOADED = ("small", "offset", "index", "any", *ALIGNED)
"""Arrays that legal programs load from."""


@dataclass
class Known:
    """What is known of the registers of some bundles.

    ``ordered``: pairs of registers (from 1) of which the second is not below the first, and by how much it may be
    above.
    """

    ranges: list[Range]
    ordered: dict[tuple[int, int], int] = field(default_factory=dict)

    def copy(self) -> "Known":
        return Known(list(self.ranges), dict(self.ordered))

    def of(self, register: int) -> Range:
        return self.ranges[register - 1]

    def put(self, register: int, value: Range) -> None:
        """A register takes a new value; 0 is none."""
        if register:
            self.ranges[register - 1] = value
            self.ordered = {pair: by for pair, by in self.ordered.items() if register not in pair}

    def join(self, other: "Known") -> "Known":
        """What is known of bundles of both kinds."""
        return Known([a.join(b) for a, b in zip(self.ranges, other.ranges, strict=True)])

    def within(self, low: int, high: int) -> list[int]:
        """The registers that hold nothing outside of [low, high]."""
        return [k + 1 for k, one in enumerate(self.ranges) if low <= one.low and one.high <= high]


@dataclass
class Bounds:
    """The bounds of a level: operands, the range of the induction variable, and how many iterations there may be."""

    lower: int
    upper: int
    lower_value: int
    upper_value: int
    least: int
    most: int
    induction: Range


@dataclass
class Level:
    """A level that was made: its words, what is known behind it, and how many iterations it may have.

    ``empty`` is what is known of an activation without iterations, None if there cannot be one.
    """

    words: list[Word]
    iteration: Known
    empty: Known | None
    trips: int


class LevelMaker:
    """Makes one level of a nest; ``parent`` is what is known of the bundles it gets."""

    def __init__(self, dice: Dice, level: int, parent: Known, trips: int) -> None:
        self.dice, self.level, self.parent, self.trips = dice, level, parent, trips
        self.config = dice.config
        self.words: list[Word] = []
        self.known = parent.copy()
        self.destinations: dict[int, int] = {}
        self.lowest, self.highest = dice.integers.lowest, dice.integers.highest
        in_turn = dice.interleave and self.config.contexts[level] > 0 and dice.chance(0.8)
        self.deal = in_turn and self.config.dealt_bundles > 0 and dice.chance(0.5)
        self.interleave = in_turn and not self.deal
        self.step = 1 if self.interleave else dice.pick([1, 1, 1, 2, 3, self.highest])

    def destination(self) -> int:
        """A register for a result; seldom one of an ordered pair."""
        free = [r for r in range(1, self.config.registers + 1) if not any(r in pair for pair in self.known.ordered)]
        return self.dice.pick(free) if free and self.dice.chance(0.7) else self.dice.destination()

    def make(self) -> Level:
        dice, level = self.dice, self.level
        bounds = self.bounds()
        induction = self.destination() if dice.chance(0.85) else 0
        step = dice.pick([1, 2, 3, self.highest]) if self.interleave else self.step  # which does not count
        self.words.append(
            dice.packed(LevelField.CONTROL, level, enable=1, induction=induction, lower=bounds.lower,
                        upper=bounds.upper, interleave=self.interleave, deal=self.deal)
        )  # fmt: skip
        for name, value in (("LOWER", bounds.lower_value), ("UPPER", bounds.upper_value), ("STEP", step)):
            self.words.append(dice.constant(LevelField[name], level, value))
        self.known.put(induction, bounds.induction)
        self.loads(bounds)
        for number in range(self.config.alus[level]):
            if dice.chance(0.75):
                self.alu(number)
        empty = self.parent.copy() if bounds.least == 0 else None
        if dice.chance(0.4):
            self.count(bounds, empty)
        return Level(self.words, self.known, empty, bounds.most)

    def bounds(self) -> Bounds:
        kinds = [self.constant_bounds, self.upper_register, self.lower_register, self.both_registers]
        first = 3 if self.parent.ordered and self.dice.chance(0.5) else self.dice.pick([0, 0, 1, 1, 2])
        for kind in (kinds[first], self.constant_bounds):
            found = kind()
            if found:
                return found
        raise AssertionError("constant bounds are always possible")

    def constant_bounds(self) -> Bounds:
        dice = self.dice
        trips = 0 if dice.chance(0.08) else dice.between(1, self.trips)
        low = dice.pick([0, 0, 0, 1, -2, dice.between(-9, 9), dice.between(self.lowest, self.highest - 1024)])
        step = self.step = self.step if (trips - 1) * self.step + 1 < 1024 or trips <= 1 else 1
        last = low + max(trips - 1, 0) * step
        upper = last + 1 + dice.below(min(step, 1 + self.highest - last - 1) if trips else 1) if trips else low
        if trips and upper > self.highest:
            upper = last + 1
        return Bounds(0, 0, low, upper, trips, trips, Range(low, last if trips else low))

    def upper_register(self) -> Bounds | None:
        listed = [r for r in range(1, self.config.registers + 1) if self.parent.of(r).width <= self.trips]
        if not listed:
            return None
        upper = self.dice.pick(listed)
        known = self.parent.of(upper)
        low = known.low - self.dice.below(max(1, self.trips - known.width + 1))
        low = low if low >= self.lowest else known.low
        return self._between(Bounds(0, upper, low, 0, known.low - low, known.high - low, Range(low, known.high)))

    def lower_register(self) -> Bounds | None:
        listed = [r for r in range(1, self.config.registers + 1) if self.parent.of(r).width <= self.trips]
        if not listed:
            return None
        lower = self.dice.pick(listed)
        known = self.parent.of(lower)
        high = min(self.highest, known.high + self.dice.below(max(1, self.trips - known.width + 1)))
        return self._between(
            Bounds(lower, 0, 0, high, high - known.high, high - known.low, Range(known.low, max(known.low, high - 1)))
        )

    def both_registers(self) -> Bounds | None:
        listed = [pair for pair, by in self.parent.ordered.items() if by <= self.trips]
        if not listed:
            return None
        lower, upper = self.dice.pick(listed)
        low, high = self.parent.of(lower).low, self.parent.of(upper).high
        return self._between(Bounds(lower, upper, 0, 0, 0, self.parent.ordered[lower, upper], Range(low, high)))

    def _between(self, bounds: Bounds) -> Bounds:
        """The same with unused constants at random, and fewer iterations if the step is more than 1."""
        if bounds.lower:
            bounds.lower_value = self.dice.between(self.lowest, self.highest)
        if bounds.upper:
            bounds.upper_value = self.dice.between(self.lowest, self.highest)
        bounds.least, bounds.most = (-(-n // self.step) for n in (bounds.least, bounds.most))
        return bounds

    def loads(self, bounds: Bounds) -> None:
        sequential = self.config.sequential_loads[self.level]
        check = self.dice.chance(0.6)
        values: dict[int, Range] = {}
        slot = 0
        while slot < sequential:
            has_next = slot % 2 == 0 and slot + 1 < sequential
            if has_next and self.dice.chance(0.45) and self.pair(slot, bounds, values):
                slot += 2
                continue
            if self.dice.chance(0.8):
                self.load(slot, bounds, self.parent, values)
            slot += 1
        for slot in range(sequential, sequential + self.config.random_loads[self.level]):
            if self.dice.chance(0.8):
                self.load(slot, bounds, self.known, values)
        if check:
            self.check(values)

    def pair(self, slot: int, bounds: Bounds, values: dict[int, Range]) -> bool:
        """Slots ``slot`` and ``slot + 1`` load neighbours of one array, which makes an ordered pair of offsets."""
        array = ARRAYS["offset", self.dice.pick(SIZES)]
        index, known = self.index(slot, bounds, self.parent, array.count - 1)
        if known is None:
            return False
        spare = array.count - 2 - known.width
        base = array.base + (self.dice.below(spare + 1) - known.low) * array.size
        destinations = self.destination(), self.dice.destination()
        limit = array.end if self.dice.chance(0.9) else self.limit(array)
        signed = self.dice.below(2)
        for k, destination in enumerate(destinations):
            self._emit(slot + k, array, index, 0, base + k * array.size, limit, destination, signed)
            values[slot + k] = Range(array.low, array.high)
        for destination in destinations:
            self.known.put(destination, Range(array.low, array.high))
        if destinations[0] and destinations[1] and destinations[0] != destinations[1]:
            self.known.ordered[destinations] = OFFSET_STEP
        return True

    def index(self, slot: int, bounds: Bounds, operands: Known, count: int) -> tuple[int, Range | None]:
        """An index with at most ``count`` values and its range, or None if there is none."""
        registers = 0 if slot < self.config.sequential_loads[self.level] else self.config.registers
        listed = [(r, operands.of(r)) for r in range(1, registers + 1)]
        choice = [(r, known) for r, known in listed if known.width < count]
        if bounds.induction.width < count:
            choice += [(0, bounds.induction)] * max(1, len(choice))
        return self.dice.pick(choice) if choice else (0, None)

    def load(self, slot: int, bounds: Bounds, operands: Known, values: dict[int, Range]) -> None:
        name, size = (
            self.dice.pick(["small", "small", "offset", "index", "index", "any", *ALIGNED]),
            self.dice.pick(SIZES),
        )
        array = ARRAYS.get((name, size), ARRAYS["index", size])
        based = [one for one in ARRAYS.values() if one.name in LOADED and operands.within(one.base, one.end - one.size)]
        array = self.dice.pick(based) if based and self.dice.chance(0.5) else array
        index, known = self.index(slot, bounds, operands, array.count)
        if known is None:
            return
        source = self.base_register(array, operands, known)
        base = 0
        if not source:
            spare = array.count - 1 - known.width
            base = array.base + (self.dice.below(spare + 1) - known.low) * array.size
            base += self.dice.below(array.size) if self.dice.chance(0.2) else 0
        signed = self.dice.below(2)
        destination = self.destination()
        limit = array.end if self.dice.chance(0.8) else self.limit(array)
        superblock = self.config.superblock_bytes
        if array.name == "any" and not source and -(-array.end // superblock) * superblock <= OUT:
            mapping = self.dice.below(CLASSES)  # of another class they are other bytes of any kind
            base, limit = in_class(0, mapping, self.dice.config) + base, in_class(0, mapping, self.dice.config) + limit
        self._emit(slot, array, index, source, base, limit, destination, signed)
        values[slot] = self.loaded(array, signed)
        self.known.put(destination, values[slot])

    def base_register(self, array: Array, operands: Known, index: Range) -> int:
        """A register that, as the base, keeps every address in ``array``; else 0."""
        low, high = array.base - index.low * array.size, array.end - array.size - index.high * array.size
        listed = operands.within(low, high) if low <= high else []
        return self.dice.pick(listed) if listed else 0

    def limit(self, array: Array) -> int:
        """An unusual limit, which must make no difference: reading ahead ends sooner or later than need be."""
        return self.dice.pick([0, array.base, array.base + self.dice.below(64), MEMORY_BYTES, FIRST])

    def loaded(self, array: Array, signed: int) -> Range:
        """What a load from this array can give."""
        if array.name != "any":
            return Range(array.low, array.high, array.align)
        bits = 8 * array.size
        low, most = -(1 << (bits - 1)), (1 << bits) - 1
        return self.dice.integers.fitting(low, low + most) if signed else self.dice.integers.fitting(0, most)

    def _emit(
        self, slot: int, array: Array, index: int, source: int, base: int, limit: int, destination: int, signed: int
    ) -> None:
        name, dice = f"LOAD{slot}", self.dice
        self.destinations[slot] = destination
        control = dice.packed(
            LevelField[name], self.level, enable=1, size=SIZES.index(array.size), is_signed=signed, index=index,
            base=source, destination=destination,
        )  # fmt: skip
        base = base if not source else dice.below(1 << VALUE_BITS)
        self.words += [
            control,
            dice.constant(LevelField[f"{name}_BASE"], self.level, base),
            dice.constant(LevelField[f"{name}_LIMIT"], self.level, limit),
        ]

    def check(self, values: dict[int, Range]) -> None:
        if values and self.dice.chance(0.4):
            self.replacing_check(values)
            return
        slots = [slot for slot, known in values.items() if known.low >= 0]
        if not slots:
            return
        slot = self.dice.pick(slots)
        top = values[slot].high
        registers = self.parent.within(top + 1, self.highest)
        register = self.dice.pick(registers) if registers and self.dice.chance(0.5) else 0
        limit = self.dice.pick([top + 1, top + 1, top + 2, self.highest]) if top < self.highest - 1 else self.highest
        if register or top < self.highest - 1:
            kind = self.dice.pick(list(CheckKind))
            self.words += [
                self.dice.packed(LevelField.CHECK, self.level, enable=1, load=slot, kind=kind, limit=register),
                self.dice.constant(LevelField.CHECK_LIMIT, self.level, limit),
            ]

    def replacing_check(self, values: dict[int, Range]) -> None:
        """A check that puts 0 in the place of some values; of a slot whose register no random load needs."""
        dice = self.dice
        random = max(values) >= self.config.sequential_loads[self.level]
        slot = max(values) if random else dice.pick(list(values))
        known = values[slot]
        limit = dice.pick([0, -1, 1, 2, known.high, (known.low + known.high) // 2, self.highest])
        self.words += [
            dice.packed(
                LevelField.CHECK, self.level, enable=1, load=slot, kind=dice.pick(list(CheckKind)),
                mode=dice.pick([CheckMode.WARN, CheckMode.IGNORE]), limit=dice.register() if dice.chance(0.2) else 0,
            ),
            dice.constant(LevelField.CHECK_LIMIT, self.level, limit),
        ]  # fmt: skip
        destination = self.destinations[slot]
        if destination:
            self.known.put(destination, self.known.of(destination).join(Range.of(0)))

    def alu(self, number: int) -> None:
        dice, known = self.dice, self.known
        ops = [op for op in AluOp if self.config.shifters[self.level] or op not in SHIFTS]
        op = dice.pick([*ops, AluOp.ADD, AluOp.ADD, AluOp.MUL])
        sources = [dice.register() if dice.chance(0.65) else 0 for _ in range(2)]
        odd = [dice.between(self.lowest, self.highest) for _ in range(2)]
        constants = [dice.pick([0, 1, 3, 16, 64, -1, dice.below(64), one]) for one in odd]
        if op is AluOp.ADD and dice.chance(0.5):  # an address, or one more
            sources[1], constants[1] = 0, dice.pick([1, 2, dice.pick(list(ARRAYS.values())).base])
        if dice.chance(0.3):  # something of use
            wanted, by = self.useful(), dice.below(1 << 20)
            op, sources, constants = AluOp.ADD, [0, 0], [wanted - by, by]
        operands = [known.of(s) if s else Range.of(c) for s, c in zip(sources, constants, strict=True)]
        destination = self.destination()
        name = f"ALU{number}"
        self.words += [
            dice.packed(LevelField[name], self.level, op=op, a=sources[0], b=sources[1], destination=destination),
            dice.constant(LevelField[f"{name}_A"], self.level, constants[0]),
            dice.constant(LevelField[f"{name}_B"], self.level, constants[1]),
        ]
        if op is AluOp.NONE:
            return
        value = dice.integers.result(op, *operands)
        known.put(destination, value)
        above = (
            value != dice.integers.any
            and op is AluOp.ADD
            and sources[0]
            and not sources[1]
            and 0 <= constants[1] <= self.trips
        )
        if above and destination not in (0, sources[0]):
            known.ordered[sources[0], destination] = constants[1]

    def useful(self) -> int:
        """An address, a size or a pitch."""
        dice = self.dice
        arrays = list(ARRAYS.values())
        return dice.pick([
            TABLE + 64 * dice.below(64), OUT + 4 * dice.below(256), dice.pick(arrays).base, dice.pick(arrays).base,
            dice.pick(dice.sizes), self.config.bus_bytes * dice.below(9), dice.pick(dice.sizes),
        ])  # fmt: skip

    def count(self, bounds: Bounds, empty: Known | None) -> None:
        dice = self.dice
        destination = self.destination()
        predicate = dice.register() if dice.chance(0.6) else 0
        self.words.append(
            dice.packed(LevelField.COUNT, self.level, enable=1, predicate=predicate, sense=dice.below(2),
                        destination=destination)
        )  # fmt: skip
        self.known.put(destination, Range(0, bounds.most))
        if empty:
            empty.put(destination, Range.of(0))
