"""Every fault that a program or its data can bring about, and what the machine does after one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, Config
from daedal.hw.isa.instructions import KEEP, Mode, OperandKind, VectorOp
from daedal.hw.isa.launch import Cause, Queue, State
from daedal.hw.isa.program import Program, Word, pack, unpack
from daedal.hw.isa.registers import IDENTITY, Control, Register, Status
from daedal.hw.isa.words import (
    VALUE_BITS,
    AluOp,
    CallbackField,
    CheckMode,
    ControlField,
    EventField,
    EventKind,
    InstructionField,
    LengthField,
    LevelField,
    StepField,
)
from tests.reference.layers import Layer
from tests.unit.emulator.programs import QUEUE0, SCALAR, Bag, Bench, Record, instruction, level, run_nest
from tests.unit.emulator.test_bags import place_bag

DIM = 16


def bag_of(bench: Bench, indices: Any = (1, 2, 3, 4), offsets: Any = (0, 2), mode: str = "sum", **changes: Any) -> Bag:
    table = np.arange(8 * DIM, dtype=np.float32).reshape(8, DIM)
    layer = Layer(table, np.asarray(indices), np.asarray(offsets), mode, None, None, False)
    return place_bag(bench, layer, **changes)


def status(bench: Bench) -> dict[str, int]:
    return unpack(Status, bench.target.csr_read(Register.STATUS.value))


def reset(bench: Bench) -> None:
    bench.target.csr_write(Register.CONTROL.value, pack(Control, {"reset": 1}))


def run_changed(bench: Bench, change: Callable[[Word], Word | None], **bag: Any) -> Record:
    """Run a bag's program with its words changed, or left out."""
    words = [change(word) for word in bag_of(bench, **bag).words(bench.config)]
    return bench.run([word for word in words if word is not None])


def setting(field: Any, index: int, **values: Any) -> Callable[[Word], Word]:
    """Puts other words in the place of one: ``value`` or the members of a packed structure."""

    def change(word: Word) -> Word:
        if word.field is not field or word.index != index:
            return word
        return replace(word, **values) if "value" in values else Word.packed(field, index, **values)

    return change


@pytest.mark.parametrize("wrong", [8, -1, 1 << 40, -(1 << 63), (1 << 32) + 1])
def test_index(bench: Bench, wrong: int) -> None:
    record = bench.run(bag_of(bench, indices=[1, 2, 3, wrong]).words(bench.config))
    assert (record.state, record.cause) == (State.FAULTED, Cause.INDEX)
    assert record.value == wrong % (1 << 64)
    assert record.head["level"] == 1
    assert record.register(0) == 1  # the bag


def test_index_of_32_bits_is_sign_extended(bench: Bench) -> None:
    record = bench.run(bag_of(bench, indices=np.array([1, -5], dtype=np.int32), offsets=[0]).words(bench.config))
    assert (record.cause, record.value) == (Cause.INDEX, -5 % (1 << 64))


@pytest.mark.parametrize("wrong", [9, -1])
def test_offset(bench: Bench, wrong: int) -> None:
    record = bench.run(bag_of(bench, offsets=[0, 2, wrong]).words(bench.config))
    assert (record.cause, record.value, record.head["level"]) == (Cause.OFFSET, wrong % (1 << 64), 0)


def test_bounds_order(bench: Bench) -> None:
    record = bench.run(bag_of(bench, offsets=[0, 3, 2]).words(bench.config))
    assert (record.cause, record.value, record.head["level"]) == (Cause.BOUNDS_ORDER, 2, 1)
    assert record.register(1) == 3


def test_faults_are_precise(bench: Bench) -> None:
    bag = bag_of(bench, indices=[1, 2, 3, 99], offsets=[0, 1, 2])
    bench.target.mem_write(bag.out, bytes(3 * DIM * 4))
    bench.run(bag.words(bench.config))
    assert bench.floats(bag.out, (3, DIM))[:2].tolist() == [
        list(range(DIM, 2 * DIM)),
        list(range(2 * DIM, 3 * DIM)),
    ]
    assert not bench.floats(bag.out, (3, DIM))[2].any()


@pytest.mark.parametrize(("field", "index", "value", "queue"), [
    (StepField.FETCH_SIZE, 0, 0, Queue.VECTOR0), (StepField.FETCH_SIZE, 0, 62, Queue.VECTOR0),
    (StepField.FETCH_BASE, 0, 4100, Queue.VECTOR0), (StepField.FETCH_BASE, 0, 4098, Queue.VECTOR0),
    (StepField.STORE_BASE, 1, 4097, Queue.STORE_ADDRESS), (StepField.STORE_SIZE, 1, 0, Queue.STORE_ADDRESS),
    (StepField.STORE_SIZE, 1, 7, Queue.STORE_ADDRESS),
])  # fmt: skip
def test_alignment(bench: Bench, field: StepField, index: int, value: int, queue: Queue) -> None:
    record = run_changed(bench, setting(field, index, value=value))
    assert (record.cause, record.queue) == (Cause.ALIGNMENT, queue)


@pytest.mark.parametrize(("field", "index", "queue"), [
    (StepField.FETCH_SIZE, 0, Queue.VECTOR0), (StepField.STORE_SIZE, 1, Queue.STORE_DATA),
])  # fmt: skip
@pytest.mark.parametrize("size", [DIM * 4 - 4, DIM * 4 + 4, 4, DIM * 4 - 2])
def test_framing(bench: Bench, field: StepField, index: int, queue: Queue, size: int) -> None:
    if field is StepField.FETCH_SIZE and size % 4:
        size += 6
    record = run_changed(bench, setting(field, index, value=size))
    assert (record.cause, record.queue) == (Cause.FRAMING, queue)
    assert record.value == (DIM if queue is Queue.VECTOR0 else size)


@pytest.mark.parametrize(("field", "index"), [
    (StepField.FETCH_BASE, 0), (StepField.STORE_BASE, 1), (LevelField.LOAD0_BASE, 0),
])  # fmt: skip
def test_memory_error(bench: Bench, field: Any, index: int) -> None:
    beyond = bench.config.place_bits - 1
    record = run_changed(bench, setting(field, index, value=1 << beyond))
    assert record.cause is Cause.MEMORY_ERROR
    assert record.address >> beyond == 1


ILLEGAL: dict[str, Callable[[Config], Word]] = {
    "level": lambda config: Word(LevelField.LOWER, config.levels),
    "load slot": lambda config: Word(LevelField.LOAD3, 0),
    "ALU": lambda config: Word(LevelField.ALU2, 0),
    "event": lambda config: Word(EventField.CONTROL, 4 * config.levels),
    "event kind": lambda config: Word(EventField.CONTROL, 3),
    "step": lambda config: Word(StepField.TOKEN, config.steps),
    "length": lambda config: Word(LengthField.ELEMENTS, config.lengths),
    "callback": lambda config: Word(CallbackField.START, config.callbacks),
    "control index": lambda config: Word(ControlField.RUN, 1),
    "second configuration": lambda config: Word(ControlField.CONFIG, 0, config.hash),
    "second length": lambda config: Word(ControlField.LENGTH, 0, 4),
    "early end": lambda config: Word(ControlField.END),
    "shift without shifter": lambda config: Word.packed(LevelField.ALU0, 1, op=AluOp.SHIFT_LEFT),
    "register as a sequential load's index": lambda config: Word.packed(LevelField.LOAD0, 0, index=1),
    "operation": lambda config: Word.packed(LevelField.ALU0, 1, op=15),
    "register": lambda config: Word.packed(LevelField.CONTROL, 1, enable=1, lower=config.registers + 1),
    "activations in turn": lambda config: Word.packed(LevelField.CONTROL, config.contexts.index(0), interleave=1),
    "activations dealt": lambda config: Word.packed(LevelField.CONTROL, config.contexts.index(0), deal=1),
    "activations in turn in both ways": lambda config: Word.packed(
        LevelField.CONTROL, config.context_level or 0, interleave=1, deal=1
    ),
    "a step of which a register holds nothing": lambda config: Word(
        LevelField.STEP, 0, 0 if config.address_bits == VALUE_BITS else 1 << config.address_bits
    ),
    "check mode": lambda config: Word.packed(LevelField.CHECK, 0, enable=1, mode=len(CheckMode)),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_words(bench: Bench, name: str) -> None:
    words = [Word(LevelField.LOWER, 0), ILLEGAL[name](bench.config), run_nest()]
    record = bench.run(words)
    assert (record.state, record.cause, record.value) == (State.FAULTED, Cause.PROGRAM, 3)


def test_unknown_unit_and_field(bench: Bench) -> None:
    good = Program(bench.config.hash, [Word(LevelField.LOWER, 0)]).to_bytes()
    for bits in (0xF << 46, 0x99 << 56 | 1 << 46):
        record = bench.queue(good[:16] + bits.to_bytes(8, "little") + good[24:])
        bench.target.wait()
        assert (bench.read_record(record).cause, bench.read_record(record).value) == (Cause.PROGRAM, 2)
        reset(bench)


def test_words_for_the_execute_unit_come_before_the_first_nest(bench: Bench) -> None:
    assert bench.run([run_nest(), Word(LengthField.ELEMENTS, 0, 1)]).value == 3


def test_another_configuration(bench: Bench) -> None:
    record = bench.queue(Program(bench.config.hash ^ 1, []).to_bytes())
    bench.target.wait()
    assert (bench.read_record(record).cause, bench.read_record(record).value) == (Cause.PROGRAM, 0)


def test_another_configuration_in_a_launch_that_has_waited(bench: Bench) -> None:
    first, second = (bench.queue(Program(bench.config.hash ^ k, []).to_bytes()) for k in range(2))
    while status(bench)["busy"]:
        bench.target.wait()
    assert bench.read_record(first).state is State.DONE
    assert (bench.read_record(second).cause, bench.read_record(second).value) == (Cause.PROGRAM, 0)


@pytest.mark.parametrize(
    ("field", "queue"),
    [(CallbackField.START, Queue.TOKEN), (LengthField.ELEMENTS, Queue.NONE), (InstructionField.CODE, Queue.NONE)],
)
def test_what_was_never_written_does_not_exist(bench: Bench, field: Any, queue: Queue) -> None:
    record = run_changed(bench, lambda word: None if word.field is field else word)
    assert (record.cause, record.queue, record.value) == (Cause.PROGRAM, queue, 0)


@pytest.mark.parametrize(("more", "cause"), [(0, Cause.FRAMING), (1, Cause.PROGRAM)])
def test_a_length_may_fill_a_register_and_no_more(bench: Bench, more: int, cause: Cause) -> None:
    elements = bench.config.vl_max + more
    record = run_changed(bench, setting(LengthField.ELEMENTS, 0, value=elements))
    assert (record.cause, record.value) == (cause, elements)


@pytest.mark.parametrize("members", [
    {"op": 31}, {"op": VectorOp.MOVE, "mode": 3}, {"op": VectorOp.MOVE, "a": {"number": 15}},
    {"op": VectorOp.MOVE, "a": {"kind": 1, "number": 4}}, {"op": VectorOp.FMA, "a": QUEUE0, "b": QUEUE0},
    {"op": VectorOp.FMA, "a": SCALAR, "b": SCALAR}, {"op": VectorOp.STORE, "a": QUEUE0},
    {"op": VectorOp.MOVE, "destination": 15}, {"op": VectorOp.ADD, "a": QUEUE0, "c": 15},
    {"op": VectorOp.MOVE, "octets": 1}, {"op": VectorOp.DIVIDE, "a": QUEUE0}, {"op": VectorOp.ADD, "element": 1},
    {"op": VectorOp.ADD, "indexed": 1}, {"op": VectorOp.DIVIDE_COUNT, "mode": Mode.SCALAR},
    {"op": VectorOp.STORE, "mode": Mode.SCALAR}, {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": QUEUE0, "indexed": 1},
    {"op": VectorOp.SUBTRACT, "mode": Mode.REDUCE, "c": 1}, {"op": VectorOp.ADD, "mode": Mode.REDUCE},
    {"op": VectorOp.FMA, "mode": Mode.REDUCE, "a": QUEUE0, "b": {"number": 2}, "c": 2},
])  # fmt: skip
def test_instructions_that_do_not_exist(bench: Bench, members: dict[str, Any]) -> None:
    record = run_changed(bench, setting(InstructionField.CODE, 0, last=1, **members))
    assert record.cause is Cause.PROGRAM


def test_rows_that_are_kept_must_find_room(bench: Bench) -> None:
    members = {"op": VectorOp.ADD, "a": {"kind": OperandKind.QUEUE, "number": KEEP}, "last": 1}
    change = setting(InstructionField.CODE, 0, **members)
    fit = bench.config.kept_beats // -(-DIM // bench.config.lanes)
    if fit:
        record = run_changed(bench, change, indices=[1] * fit, offsets=(0,))
        assert record.state is State.DONE
    record = run_changed(bench, change, indices=[1] * (fit + 1), offsets=(0,))
    assert (record.cause, record.queue, record.value) == (Cause.PROGRAM, Queue.NONE, DIM if fit else 0)


def test_a_callback_may_not_run_off_the_end(bench: Bench) -> None:
    last = bench.config.instructions - 1
    words = [instruction(last, VectorOp.NOP), *bag_of(bench).words(bench.config)]
    words = [setting(CallbackField.START, 0, value=last)(word) for word in words]
    assert bench.run(words).cause is Cause.PROGRAM


def drop_member(field: Any, index: int, member: str) -> Callable[[Word], Word]:
    def change(word: Word) -> Word:
        if word.field is not field or word.index != index:
            return word
        return Word.packed(field, index, **(word.members() | {member: 0}))

    return change


@pytest.mark.parametrize(("index", "member", "mode", "queues"), [
    (0, "fetch_enable", "sum", {Queue.VECTOR0}),
    (0, "token_enable", "sum", {Queue.VECTOR0}),
    (1, "store_enable", "sum", {Queue.STORE_DATA, Queue.STORE_ADDRESS}),
    (1, "token_enable", "sum", {Queue.STORE_DATA, Queue.STORE_ADDRESS}),
    (1, "scalar_enable", "mean", {Queue.SCALAR}),
])  # fmt: skip
def test_hang_names_the_queue(bench: Bench, index: int, member: str, mode: str, queues: set[Queue]) -> None:
    record = run_changed(bench, drop_member(StepField.CONTROL, index, member), mode=mode)
    assert record.cause is Cause.HANG
    assert record.queue in queues


@pytest.mark.parametrize(
    ("step", "queue"),
    [
        ({"scalar_enable": 1}, Queue.SCALAR),
        ({"store_enable": 1}, Queue.STORE_ADDRESS),
        ({"fetch_enable": 1, "queue": 1}, Queue.VECTOR1),
    ],
)
def test_endless_pushing_hangs(bench: Bench, step: dict[str, int], queue: Queue) -> None:
    sizes = [Word(field, 0, 4096) for field in (StepField.STORE_BASE, StepField.FETCH_BASE)]
    sizes += [Word(field, 0, 4) for field in (StepField.STORE_SIZE, StepField.FETCH_SIZE)]
    record = bench.run(
        [
            *level(0), Word(LevelField.LOWER, 0), Word(LevelField.UPPER, 0, 1 << 30),
            Word.packed(EventField.CONTROL, EventKind.ITER.value, count=1),
            Word.packed(StepField.CONTROL, 0, **step), *sizes, run_nest(),
        ]
    )  # fmt: skip
    assert (record.cause, record.queue) == (Cause.HANG, queue)


def test_fault_cancels_what_is_queued_and_reset_recovers(bench: Bench) -> None:
    bad = Program(bench.config.hash, bag_of(bench, indices=[1, 2, 3, 8]).words(bench.config)).to_bytes()
    bag = bag_of(bench)
    good = Program(bench.config.hash, bag.words(bench.config)).to_bytes()
    records = [bench.queue(program) for program in (good, bad, good, good)]
    assert status(bench)["queued"] == 3
    while status(bench)["busy"]:
        bench.target.wait()
    states = [bench.read_record(record).state for record in records]
    assert states == [State.DONE, State.FAULTED, State.CANCELLED, State.CANCELLED]
    assert bench.read_record(records[3]).head["launch"] == 4
    assert bench.target.csr_read(Register.COMPLETED.value) == 4
    assert bench.target.csr_read(Register.FAULT.value) == Cause.INDEX.value
    assert status(bench)["faulted"]
    dropped = bench.queue(good)
    assert status(bench)["overflow"]
    bench.target.wait()
    assert bench.read_record(dropped).state is State.RUNNING
    reset(bench)
    assert status(bench) == dict.fromkeys(status(bench), 0)
    assert bench.target.csr_read(Register.FAULT.value) == 0
    assert bench.run(bag.words(bench.config)).state is State.DONE


def test_launch_queue_overflows(bench: Bench) -> None:
    program = Program(bench.config.hash, []).to_bytes()
    records = [bench.queue(program) for _ in range(LAUNCH_QUEUE_DEPTH + 2)]
    assert status(bench)["overflow"]
    while status(bench)["busy"]:
        bench.target.wait()
    states = [bench.read_record(record).state for record in records]
    assert states == [State.DONE] * (LAUNCH_QUEUE_DEPTH + 1) + [State.RUNNING]


def test_registers(bench: Bench) -> None:
    read = bench.target.csr_read
    assert read(Register.IDENTITY.value) == IDENTITY
    assert read(Register.CONFIG_HASH.value) == bench.config.hash
    assert read(0xFC) == 0
    bench.target.csr_write(Register.CONTROL.value, pack(Control, {"interrupt_enable": 1}))
    assert read(Register.CONTROL.value) == pack(Control, {"interrupt_enable": 1})
    bench.queue(Program(bench.config.hash, []).to_bytes())
    assert not read(Register.INTERRUPT.value)
    bench.target.wait()
    assert read(Register.INTERRUPT.value) == 1
    bench.target.csr_write(Register.INTERRUPT.value, 1)
    assert read(Register.INTERRUPT.value) == 0


@pytest.mark.parametrize("block", [4097, 1 << 36, (1 << 24) - 64])
def test_launch_block_that_is_not_there(bench: Bench, block: int) -> None:
    bench.ring(block)
    bench.target.wait()
    assert status(bench)["faulted"]
    assert bench.target.csr_read(Register.COMPLETED.value) == 1
