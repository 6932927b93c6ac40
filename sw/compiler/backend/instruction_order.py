"""The order of the instructions of a callback that runs row after row.

The execute unit issues instructions one after the other, and each waits for what it reads. What is slow here is slow
for the next run, which comes soon: so an order is judged by the cycles of several runs behind each other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daedal.compiler.backend.operands import (
    SCALAR,
    STORES,
    VECTOR,
    Code,
    Instruction,
    Register,
    mode,
    number,
    operand,
)
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS, OperationUnit

LANE, STORED, TREE = 13, 12, 50
"""Cycles from a beat until its result can be read, and until it is stored; from the last one until a sum is there."""

ITERATIONS = {VectorOp.DIVIDE: 46, VectorOp.RECIPROCAL: 46, VectorOp.SQUARE_ROOT: 44, VectorOp.SCALE: 12}
CONVERSION = 22
"""Cycles that the iterative unit is busy with an operation, and with one that is not among these."""

RUNS, JUDGED = 6, 3
"""Runs that are looked at, and how many of them, the last ones, are judged."""

TRIES = 5000
"""About the most orders that are looked at."""


def reads_of(code: Instruction) -> list[Register]:
    """Registers that an instruction reads, ``c`` among them."""
    found = [operand(code, name) for name in "ab" if name in code]
    if "c" in code and mode(code) is not Mode.REDUCE:
        found.append((SCALAR if mode(code) is Mode.SCALAR else VECTOR, number(code, "c")))
    return [each for each in found if each[0] in (VECTOR, SCALAR)]


def writes_of(code: Instruction) -> list[Register]:
    """Registers that it writes or empties, its result's first."""
    if code["op"] in STORES:
        return []
    found = [(VECTOR if mode(code) is Mode.VECTOR else SCALAR, number(code, "destination"))]
    if mode(code) is Mode.REDUCE:
        found.append((VECTOR, number(code, "c")))
    return found


def in_good_order(code: Code, beats: Callable[[Instruction], int], config: Config, between: int) -> Code:
    """The instructions in an order in which they wait little: none that has one of them elsewhere takes fewer cycles.

    What reads a register stays behind what wrote it, what writes it behind what read it; pops of a queue and stores
    keep their order. ``beats``: those of an instruction; ``between``: beats of other callbacks from run to run.
    """
    before = [_before(code, place) for place in range(len(code))]
    runs = Runs(code, beats, config, between)
    order = list(range(len(code)))
    cycles, left = runs.cycles(order), TRIES
    while left > 0:
        others = list(_neighbours(order, before))
        best, other = min(((runs.cycles(each), each) for each in others), default=(cycles, order))
        if best >= cycles:
            break
        cycles, order, left = best, other, left - len(others)
    return [code[place] for place in order]


def _neighbours(order: list[int], before: list[set[int]]) -> Iterator[list[int]]:
    """Orders in which one instruction is elsewhere, as far as it may be."""
    for start, one in enumerate(order):
        rest = order[:start] + order[start + 1 :]
        first = next((place for place in range(start, 0, -1) if rest[place - 1] in before[one]), 0)
        last = next((place for place in range(start, len(rest)) if one in before[rest[place]]), len(rest))
        yield from ([*rest[:place], one, *rest[place:]] for place in range(first, last + 1) if place != start)


def _before(code: Code, place: int) -> set[int]:
    """The instructions that must come before one."""
    reads, written = set(reads_of(code[place])), set(writes_of(code[place]))
    return {
        earlier
        for earlier, other in enumerate(code[:place])
        if set(writes_of(other)) & (reads | written)
        or set(reads_of(other)) & written
        or _same_queue(code[place], other)
    }


def _same_queue(one: Instruction, other: Instruction) -> bool:
    if one["op"] in STORES and other["op"] in STORES:
        return True
    popped = [{operand(each, name) for name in "ab" if name in each} for each in (one, other)]
    queues = [
        {(k, n if k is OperandKind.QUEUE else 0) for k, n in each if k not in (VECTOR, SCALAR)} for each in popped
    ]
    return bool(queues[0] & queues[1])


@dataclass(frozen=True)
class _Timed:
    """What counts of an instruction for its time. Registers are numbers, those of vectors first.

    ``result``: cycles from its last beat until its result can be read; ``busy``: those of the iterative unit.
    """

    beats: int
    reads: tuple[int, ...]
    addend: int | None
    written: int
    is_store: bool
    result: int
    busy: int


class Runs:
    """Runs of a callback behind each other, whose registers rotate after each."""

    def __init__(self, code: Code, beats: Callable[[Instruction], int], config: Config, between: int) -> None:
        self._between, self._vectors, self._loop = between, config.vector_registers, config.accumulate_cycles
        around, turning = config.rotating_registers, config.rotating_scalars
        self._registers = [
            [(n - run) % around if n < around else n for n in range(config.vector_registers)]
            + [self._vectors + ((n - run) % turning if n < turning else n) for n in range(config.scalars)]
            for run in range(RUNS)
        ]
        self._code = [self._timed(one, beats(one)) for one in code]

    def _timed(self, one: Instruction, beats: int) -> _Timed:
        op = one["op"]
        assert isinstance(op, VectorOp)
        reads, written = [self._place(each) for each in reads_of(one)], writes_of(one)
        busy = ITERATIONS.get(op, CONVERSION) if OPERATIONS[op].unit is OperationUnit.ITERATIVE else 0
        return _Timed(
            beats=beats,
            addend=reads.pop() if "c" in one and mode(one) is not Mode.REDUCE else None,
            reads=tuple(reads),
            written=self._place(written[0]) if written else 0,
            is_store=op in STORES,
            result=TREE if mode(one) is Mode.REDUCE else busy + LANE,
            busy=busy,
        )

    def _place(self, register: Register) -> int:
        return register[1] + (self._vectors if register[0] is SCALAR else 0)

    def cycles(self, order: list[int]) -> int:
        """Those of the last ``JUDGED`` of ``RUNS``, if the instructions come in this order."""
        count = len(self._registers[0])
        there, rows, stored = [0] * count, [1] * count, [0] * count

        def follows(register: int, beats: int) -> int:
            """When a row can read a register beat by beat, behind the one that wrote it."""
            return there[register] + 1 - min(beats, rows[register])

        now = port = unit = begun = 0
        for run, registers in enumerate(self._registers):
            begun = now if run == RUNS - JUDGED else begun
            now += self._between
            for one in (self._code[place] for place in order):
                if one.is_store:  # beside the lanes, from a register that stays as it is meanwhile
                    source = registers[one.reads[0]]
                    ready = now if one.reads[0] < self._vectors else max(now, there[source])
                    stored[source] = max(port, ready + STORED)
                    port = stored[source] + one.beats
                    continue
                at = max([now, *(follows(registers[each], one.beats) for each in one.reads)])
                if one.addend is not None:
                    at = max(at, follows(registers[one.addend], one.beats) - LANE + self._loop)
                written = registers[one.written]
                at = max(at, stored[written] - STORED, unit if one.busy else 0)
                now = at + one.beats
                unit = now + one.busy if one.busy else unit
                there[written], rows[written] = now - 1 + one.result, one.beats
        return now - begun
