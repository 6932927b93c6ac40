"""Bytes that a launch stores and reads: the emulator keeps them, and stops where the order is not assured."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.launch import LAUNCH_ALIGNMENT, RECORD_WORDS, EmulatedCause, Queue, State
from daedal.hw.isa.program import Word, pack
from daedal.hw.isa.registers import Control, Register
from daedal.hw.isa.words import (
    CallbackField,
    Destination,
    EventField,
    EventKind,
    FetchQueue,
    LengthField,
    LevelField,
    LoadIndex,
    Source,
    StepField,
)
from tests.unit.emulator.programs import (
    QUEUE0,
    QUEUE1,
    Bench,
    Record,
    gather,
    instruction,
    level,
    load,
    place_table,
    row_pitch,
    run_nest,
)

DIM, ROWS = 16, 8
SIZE = 4 * DIM


def walk(bench: Bench, count: int, rows: Sequence[int], *steps: list[Word]) -> list[Word]:
    """A nest of a level whose R0 counts, and R1 is ``rows[R0]``; each iteration does the steps."""
    array = bench.place(np.array(rows, np.int32))
    return [
        *level(0, induction=Destination.R0),
        Word(LevelField.LOWER, 0, 0),
        Word(LevelField.UPPER, 0, count),
        *load(0, 0, array, 4, limit=array + 4 * len(rows), destination=Destination.R1),
        Word.packed(EventField.CONTROL, EventKind.ITER.value, first=0, count=len(steps)),
        *(word for step in steps for word in step),
        run_nest(),
    ]


def step(
    number: int, *, store: int | None = None, fetch: int | None = None, token: int | None = None, pitch: int = SIZE,
    store_row: Source = Source.R1, fetch_row: Source = Source.R1, queue: FetchQueue = FetchQueue.VECTOR0,
) -> list[Word]:  # fmt: skip
    members: dict[str, Any] = {"stream": queue is FetchQueue.STORE, "queue": queue}
    members |= {"store_enable": store is not None, "fetch_enable": fetch is not None, "token_enable": token is not None}
    members |= {
        "store_index": store_row if store is not None else 0,
        "fetch_index": fetch_row if fetch is not None else 0,
    }
    constants = {
        StepField.STORE_BASE: store, StepField.STORE_PITCH: pitch, StepField.STORE_SIZE: SIZE,
        StepField.FETCH_BASE: fetch, StepField.FETCH_PITCH: pitch, StepField.FETCH_SIZE: SIZE, StepField.TOKEN: token,
    }  # fmt: skip
    return [
        Word.packed(StepField.CONTROL, number, **members),
        *(Word(field, number, value) for field, value in constants.items() if value is not None),
    ]


def execute(*callbacks: list[dict[str, Any]]) -> list[Word]:
    """The words of callbacks, each of these instructions."""
    words, at = [Word(LengthField.ELEMENTS, 0, DIM)], 0
    for number, code in enumerate(callbacks):
        words.append(Word(CallbackField.START, number, at))
        for each in code:
            words.append(instruction(at, last=each is code[-1], **each))
            at += 1
    return words


DOUBLED = [{"op": VectorOp.ADD, "a": QUEUE0, "c": 0}, {"op": VectorOp.STORE, "a": {"number": 0}, "clear": 1}]
"""Pops a row and stores it."""


@pytest.fixture
def table(bench: Bench) -> int:
    assert row_pitch(bench.config, DIM) == SIZE
    return place_table(bench, np.arange(ROWS * DIM, dtype=np.float32).reshape(ROWS, DIM))


def refused(bench: Bench, record: Record, address: int, queue: Queue = Queue.NONE, size: int = SIZE) -> None:
    assert (record.state, record.cause) == (State.FAULTED, EmulatedCause.READ_AFTER_STORE)
    assert (record.address, record.queue, record.value) == (address, queue, size)
    bench.target.csr_write(Register.CONTROL.value, pack(Control, {"reset": 1}))


def in_place(bench: Bench, table: int, rows: Sequence[int]) -> Record:
    steps = step(0, store=table, fetch=table, token=0)
    return bench.run([*execute(DOUBLED), *walk(bench, len(rows), rows, steps)])


def test_rows_that_are_read_before_their_only_store(bench: Bench, table: int) -> None:
    for _ in range(2):  # what the launch before stored counts no more
        assert in_place(bench, table, [3, 0, 7, 5]).state is State.DONE
    assert bench.floats(table, (ROWS, DIM))[7, 0] == 7 * DIM


def test_a_row_twice(bench: Bench, table: int) -> None:
    record = in_place(bench, table, [3, 0, 7, 3, 5])
    refused(bench, record, table + 3 * SIZE, Queue.VECTOR0)
    assert (record.register(0), record.register(1), record.head["level"]) == (3, 3, 0)
    assert in_place(bench, table, [3, 0]).state is State.DONE


def test_a_part_of_a_row_that_was_stored(bench: Bench, table: int) -> None:
    """The first byte of those that were stored is named, and neighbours are let alone."""
    kept = execute(DOUBLED)
    apart = bench.reserve(SIZE)
    for shift, right in ((2 * SIZE, True), (SIZE // 2, False), (-SIZE // 2, False), (-SIZE, True)):
        words = walk(bench, 1, [2], step(0, store=table + shift, fetch=apart, token=0, fetch_row=Source.R0),
                     step(1, store=apart, fetch=table, token=0, store_row=Source.R0))  # fmt: skip
        record = bench.run([*kept, *words])
        if right:
            assert record.state is State.DONE, shift
        else:
            refused(bench, record, table + 2 * SIZE + max(shift, 0), Queue.VECTOR0)


def test_a_row_that_waits_while_it_is_stored(bench: Bench, table: int) -> None:
    """It was asked for before, but hardware may store first: nothing of the store waits for it."""
    code = execute([{"op": VectorOp.STORE, "a": {"number": 0}}], [{"op": VectorOp.ADD, "a": QUEUE1, "c": 1}])
    for later, right in ((False, True), (True, False)):
        steps = (
            step(0, fetch=table, queue=FetchQueue.VECTOR1),
            step(1, token=int(not later)),
            step(2, store=table, token=int(later)),
        )
        if right:
            assert bench.run([*code, *walk(bench, 1, [2], *steps)]).state is State.DONE
        else:
            refused(bench, bench.run([*code, *walk(bench, 1, [2], *steps)]), table + 2 * SIZE, Queue.VECTOR1)


def test_a_row_that_is_popped_behind_what_is_stored_then(bench: Bench, table: int) -> None:
    """The row was made before it was popped, and only its address came late."""
    code = execute([{"op": VectorOp.STORE, "a": {"number": 0}}], [{"op": VectorOp.ADD, "a": QUEUE0, "c": 1}])
    for tokens, right in (((1, 0), True), ((0, 1), False)):
        steps = step(0, fetch=table), step(1, token=tokens[0]), step(2, token=tokens[1]), step(3, store=table)
        record = bench.run([*code, *walk(bench, 1, [2], *steps)])
        if right:
            assert record.state is State.DONE
        else:
            refused(bench, record, table + 2 * SIZE)


def test_a_store_stream_beside_rows(bench: Bench, table: int) -> None:
    """It overtakes the execute unit, but for what that stored before."""
    other, out = bench.reserve(SIZE), bench.reserve(SIZE)
    streamed = step(1, store=table, fetch=other, queue=FetchQueue.STORE, fetch_row=Source.R0)
    summed = [{"op": VectorOp.ADD, "a": QUEUE0, "c": 0}]
    record = bench.run([*execute(summed), *walk(bench, 1, [2], step(0, fetch=table, token=0), streamed)])
    refused(bench, record, table + 2 * SIZE)
    stored = step(0, fetch=table, token=0, store=out, store_row=Source.R0)
    assert bench.run([*execute(DOUBLED), *walk(bench, 1, [2], stored, streamed)]).state is State.DONE


@pytest.mark.parametrize("shift", [0, 1, -1, ROWS])
def test_a_stream_into_its_own_source(bench: Bench, table: int, shift: int) -> None:
    """Each row to where it was or the one before was is right; the one behind is read after that."""
    table += SIZE if shift < 0 else 0
    bench.reserve(ROWS * SIZE)
    indices = bench.place(np.arange(ROWS - 2, dtype=np.int32))
    record = bench.run(gather(bench.config, table, ROWS, DIM, indices, ROWS - 2, table + shift * SIZE))
    if shift == 1:
        refused(bench, record, table + SIZE, Queue.STREAM)
    else:
        assert record.state is State.DONE


@pytest.mark.parametrize("shift", [0, SIZE])
def test_numbers_that_were_stored(bench: Bench, table: int, shift: int) -> None:
    """A load, of a line that was fetched far ahead on the RTL."""
    array = bench.next
    steps = step(0, store=array + shift, fetch=table, token=0)
    record = bench.run([*execute(DOUBLED), *walk(bench, 2 * DIM, [0] * 2 * DIM, steps)])
    refused(bench, record, array + max(shift, 4), size=4)


@pytest.mark.parametrize("dealt", [True, False])
def test_numbers_that_activations_load_in_turn(bench: Bench, table: int, dealt: bool) -> None:
    """Of these the order is not said: one that is loaded early on the emulator may be loaded late on the RTL."""
    config = bench.config
    number = config.context_level
    if not number or config.context_beats * config.lanes < DIM or (dealt and not config.dealt_bundles):
        pytest.skip("no level takes turns with rows as long")
    numbers, apart = bench.place(np.zeros(64, np.int32)), bench.reserve(SIZE)
    for base, right in ((apart, True), (numbers, False)):
        words = [
            *execute(DOUBLED),
            *level(number - 1, induction=Destination.R0),
            Word(LevelField.LOWER, number - 1, 0), Word(LevelField.UPPER, number - 1, 4),
            *level(number, induction=Destination.R1, **{"deal" if dealt else "interleave": 1}),
            Word(LevelField.LOWER, number, 0), Word(LevelField.UPPER, number, 1),
            *load(number, 0, numbers, 4, limit=numbers + 256, destination=Destination.R2, index=LoadIndex.INDUCTION),
            Word.packed(EventField.CONTROL, 4 * number + EventKind.ITER.value, first=0, count=1),
            *step(0, store=base, fetch=table, token=0, store_row=Source.R1, fetch_row=Source.R0),
            run_nest(),
        ]  # fmt: skip
        record = bench.run(words)
        assert (record.state is State.DONE) is right
        assert right or record.cause is EmulatedCause.READ_AFTER_STORE


def test_words_of_the_program(bench: Bench, table: int) -> None:
    """They are read before the nests in front of them are done."""
    for position, right in ((0, True), (1, False)):
        code = [*execute(DOUBLED), *walk(bench, 1, [0], step(0, store=0, fetch=table, token=0))]
        program = bench.next + -(-RECORD_WORDS * 8 // LAUNCH_ALIGNMENT) * LAUNCH_ALIGNMENT
        behind = program + 8 * (2 + len(code))
        place = next(k for k, word in enumerate(code) if word.field is StepField.STORE_BASE)
        code[place] = Word(StepField.STORE_BASE, 0, behind + (-SIZE, 8)[position])
        record = bench.run([*code, *(Word(LevelField.LOWER, 0, 0) for _ in range(16))])
        refused(bench, record, behind + 8 * position, size=8) if position else None
        assert (record.cause is EmulatedCause.READ_AFTER_STORE) is not right
