"""Illegal programs: legal ones with one thing made wrong.

A mutation does not know whether the machine will come across what it changed; the emulator says. Those that make no
difference are thrown away.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from amaranth import Shape

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import STORE_STEP
from daedal.hw.isa.instructions import Instruction, Mode, VectorOp
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.operations import OPERATIONS
from daedal.hw.isa.program import FIELD_STRUCTS, Word, pack, unpack
from daedal.hw.isa.spec.integer import signed
from daedal.hw.isa.words import (
    SHIFTS,
    SIZE_BITS,
    VALUE_BITS,
    AluOp,
    CallbackField,
    CheckKind,
    CheckMode,
    ControlField,
    EventField,
    FetchQueue,
    InstructionField,
    LengthField,
    LevelField,
    ProgramWord,
    StepField,
    Unit,
)
from tests.fuzz.programs.case import HEADER, Case
from tests.fuzz.programs.dice import Dice
from tests.fuzz.programs.generator import legal_case
from tests.fuzz.programs.image import ARRAYS, OUT, OUT_END, SIZES, TABLE

LOADS = tuple(LevelField[f"LOAD{k}"] for k in range(4))
ALUS = tuple(LevelField[f"ALU{k}"] for k in range(4))
NO_OPERATION = sorted({*range(1 << Shape.cast(VectorOp).width)} - {op.value for op in OPERATIONS})
NOT_ON_ROWS, NOT_ON_SCALARS, NOT_REDUCED = (
    [op.value for op, row in OPERATIONS.items() if not row.may_have(mode)] for mode in Mode
)


@dataclass
class Mutation:
    """A program to change; every change returns False if there is nothing that it can change."""

    dice: Dice
    body: list[int]
    header: list[int]
    end: int

    @property
    def config(self) -> Config:
        return self.dice.config

    def words(self, *fields: Enum) -> list[tuple[int, Word]]:
        """Position and word of all words of these fields, their arguments added."""
        found = []
        for position, bits in enumerate(self.body):
            raw = unpack(ProgramWord, bits)
            if raw["unit"] == Unit.CONTROL.value:
                continue
            word = Word.decode(bits, position)
            if not fields or word.field in fields:
                added = 0 if word.argument is None else self.dice.arguments[word.argument]
                found.append((position, Word(word.field, word.index, (word.value + added) % (1 << VALUE_BITS))))
        return found

    def put(self, position: int, word: Word) -> bool:
        """Another word in the place of one."""
        self.body[position] = word.encode()
        return True

    def insert(self, bits: int) -> bool:
        """One word more, somewhere."""
        self.body.insert(self.dice.below(len(self.body) + 1), bits)
        return True

    def alter(self, fields: tuple[Enum, ...], change: Callable[[dict[str, int], Word], bool]) -> bool:
        """Change the members of one packed word; ``change`` returns False for a word that it leaves alone."""
        for position, word in self.dice.shuffle(self.words(*fields)):
            members = word.members()
            if change(members, word):
                return self.put(position, replace(word, value=pack(FIELD_STRUCTS[word.field], _nested(members))))
        return False

    def number(self, fields: tuple[Enum, ...], change: Callable[[int], int]) -> bool:
        """Change one constant."""
        listed = self.words(*fields)
        if not listed:
            return False
        position, word = self.dice.pick(listed)
        return self.put(position, replace(word, value=change(word.value) % (1 << VALUE_BITS)))


def _nested(members: dict[str, int]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in members.items():
        outer, _, inner = name.partition(".")
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            nested[outer] = value
    return nested


def bad_index(m: Mutation) -> bool:
    """A checked load reads values that are out of any bounds."""
    checks = [
        (word.index, word.members()["load"])
        for _, word in m.words(LevelField.CHECK)
        if word.members()["mode"] == CheckMode.FATAL.value
    ]
    if not checks:
        return False
    level, slot = m.dice.pick(checks)
    listed = [(at, word) for at, word in m.words(LevelField[f"LOAD{slot}"]) if word.index == level]
    bases = [at for at, word in m.words(LevelField[f"LOAD{slot}_BASE"]) if word.index == level]
    if not listed or not bases:
        return False
    at, word = m.dice.pick(listed)
    members = word.members() | {"base": 0}
    array = ARRAYS["bad", SIZES[members["size"]]]
    m.put(at, replace(word, value=pack(FIELD_STRUCTS[word.field], members)))
    base = array.base + array.size * m.dice.below(array.count // 2)
    return m.put(bases[0], Word(LevelField[f"LOAD{slot}_BASE"], level, base))


def low_limit(m: Mutation) -> bool:
    """A check whose limit is below what is loaded, or negative."""
    limit = m.dice.pick([0, 1, 2, -1, m.dice.below(16)])
    fatal = _set(limit=0, mode=CheckMode.FATAL.value)
    return m.alter((LevelField.CHECK,), fatal) and m.number((LevelField.CHECK_LIMIT,), lambda _: limit)


def _set(**members: int) -> Callable[[dict[str, int], Word], bool]:
    def change(old: dict[str, int], word: Word) -> bool:
        old.update(members)
        return True

    return change


def falling_bounds(m: Mutation) -> bool:
    """An upper bound below the lower one."""
    by = m.dice.pick([1, 1, 2, 100])
    lower = {word.index: word.value for _, word in m.words(LevelField.LOWER)}
    bits, lowest = m.config.address_bits, m.dice.integers.lowest
    level = m.dice.below(m.config.levels)
    for position, word in m.words(LevelField.UPPER):
        if word.index == level and signed(lower.get(level, lowest), bits) >= lowest + by:
            controls = [(at, one) for at, one in m.words(LevelField.CONTROL) if one.index == level]
            for at, one in controls:
                m.put(at, replace(one, value=pack(FIELD_STRUCTS[one.field], one.members() | {"upper": 0, "lower": 0})))
            return m.put(position, Word(LevelField.UPPER, level, (lower[level] - by) % (1 << VALUE_BITS)))
    return False


def falling_offsets(m: Mutation) -> bool:
    """Offsets that decrease."""
    loads = {(word.index, word.field): word.members() for _, word in m.words(*LOADS)}
    for position, word in m.dice.shuffle(m.words(*(LevelField[f"{load.name}_BASE"] for load in LOADS))):
        load = LevelField[word.field.name.removesuffix("_BASE")]
        members = loads.get((word.index, load))
        if members and not members["base"]:
            size = SIZES[members["size"]]
            rising, falling = ARRAYS["offset", size], ARRAYS["falling", size]
            if rising.base <= word.value < rising.end:
                base = falling.base + (word.value - rising.base) % (falling.size * falling.count // 2)
                return m.put(position, Word(word.field, word.index, base))
    return False


def wrong_length(m: Mutation) -> bool:
    """A vector length that is not the rows'."""
    return m.number((LengthField.ELEMENTS,), lambda value: max(1, value + m.dice.pick([1, -1, 2, m.config.lanes])))


def impossible_length(m: Mutation) -> bool:
    """A vector length that no machine has."""
    most = m.config.vl_max
    return m.number((LengthField.ELEMENTS,), lambda _: m.dice.pick([0, most + 1, 2 * most, 1 << 39]))


def wrong_size(m: Mutation) -> bool:
    """A row or a store of another size."""
    by = m.dice.pick([4, -4, 8, 4 * m.config.lanes, 1024])
    return m.number((StepField.FETCH_SIZE, StepField.STORE_SIZE), lambda value: max(4, (value % (1 << SIZE_BITS)) + by))


def odd_row(m: Mutation) -> bool:
    """A row that is not whole granules, or to be stored not whole steps, or not aligned."""
    if m.dice.chance(0.3):
        return m.number((StepField.FETCH_BASE, StepField.FETCH_SIZE), lambda value: value + STORE_STEP)
    by = m.dice.pick([1, 3])
    fields = (StepField.FETCH_BASE, StepField.STORE_BASE, StepField.FETCH_SIZE, StepField.STORE_SIZE)
    return m.number(fields, lambda value: value + by)


def across_lines(m: Mutation) -> bool:
    """A row that starts within a line and goes on into the next one."""
    return m.number((StepField.FETCH_BASE,), lambda value: value + m.config.bus_bytes - 4)


def no_size(m: Mutation) -> bool:
    """A row without elements."""
    return m.number((StepField.FETCH_SIZE, StepField.STORE_SIZE), lambda value: m.dice.below(2) << SIZE_BITS)


def far_row(m: Mutation) -> bool:
    """A row, a place for one, or an array where no memory is."""
    fields = (
        StepField.FETCH_BASE, StepField.STORE_BASE, *(LevelField[f"{load.name}_BASE"] for load in LOADS),
    )  # fmt: skip
    return m.number(fields, lambda value: value | 1 << (m.config.place_bits - 1))


def store_outside(m: Mutation) -> bool:
    """Rows that go, in part or all, to places beside the launch's store window."""
    place = m.dice.pick([OUT - 4 * m.dice.below(64), OUT_END - 4 * m.dice.below(64), TABLE])
    return m.number((StepField.STORE_BASE,), lambda value: value >> m.config.place_bits << m.config.place_bits | place)


def wrong_sum(m: Mutation) -> bool:
    """An END that does not fit the words before it."""
    m.end ^= 1 << m.dice.below(VALUE_BITS)
    return True


def no_callback(m: Mutation) -> bool:
    """A token without a callback."""
    defined = {word.index for _, word in m.words(CallbackField.START)}
    free = [token for token in range(64) if token not in defined]
    return bool(free) and m.number((StepField.TOKEN,), lambda _: m.dice.pick(free))


def callback_beyond(m: Mutation) -> bool:
    """A callback that starts behind the last instruction, or one of which a part was not written."""
    if m.dice.chance(0.5):
        return m.number((CallbackField.START,), lambda _: m.config.instructions + m.dice.pick([0, 1, 1 << 38]))
    listed = m.words(InstructionField.CODE)
    if not listed:
        return False
    del m.body[m.dice.pick(listed)[0]]
    return True


def endless_callback(m: Mutation) -> bool:
    """A callback without an end."""
    return m.alter((InstructionField.CODE,), lambda members, _: members["last"] == 1 and not members.update(last=0))


def bad_instruction(m: Mutation) -> bool:
    """An instruction that the machine does not have."""
    config = m.config
    vector, scalar, reduce = (mode.value for mode in Mode)
    bad: list[dict[str, int]] = [
        {"op": m.dice.pick(NO_OPERATION)}, {"mode": len(Mode)}, {"mode": vector, "octets": 1},
        {"a.kind": 1, "a.number": m.dice.between(2, 15)}, {"op": VectorOp.MOVE.value, "b.number": 1},
        {"op": VectorOp.STORE.value, "a.kind": 1, "a.number": 0}, {"op": VectorOp.FMA.value, "a.kind": 2, "b.kind": 2},
        {"op": VectorOp.FMA.value, "a.kind": 1, "a.number": 0, "b.kind": 1, "b.number": 0},
        {"mode": reduce, "op": m.dice.pick(NOT_REDUCED)}, {"mode": scalar, "op": m.dice.pick(NOT_ON_SCALARS)},
        {"mode": scalar, "op": VectorOp.STORE.value, "a.kind": 0}, {"mode": vector, "indexed": 1},
        {"mode": vector, "op": m.dice.pick(NOT_ON_ROWS)},
        {"indexed": 0, "element": m.dice.between(1, 15)},
    ]  # fmt: skip
    if config.vector_registers < 16:
        bad += [{"mode": vector, name: 15} for name in ("destination", "c")] + [{"a.kind": 0, "a.number": 15}]
    if config.scalars < 16:
        bad += [{"mode": scalar, name: 15} for name in ("destination", "c")] + [{"a.kind": 3, "a.number": 15}]
    lengths = max(1 << field.width for name, field in Instruction.as_shape() if name == "length")
    bad += [{"length": config.lengths}] if config.lengths < lengths else []
    return m.alter((InstructionField.CODE,), _set(**m.dice.pick(bad)))


def bad_register(m: Mutation) -> bool:
    """An operand, predicate or destination that names a register that the machine does not have."""
    config = m.config
    if config.registers == 7:
        return False
    wrong = m.dice.between(config.registers + 1, 7)
    names = {
        "induction", "lower", "upper", "index", "base", "destination", "a", "b", "limit", "predicate", "scalar",
        "token", *(f"{row}_{part}" for row in ("store", "fetch") for part in ("base", "index", "pitch", "size")),
    }  # fmt: skip

    def change(members: dict[str, int], word: Word) -> bool:
        if word.unit is Unit.INSTRUCTION:
            return False
        if word.field is EventField.CONTROL and not members["count"]:
            return False
        members[m.dice.pick(sorted(names & set(members)))] = wrong
        return True

    return m.alter(tuple(field for field in FIELD_STRUCTS if not isinstance(field, InstructionField)), change)


def bad_alu(m: Mutation) -> bool:
    """An ALU operation that does not exist, or a shift in a level without a shifter."""

    def change(members: dict[str, int], word: Word) -> bool:
        bad = list(range(len(AluOp), 16))
        if not m.config.shifters[word.index]:
            bad += [op.value for op in SHIFTS]
        members["op"] = m.dice.pick(bad)
        return True

    return m.alter(ALUS, change)


def bad_load_index(m: Mutation) -> bool:
    """A sequential load whose index is a register."""

    def change(members: dict[str, int], word: Word) -> bool:
        if LOADS.index(word.field) >= m.config.sequential_loads[word.index]:
            return False
        members["index"] = 1 + m.dice.below(m.config.registers)
        return True

    return m.alter(LOADS, change)


def bad_check(m: Mutation) -> bool:
    """A check of a kind, a mode or a slot that does not exist."""

    def change(members: dict[str, int], word: Word) -> bool:
        loads = m.config.sequential_loads[word.index] + m.config.random_loads[word.index]
        bad = [("kind", k) for k in range(len(CheckKind), 4)] + [("mode", k) for k in range(len(CheckMode), 4)]
        bad += [("load", k) for k in range(loads, 4)]
        name, value = m.dice.pick(bad)
        members[name] = value
        return True

    return m.alter((LevelField.CHECK,), change)


def bad_event(m: Mutation) -> bool:
    """An event whose steps go on behind the machine's last one."""

    def change(members: dict[str, int], word: Word) -> bool:
        members["first"] = m.config.steps - members["count"] + 1
        return members["first"] < 32 and members["count"] > 0

    return m.alter((EventField.CONTROL,), change)


def bad_queue(m: Mutation) -> bool:
    """A row fetch to a queue that does not exist."""
    return m.alter((StepField.CONTROL,), _set(queue=len(FetchQueue)))


def no_step(m: Mutation) -> bool:
    """A level that does not count on."""
    held = 1 << m.config.address_bits  # of which a register holds 0
    return m.number((LevelField.STEP,), lambda _: m.dice.pick([0, held]))


def bad_word(m: Mutation) -> bool:
    """A word for something that does not exist."""
    config, dice = m.config, m.dice
    level = dice.below(config.levels)
    loads = config.sequential_loads[level] + config.random_loads[level]
    bad: list[dict[str, Any]] = [
        {"unit": dice.between(len(Unit), 15)}, {"unit": Unit.LEVEL, "index": config.levels},
        {"unit": Unit.LEVEL, "index": level, "field": dice.pick([7, 15, 48, 255, 19, 35])},
        {"unit": Unit.EVENT, "index": 4 * dice.below(config.levels) + 3}, {"unit": Unit.EVENT, "index": 0, "field": 1},
        {"unit": Unit.EVENT, "index": 4 * config.levels}, {"unit": Unit.STEP, "index": config.steps},
        {"unit": Unit.STEP, "field": len(StepField)}, {"unit": Unit.LENGTH, "index": config.lengths},
        {"unit": Unit.LENGTH, "field": 1}, {"unit": Unit.CALLBACK, "field": 1},
        {"unit": Unit.INSTRUCTION, "field": 1}, {"unit": Unit.CONTROL, "field": len(ControlField)},
        {"unit": Unit.CONTROL, "field": ControlField.RUN.value, "index": 1},
        {"unit": Unit.CONTROL, "field": dice.pick([0, 1, 3])},
    ]  # fmt: skip
    bad += [{"unit": Unit.CALLBACK, "index": config.callbacks}] if config.callbacks < 64 else []
    bad += [{"unit": Unit.INSTRUCTION, "index": config.instructions}] if config.instructions < 64 else []
    bad += [{"unit": Unit.LEVEL, "index": level, "field": 16 + 4 * k + dice.below(3)} for k in range(loads, 4)]
    bad += [
        {"unit": Unit.LEVEL, "index": level, "field": 32 + 4 * k + dice.below(3)} for k in range(config.alus[level], 4)
    ]
    if config.arguments < 32:
        bad.append({"unit": Unit.LEVEL, "field": 1, "substitute": 1, "argument": 31})
    return m.insert(pack(ProgramWord, {"value": dice.below(1 << 40), **dice.pick(bad)}))


def late_word(m: Mutation) -> bool:
    """A word for the execute unit behind the first nest."""
    runs = [k for k, bits in enumerate(m.body) if bits == Word(ControlField.RUN).encode()]
    if not runs:
        return False
    unit = m.dice.pick([Unit.LENGTH, Unit.CALLBACK, Unit.INSTRUCTION])
    m.body.insert(m.dice.between(runs[0] + 1, len(m.body)), pack(ProgramWord, {"unit": unit}))
    return True


def wrong_hash(m: Mutation) -> bool:
    """A program for another configuration."""
    m.header[0] ^= 1 << m.dice.below(32)
    return True


def wrong_header(m: Mutation) -> bool:
    """Not a number of words where it should be, or a wrong one."""
    length = len(m.body) + HEADER + 1
    value = m.dice.pick([0, 1, 2, length - 1, length + 1, length + 40, 1 << 15, length + (1 << 16)])
    m.header[1] = Word(ControlField.LENGTH, value=value).encode()
    if m.dice.chance(0.3):
        m.header.reverse()
    return True


def truncated(m: Mutation) -> bool:
    """The end is missing."""
    m.body = m.body[: m.dice.below(len(m.body) + 1)]
    m.end = m.dice.pick([0, Word(ControlField.RUN).encode(), Word(LevelField.LOWER, 0, 3).encode()])
    return True


PUSHES = ("scalar_enable", "store_enable", "token_enable", "fetch_enable")


def missing_push(m: Mutation) -> bool:
    """A step that does not push what somebody waits for."""

    def change(members: dict[str, int], word: Word) -> bool:
        there = [name for name in PUSHES if members[name]]
        if there:
            members[m.dice.pick(there)] = 0
        return bool(there)

    return m.alter((StepField.CONTROL,), change)


def extra_push(m: Mutation) -> bool:
    """A step that pushes what nobody pops: a scalar, or a row of one element."""
    listed = m.words(StepField.CONTROL)
    if not listed:
        return False
    position, word = m.dice.pick(listed)
    members = word.members()
    absent = [name for name in ("scalar_enable", "fetch_enable") if not members[name]]
    if not absent:
        return False
    name = m.dice.pick(absent)
    members |= {name: 1}
    constants = {StepField.SCALAR: 1}
    if name == "fetch_enable":
        members |= {"fetch_base": 0, "fetch_index": 0, "fetch_pitch": 0, "fetch_size": 0}
        constants = {StepField.FETCH_BASE: TABLE, StepField.FETCH_INDEX: 0, StepField.FETCH_PITCH: 0}
        constants[StepField.FETCH_SIZE] = 4
    m.put(position, replace(word, value=pack(FIELD_STRUCTS[word.field], members)))
    m.body[position:position] = [Word(field, word.index, value).encode() for field, value in constants.items()]
    return True


WAITING = {Cause.HANG, Cause.FRAMING}
"""What one row too many or too few can end in."""

MUTATIONS: dict[Callable[[Mutation], bool], set[Cause]] = {
    bad_index: {Cause.INDEX, Cause.OFFSET},
    low_limit: {Cause.INDEX, Cause.OFFSET},
    falling_bounds: {Cause.BOUNDS_ORDER},
    falling_offsets: {Cause.BOUNDS_ORDER},
    wrong_length: {Cause.FRAMING},
    impossible_length: {Cause.PROGRAM},
    wrong_size: {Cause.FRAMING},
    odd_row: {Cause.ALIGNMENT},
    across_lines: {Cause.ALIGNMENT},
    no_size: {Cause.ALIGNMENT},
    far_row: {Cause.MEMORY_ERROR, Cause.STORE_WINDOW},
    store_outside: {Cause.STORE_WINDOW},
    wrong_sum: {Cause.PROGRAM},
    no_callback: {Cause.PROGRAM},
    callback_beyond: {Cause.PROGRAM},
    endless_callback: {Cause.PROGRAM, *WAITING},
    bad_instruction: {Cause.PROGRAM},
    bad_register: {Cause.PROGRAM},
    bad_alu: {Cause.PROGRAM},
    bad_load_index: {Cause.PROGRAM},
    bad_check: {Cause.PROGRAM},
    bad_event: {Cause.PROGRAM},
    bad_queue: {Cause.PROGRAM},
    no_step: {Cause.PROGRAM},
    bad_word: {Cause.PROGRAM},
    late_word: {Cause.PROGRAM},
    wrong_hash: {Cause.PROGRAM},
    wrong_header: {Cause.PROGRAM},
    truncated: {Cause.PROGRAM},
    missing_push: WAITING,
    extra_push: WAITING,
}
"""Mutations, and the faults that they may end in."""

MAY_BLOCK = {wrong_length, wrong_size, endless_callback, missing_push, extra_push}
"""Mutations behind which queues may be too small, so that a machine hangs before it comes to the fault."""


def mutants(seed: list[int], config: Config, mutation: Callable[[Mutation], bool]) -> Iterator[Case | None]:
    """Endlessly, legal programs changed by ``mutation``; None for one in which there was nothing to change."""
    for number in range(1 << 30):
        case = legal_case([*seed, number], config)
        dice = Dice(np.random.default_rng([*seed, number, 1]), config, list(case.arguments))
        m = Mutation(dice, list(case.body), list(case.words[:HEADER]), case.words[-1])
        if not mutation(m):
            yield None
            continue
        changed = case.with_body(m.body)
        words = list(changed.words)
        for k, (old, new) in enumerate(zip(case.words[:HEADER], m.header, strict=True)):
            if old != new:
                words[k] = new
        if m.end != case.words[-1]:
            words[-1] = m.end
        yield replace(changed, words=tuple(words), expect="hang" if mutation in MAY_BLOCK else "fault")
