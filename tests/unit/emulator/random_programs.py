"""Random programs that keep within bounds: short loops, addresses inside of memory, the rest at random.

The generator knows for each register and level whether it holds a *small* number (0 … 3): only such registers
become loop bounds, indices of loads and of rows. The rest may be anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.words import (
    ALU_FIELDS,
    LOAD_FIELDS,
    SHIFTS,
    AluOp,
    CallbackField,
    CheckKind,
    CheckMode,
    ControlField,
    EventField,
    EventKind,
    FetchQueue,
    LevelField,
    StepField,
)
from tests.unit.emulator.programs import instruction

SMALL = 4
DATA = 4096
"""Address of the arrays: 256 bytes of small numbers for each element size, then numbers of any kind."""
OUT = 32768
MEMORY_BYTES = 65536
STREAM_BYTES = 16
"""All rows of the store stream are this long, so that every store address fits every row."""


def data(rng: np.random.Generator) -> bytes:
    """What is in memory at ``DATA``."""
    small = [rng.integers(0, SMALL, 256 // size).astype(f"<u{size}").tobytes() for size in (1, 2, 4, 8)]
    return b"".join(small) + rng.bytes(16384)


@dataclass
class Generator:
    """Makes one random program for ``config``."""

    rng: np.random.Generator
    config: Config
    faults: bool = False
    """Whether to make programs that may end in a fault."""
    silent: bool = False
    """No events: nothing is left in a queue, so that the launch ends well."""
    words: list[Word] = field(default_factory=list)
    arguments: list[int] = field(default_factory=list)

    def program(self) -> bytes:
        self.arguments = [int(self.rng.integers(1 << 40)) for _ in range(self.config.arguments)]
        self.words = [instruction(0, VectorOp.NOP, last=1)]
        self.words += [Word(CallbackField.START, k, 0) for k in range(self.config.callbacks)]
        for _ in range(self.rng.integers(1, 4)):
            self.nest()
            self.words.append(Word(ControlField.RUN))
        return Program(self.config.hash, self.words).to_bytes()

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def constant(self, field: Any, index: int, value: int) -> None:
        """A constant as it is, or as an argument and the difference to it."""
        if self.chance(0.3):
            number = int(self.rng.integers(len(self.arguments)))
            self.words.append(Word(field, index, (value - self.arguments[number]) % (1 << 40), number))
        else:
            self.words.append(Word(field, index, value % (1 << 40)))

    def register(self, choice: Sequence[int] | None = None) -> int:
        """A register as operands name it (from 1), 0 if there is none to choose from."""
        numbers = range(1, self.config.registers + 1) if choice is None else list(choice)
        return int(self.pick(numbers)) if len(numbers) else 0

    def nest(self) -> None:
        small = set(range(1, self.config.registers + 1))  # all are 0 at first
        levels = self.config.levels if self.chance(0.5) else int(self.rng.integers(self.config.levels + 1))
        at_level = []
        for level in range(levels):
            small = self.level(level, small)
            at_level.append(small)
        shared = set.intersection(*at_level) if at_level else small
        for step in range(self.config.steps):
            self.step(step, sorted(shared))
        for level in range(levels):
            for kind in EventKind:
                if not self.silent and self.chance(0.5):
                    self.event(level, kind)

    def event(self, level: int, kind: EventKind) -> None:
        count = int(self.rng.integers(1, 3))
        first = int(self.rng.integers(0, self.config.steps - count + 1))
        self.words.append(
            Word.packed(
                EventField.CONTROL,
                4 * level + kind.value,
                first=first,
                count=count,
                predicate=self.register() if self.chance(0.5) else 0,
                sense=int(self.rng.integers(2)),
            )
        )

    def level(self, level: int, parent: set[int]) -> set[int]:
        """One level; the registers that are small in its bundles."""
        small = set(parent)
        upper = self.register(sorted(parent - {1})) if level and self.chance(0.35) else 0
        lower = self.register(sorted(parent)) if self.faults and self.chance(0.1) else 0
        induction = self.register() if self.chance(0.8) else 0
        in_turn = bool(self.config.contexts[level]) and self.chance(0.7)
        deals = in_turn and bool(self.config.dealt_bundles) and self.chance(0.5)
        self.words.append(
            Word.packed(
                LevelField.CONTROL,
                level,
                enable=1,
                induction=induction,
                lower=lower,
                upper=upper,
                interleave=in_turn and not deals,
                deal=deals,
            )
        )
        first = int(self.rng.integers(0, 2)) if self.faults and self.chance(0.2) else 0
        below = 0 if upper or lower or self.chance(0.6) else int(self.rng.integers(3))
        self.constant(LevelField.LOWER, level, first - below)
        self.constant(LevelField.UPPER, level, int(self.rng.integers(max(first, 0), SMALL + 1)))
        self.constant(LevelField.STEP, level, self.pick([1, 1, 2, 3]))
        negative = below > first  # the induction variable starts below 0 and is no index
        self.mark(small, induction, not negative)
        for slot in range(self.config.sequential_loads[level] + self.config.random_loads[level]):
            is_random = slot >= self.config.sequential_loads[level]
            self.load(level, slot, sorted(small) if is_random else [], small, not negative)
        self.check(level, sorted(parent))
        for alu in range(self.config.alus[level]):
            self.alu(level, alu, small)
        if self.chance(0.4):
            destination = self.register()
            predicate = self.register() if self.chance(0.6) else 0
            sense = int(self.rng.integers(2))
            self.words.append(
                Word.packed(
                    LevelField.COUNT,
                    level,
                    enable=1,
                    destination=destination,
                    predicate=predicate,
                    sense=sense,
                )
            )
            self.mark(small, destination, False)
        # In an activation without iterations the level's own registers are its parent's.
        return small & parent

    @staticmethod
    def mark(small: set[int], number: int, is_small: bool) -> None:
        if is_small:
            small.add(number)
        else:
            small.discard(number)

    def load(self, level: int, slot: int, indices: list[int], small: set[int], induction: bool) -> None:
        index = self.register(indices) if indices and self.chance(0.5) else 0
        if self.chance(0.3) or (index == 0 and not induction):
            return
        size = int(self.rng.integers(4))
        is_small = self.chance(0.6)
        base = DATA + (256 * size if is_small else 1024 + 8 * int(self.rng.integers(64)))
        name = f"LOAD{slot}"
        destination = self.register() if self.chance(0.9) else 0
        self.words.append(
            Word.packed(
                LevelField[name],
                level,
                enable=1,
                size=size,
                is_signed=int(self.rng.integers(2)),
                index=index,
                destination=destination,
            )
        )
        at = LevelField[name].value
        assert at == LevelField.LOAD0.value + LOAD_FIELDS * slot
        self.constant(LevelField[f"{name}_BASE"], level, base)
        self.constant(LevelField[f"{name}_LIMIT"], level, DATA + 16384)
        self.mark(small, destination, is_small)

    def check(self, level: int, parent: list[int]) -> None:
        loads = self.config.sequential_loads[level] + self.config.random_loads[level]
        if not loads or self.chance(0.4):
            return
        mode = self.pick(list(CheckMode))
        tight = (self.faults and self.chance(0.2)) or (mode is not CheckMode.FATAL and self.chance(0.6))
        limit = self.register(parent) if tight else 0
        slots = [slot for slot in range(loads) if tight or self.is_small_or_off(level, slot)]
        if not slots:
            return
        if mode is not CheckMode.FATAL:
            slots = [slot for slot in slots if not self.is_small_or_off(level, slot)] or slots
        slot, kind = self.pick(slots), self.pick(list(CheckKind))
        self.words.append(Word.packed(LevelField.CHECK, level, enable=1, load=slot, kind=kind, mode=mode, limit=limit))
        self.constant(LevelField.CHECK_LIMIT, level, self.pick([2, 3, 255, 1 << 38]) if tight else SMALL)

    def is_small_or_off(self, level: int, slot: int) -> bool:
        """Whether a check of this slot cannot fail."""
        last: dict[tuple[Any, int], Word] = {(word.field, word.index): word for word in self.words}
        for word in reversed(self.words):
            if word.field is ControlField.RUN:
                return True
            if word.field is LevelField[f"LOAD{slot}"] and word.index == level:
                break
        else:
            return True
        base = last[LevelField[f"LOAD{slot}_BASE"], level]
        value = base.value + (0 if base.argument is None else self.arguments[base.argument])
        return value % (1 << 40) < DATA + 1024

    def alu(self, level: int, number: int, small: set[int]) -> None:
        ops = [op for op in AluOp if self.config.shifters[level] or op not in SHIFTS]
        op = self.pick(ops)
        a, b = (self.register() if self.chance(0.7) else 0 for _ in range(2))
        destination = self.register() if self.chance(0.9) else 0
        name = f"ALU{number}"
        assert LevelField[name].value == LevelField.ALU0.value + ALU_FIELDS * number
        self.words.append(Word.packed(LevelField[name], level, op=op, a=a, b=b, destination=destination))
        for operand in "AB":
            value = self.pick([0, 1, 3, -1, 40, 63, int(self.rng.integers(1 << 40))])
            self.constant(LevelField[f"{name}_{operand}"], level, value)
        if op is not AluOp.NONE:
            self.mark(small, destination, op in (AluOp.EQUAL, AluOp.NOT_EQUAL, AluOp.LESS))

    def step(self, number: int, small: list[int]) -> None:
        line = self.config.bus_bytes
        queue = self.pick(list(FetchQueue))
        token, scalar = (self.register(small) if self.chance(0.3) else 0), self.register()
        self.words.append(
            Word.packed(
                StepField.CONTROL,
                number,
                scalar_enable=self.chance(0.3),
                store_enable=self.chance(0.3),
                token_enable=self.chance(0.4),
                fetch_enable=self.chance(0.4),
                stream=self.chance(0.5),
                queue=queue,
                scalar=scalar if self.chance(0.7) else 0,
                token=token,
                store_index=self.register(small),
                fetch_index=self.register(small),
            )
        )
        wrong = self.faults and self.chance(0.02)
        self.constant(StepField.TOKEN, number, int(self.rng.integers(self.config.callbacks)))
        self.constant(StepField.SCALAR, number, int(self.rng.integers(1 << 40)))
        self.constant(StepField.STORE_BASE, number, OUT + 4 * int(self.rng.integers(64)) + 2 * wrong)
        self.constant(StepField.STORE_INDEX, number, int(self.rng.integers(SMALL)))
        self.constant(StepField.STORE_PITCH, number, 4 * int(self.rng.integers(64)))
        self.constant(StepField.STORE_SIZE, number, STREAM_BYTES)
        self.constant(StepField.FETCH_BASE, number, DATA + line * int(self.rng.integers(16)))
        self.constant(StepField.FETCH_INDEX, number, int(self.rng.integers(SMALL)))
        self.constant(StepField.FETCH_PITCH, number, line * int(self.rng.integers(8)) + 4 * wrong)
        size = STREAM_BYTES if queue is FetchQueue.STORE else 4 * int(self.rng.integers(1, 65))
        self.constant(StepField.FETCH_SIZE, number, size)
