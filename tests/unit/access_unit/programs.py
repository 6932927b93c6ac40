"""Random loop nests for the access unit, small enough to simulate, and the memory they read."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import CLASSES, in_class
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.spec.access import Bundle, Level, NestTrace, run_contract
from daedal.hw.isa.spec.access_words import nests
from daedal.hw.isa.words import (
    SHIFTS,
    AluOp,
    CheckMode,
    ControlField,
    EventField,
    FetchQueue,
    LevelField,
    LoadIndex,
    Source,
    StepField,
)

MEMORY_BYTES = 1 << 14
MOST_BUNDLES = 250
MOST_FETCHED = 20_000
ARGUMENTS = 16

# Arrays that the memory holds, as byte addresses.
OFFSETS32, OFFSETS64, INDICES32, INDICES64, NOISE = 0x0400, 0x0800, 0x1000, 0x1800, 0x2000
TABLE_ROWS = 50


def memory_image(seed: int) -> bytearray:
    """Offsets of bags (0 to 7 long), indices below TABLE_ROWS, and noise."""
    chance = random.Random(seed)
    image = bytearray(chance.randbytes(MEMORY_BYTES))
    offsets = [0]
    for _ in range(60):
        offsets.append(offsets[-1] + chance.choice([0, 0, 1, 1, 2, 3, 7]))
    indices = [chance.randrange(TABLE_ROWS) for _ in range(250)]
    for base, size, values in (
        (OFFSETS32, 4, offsets), (OFFSETS64, 8, offsets), (INDICES32, 4, indices), (INDICES64, 8, indices),
    ):  # fmt: skip
        for n, value in enumerate(values):
            image[base + n * size : base + (n + 1) * size] = value.to_bytes(size, "little")
    return image


def reader(image: bytearray) -> Callable[[int, int], bytes]:
    """Memory that repeats every MEMORY_BYTES, so that every address of every mapping class can be read."""
    return lambda address, size: bytes(image[(address + n) % MEMORY_BYTES] for n in range(size))


@dataclass
class Case:
    """A program, its arguments, and what the contract says of it."""

    program: Program
    arguments: list[int]
    image: bytearray
    traces: list[NestTrace] = field(default_factory=list)


def random_case(config: Config, seed: int, *, nests_wanted: int = 2, faulty: bool = False) -> Case:
    """A case that is small enough; with ``faulty``, one that ends in a fault, otherwise one that does not."""
    for attempt in range(10_000):
        chance = random.Random(f"{seed}.{attempt}")
        arguments = [chance.randrange(0, 4096, 64) for _ in range(ARGUMENTS)]
        words: list[Word] = []
        for _ in range(nests_wanted):
            words += _Nest(config, chance, arguments, wild=0.15 if faulty else 0.04).words()
            words.append(Word(ControlField.RUN))
        case = Case(Program(config.hash, words), arguments, memory_image(seed))
        if not _small(case, config):
            continue
        case.traces = run_contract(case.program.to_bytes(), config, reader(case.image), arguments)
        fetched = sum(fetch.size for trace in case.traces for fetch in trace.fetches)
        interesting = any(trace.pushes for trace in case.traces)
        if fetched <= MOST_FETCHED and bool(case.traces[-1].fault) == faulty and interesting:
            return case
    raise AssertionError("no small program found")


def _small(case: Case, config: Config) -> bool:
    for words in nests(case.program, case.arguments, config):
        bundles: Any = [Bundle((0,) * config.registers)]
        for level in range(config.levels):
            # What is infinite within a level must be cut there: a level may drop nothing, so this is exact.
            level_of = Level(words, config, level, reader(case.image))
            bundles = islice(level_of.transform(bundles), MOST_BUNDLES + 1)
        if sum(1 for _ in bundles) > MOST_BUNDLES:
            return False
    return True


class _Nest:
    """One random nest: levels that mostly walk bags, with anything allowed anywhere."""

    def __init__(self, config: Config, chance: random.Random, arguments: list[int], *, wild: float) -> None:
        self.config, self.chance, self.arguments, self.wild = config, chance, arguments, wild
        self.bag: tuple[int, int] | None = None

    def words(self) -> list[Word]:
        chance = self.chance
        words = []
        for level in range(chance.choice([0, 1, *range(1, self.config.levels + 1), self.config.levels])):
            words += self.level(level)
        for event in range(4 * self.config.levels):
            if event % 4 != 3 and chance.random() < 0.5:
                words.append(Word.packed(
                    EventField.CONTROL, event, first=chance.randrange(self.config.steps), count=0,
                    predicate=self.register(0.6), sense=chance.randrange(2),
                ))  # fmt: skip
                first = words[-1].members()["first"]
                count = chance.randrange(min(4, self.config.steps - first) + 1)
                words[-1] = Word(words[-1].field, event, words[-1].value | count << 5)
        for step in range(self.config.steps):
            words += self.step(step)
        chance.shuffle(words)
        return words

    def register(self, none: float = 0.0) -> int:
        return 0 if self.chance.random() < none else self.chance.randint(1, self.config.registers)

    def constant(self, field: Any, index: int, value: int) -> Word:
        """A constant, sometimes with an argument added by the loader."""
        if self.chance.random() < 0.3:
            argument = self.chance.randrange(ARGUMENTS)
            return Word(field, index, (value - self.arguments[argument]) % (1 << 40), argument)
        return Word(field, index, value % (1 << 40))

    def turns(self, level: int) -> dict[str, int]:
        """How activations of this level take turns."""
        if not self.config.contexts[level] or self.chance.random() < 0.3:
            return {}
        deals = self.config.dealt_bundles and self.chance.random() < 0.5
        return {"deal": 1} if deals else {"interleave": 1}

    def level(self, level: int) -> list[Word]:
        chance = self.chance
        lower, upper = Source.CONST, Source.CONST
        if self.bag and chance.random() < 0.8:
            lower, upper = (Source(register) for register in self.bag)
        if chance.random() < self.wild:
            lower = Source(self.register())
        begin = chance.randrange(-2, 4) if chance.random() < 0.3 else 0
        count = chance.choice([0, 1, 2, 3, 5, 9, 20]) if chance.random() >= self.wild else -1
        self.bag = None
        words = [
            Word.packed(
                LevelField.CONTROL, level, enable=1, induction=self.register(0.2), lower=lower, upper=upper,
                **self.turns(level),
            ),
            self.constant(LevelField.LOWER, level, begin),
            self.constant(LevelField.UPPER, level, begin + count),
        ]  # fmt: skip
        step = chance.choice([1, 1, 1, 1, 2, 3])
        if step != 1 or chance.random() < 0.5:  # 1 is what it is without the word
            words.append(self.constant(LevelField.STEP, level, step))
        words += self.loads(level)
        for alu in range(self.config.alus[level]):
            words += self.alu(level, alu)
        if chance.random() < 0.5:
            words.append(Word.packed(
                LevelField.COUNT, level, enable=1, predicate=self.register(0.3), sense=chance.randrange(2),
                destination=self.register(0.1),
            ))  # fmt: skip
        return words

    def loads(self, level: int) -> list[Word]:
        chance = self.chance
        sequential, randoms = self.config.sequential_loads[level], self.config.random_loads[level]
        words: list[Word] = []
        start = 0
        if sequential >= 2 and chance.random() < 0.6:
            words += self.offsets(level)
            start = 2
        for slot in range(start, sequential + randoms):
            if chance.random() < 0.75:
                words += self.load(level, slot, sequential=slot < sequential)
        return words

    def offsets(self, level: int) -> list[Word]:
        """The two ends of a bag, from an array of offsets, that the next level uses as its bounds."""
        wide = self.chance.random() < 0.5
        base, size = (OFFSETS64, 3) if wide else (OFFSETS32, 2)
        first, second = self.chance.sample(range(1, self.config.registers + 1), 2)
        self.bag = (first, second)
        words, base = [], self.mapped(base)
        for slot, register in enumerate((first, second)):
            name = f"LOAD{slot}"
            words += [
                Word.packed(LevelField[name], level, enable=1, size=size, destination=register),
                self.constant(LevelField[f"{name}_BASE"], level, base + (slot << size)),
                self.constant(LevelField[f"{name}_LIMIT"], level, base + (61 << size)),
            ]
        return words

    def mapped(self, place: int) -> int:
        """An address of any mapping class for this place."""
        return in_class(place, self.chance.randrange(CLASSES), self.config)

    def load(self, level: int, slot: int, *, sequential: bool) -> list[Word]:
        chance, name = self.chance, f"LOAD{slot}"
        base, size = chance.choice([(INDICES32, 2), (INDICES64, 3), (OFFSETS32, 2)])
        if chance.random() < 0.4:
            base, size = NOISE + 8 * chance.randrange(64), chance.randrange(4)
        address = self.mapped(base)
        by_register = not sequential and chance.random() < 0.8
        destination = self.register(0.1)
        words = [
            Word.packed(
                LevelField[name], level, enable=1, size=size, is_signed=chance.randrange(2),
                index=LoadIndex(self.register() if by_register else 0),
                base=Source(self.register() if chance.random() < 0.1 else 0), destination=destination,
            ),
            self.constant(LevelField[f"{name}_BASE"], level, address),
            self.constant(LevelField[f"{name}_LIMIT"], level, address + chance.choice([0, 20, 200, 1000])),
        ]  # fmt: skip
        noisy = base >= NOISE and chance.random() >= self.wild
        mode = chance.choice([CheckMode.FATAL, *CheckMode])
        if (not noisy or mode is not CheckMode.FATAL) and chance.random() < 0.5:
            words += [
                Word.packed(
                    LevelField.CHECK, level, enable=1, load=slot, kind=chance.randrange(2), mode=mode,
                    limit=self.register() if chance.random() < self.wild else 0,
                ),
                self.constant(LevelField.CHECK_LIMIT, level, TABLE_ROWS if base != OFFSETS32 else 500),
            ]  # fmt: skip
        return words

    def alu(self, level: int, alu: int) -> list[Word]:
        chance = self.chance
        ops = [op for op in AluOp if op not in SHIFTS or self.config.shifters[level]]
        bits = chance.choice([3, 6, 40])
        return [
            Word.packed(
                LevelField[f"ALU{alu}"], level, op=chance.choice(ops), a=self.register(0.2), b=self.register(0.5),
                destination=self.register(0.1) if not self.bag or chance.random() < 0.2 else 0,
            ),
            self.constant(LevelField[f"ALU{alu}_A"], level, chance.getrandbits(bits)),
            self.constant(LevelField[f"ALU{alu}_B"], level, chance.getrandbits(bits)),
        ]  # fmt: skip

    def step(self, step: int) -> list[Word]:
        chance = self.chance
        line = self.config.bus_bytes
        inside = chance.random() < 0.3
        size = chance.randrange(4, line + 1, 4) if inside else 4 * chance.choice([1, 2, 5, 16, 30, 64, 150])
        behind = line - ((size - 1) % line + 1)  # a row that begins at a line, in its last one
        base = NOISE + line * chance.randrange(64)
        base += chance.randrange(0, behind + 1, 4) if inside or chance.random() < 0.5 else 0
        if chance.random() < self.wild:
            base, size = base + chance.choice([0, 2, 4]), size + chance.choice([0, 1, 4])
        enables = {f"{name}_enable": chance.random() < 0.5 for name in ("scalar", "store", "token", "fetch")}
        wild = Source(self.register() if chance.random() < self.wild / 4 else 0)
        values = {
            StepField.TOKEN: chance.randrange(64),
            StepField.SCALAR: chance.getrandbits(40),
            StepField.STORE_BASE: self.mapped(2 * chance.randrange(1 << 21)),
            StepField.STORE_INDEX: chance.getrandbits(32),
            StepField.STORE_PITCH: 2 * chance.randrange(1 << 23),
            StepField.STORE_SIZE: 2 * chance.randint(1, 600),
            StepField.FETCH_BASE: self.mapped(base),
            StepField.FETCH_INDEX: chance.getrandbits(32),
            StepField.FETCH_PITCH: line * chance.randrange(1 << 18),
            StepField.FETCH_SIZE: size,
        }
        words = [
            Word.packed(
                StepField.CONTROL, step, **enables, stream=chance.randrange(2), queue=chance.choice(list(FetchQueue)),
                scalar=self.register(0.3), token=self.register(0.7), store_index=self.register(0.3),
                fetch_index=self.register(0.3), store_base=wild, fetch_size=wild, fetch_base=0,
                store_pitch=wild, fetch_pitch=0, store_size=0,
            )
        ]  # fmt: skip
        return words + [self.constant(field, step, value) for field, value in values.items()]
