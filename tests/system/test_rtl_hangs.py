"""A hang in every queue, by programs that leave one push or pop out, and memory that stops answering: on the RTL as on
the emulator, the machine names the queue, and is usable afterwards.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import daedal
from daedal.driver.targets.target_registry import open_target
from daedal.hw.config.core import WATCHDOG_CYCLES
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.launch import Cause, Queue, State
from daedal.hw.isa.program import Program, Word, pack, unpack
from daedal.hw.isa.registers import Control, Register, Status
from daedal.hw.isa.words import (
    CallbackField,
    EventField,
    EventKind,
    FetchQueue,
    LengthField,
    LevelField,
    StepField,
)
from tests.fuzz.configs import RTL
from tests.unit.emulator.programs import QUEUE0, QUEUE1, SCALAR, Bench, instruction, level, run_nest

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

MEMORY_BYTES = 1 << 20
DIM = 4
ONCE, FOR_EVER = 1, 1 << 30
OUT, ROW = 0x8000, 0x9000


@pytest.fixture(params=[("emulator", "edge"), ("verilator", "edge"), ("verilator", "small")], ids="-".join)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    name, config = request.param
    target = open_target(name, RTL[config], memory="ideal:latency=20", memory_bytes=MEMORY_BYTES, wave=None)
    bench = Bench(target, RTL[config])
    reset(bench)
    yield bench
    target.close()


def reset(bench: Bench) -> None:
    bench.target.csr_write(Register.CONTROL.value, pack(Control, {"reset": 1, "interrupt_enable": 1}))
    while unpack(Control, bench.target.csr_read(Register.CONTROL.value))["reset"]:
        pass
    bench.target.csr_write(Register.INTERRUPT.value, 1)


def steps(count: int, *members: dict[str, object]) -> list[Word]:
    """A loop of ``count`` iterations that do these steps; rows and stores are of DIM elements."""
    words = [*level(0), Word(LevelField.LOWER, 0, 0), Word(LevelField.UPPER, 0, count)]
    words.append(Word.packed(EventField.CONTROL, EventKind.ITER.value, count=len(members)))
    for k, step in enumerate(members):
        words += [
            Word.packed(StepField.CONTROL, k, **step),
            Word(StepField.STORE_BASE, k, OUT), Word(StepField.STORE_SIZE, k, 4 * DIM),
            Word(StepField.FETCH_BASE, k, ROW), Word(StepField.FETCH_SIZE, k, 4 * DIM),
        ]  # fmt: skip
    return [*words, run_nest()]


def callback(*code: Word) -> list[Word]:
    """Callback 0, with DIM in length register 0."""
    return [Word(LengthField.ELEMENTS, 0, DIM), Word(CallbackField.START, 0, 0), *code]


TOKEN = {"token_enable": 1}
FETCH = {"fetch_enable": 1, "queue": FetchQueue.VECTOR0}
FETCH1 = {"fetch_enable": 1, "queue": FetchQueue.VECTOR1}
STREAM = {"fetch_enable": 1, "queue": FetchQueue.STORE}
STORE = {"store_enable": 1}
PUSH = {"scalar_enable": 1}


def pop(source: dict[str, object]) -> Word:
    return instruction(0, VectorOp.MOVE, a=source, destination=0, last=1)


STORING = instruction(0, VectorOp.STORE, a={"number": 0}, last=1)

HANGS = {
    "nothing fetched for vector queue 0": (ONCE, [TOKEN], [pop(QUEUE0)], Queue.VECTOR0),
    "nothing fetched for vector queue 1": (ONCE, [TOKEN], [pop(QUEUE1)], Queue.VECTOR1),
    "no scalar pushed": (ONCE, [TOKEN], [instruction(0, VectorOp.MOVE, a=SCALAR, last=1)], Queue.SCALAR),
    "vector queue 0 left full": (FOR_EVER, [FETCH], [], Queue.VECTOR0),
    "vector queue 0 not emptied": (ONCE, [FETCH], [], Queue.VECTOR0),
    "vector queue 1 left full": (FOR_EVER, [FETCH1], [], Queue.VECTOR1),
    "vector queue 1 not emptied": (ONCE, [FETCH1], [], Queue.VECTOR1),
    "scalar queue left full": (FOR_EVER, [PUSH], [], Queue.SCALAR),
    "scalar queue not emptied": (ONCE, [PUSH], [], Queue.SCALAR),
    "store addresses without data": (ONCE, [STORE], [], Queue.STORE_DATA),
    "store data without addresses": (ONCE, [TOKEN], [STORING], Queue.STORE_DATA),
    "a store stream without addresses": (ONCE, [STREAM], [], Queue.STREAM),
    "a store stream left full": (FOR_EVER, [STREAM], [], Queue.STREAM),
}


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_names_its_queue(bench: Bench, name: str) -> None:
    count, members, code, queue = HANGS[name]
    record = bench.run([*callback(*code), *steps(count, *members)])
    assert (record.state, record.cause, record.queue) == (State.FAULTED, Cause.HANG, queue)
    reset(bench)
    assert_usable(bench)


@pytest.mark.parametrize(("members", "code", "queues"), [
    ([STORE], [], {Queue.STORE_ADDRESS, Queue.STORE_DATA}),
    ([TOKEN], [pop(QUEUE0)], {Queue.VECTOR0}),
    ([TOKEN], [STORING], {Queue.STORE_DATA}),
])  # fmt: skip
def test_what_waits_behind_a_full_queue(bench: Bench, members, code, queues) -> None:
    record = bench.run([*callback(*code), *steps(FOR_EVER, *members)])
    assert (record.cause, record.queue in queues) == (Cause.HANG, True), record.queue
    reset(bench)
    assert_usable(bench)


def assert_usable(bench: Bench) -> None:
    """A row that is fetched, moved and stored comes out right."""
    row = np.arange(DIM, dtype=np.float32) + bench.launches
    bench.target.mem_write(ROW, row.tobytes())
    code = [
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=1),
        instruction(1, VectorOp.STORE, a={"number": 1}, last=1),
    ]
    record = bench.run([*callback(*code), *steps(ONCE, TOKEN | FETCH | STORE)])
    assert record.state is State.DONE
    assert np.array_equal(bench.floats(OUT, (DIM,)), row)


COPY = STREAM | STORE | {"stream": 1}


@pytest.mark.parametrize("lines", [0, 1, 60, 70, 90, 120])
def test_memory_that_stops_answering(lines: int) -> None:
    """The machine says so; when the memory answers again, a reset makes it usable."""
    config = RTL["small"]
    spec = f"ideal:latency=20,pause_after={lines},pause={3 * WATCHDOG_CYCLES}"
    target = open_target("verilator", config, memory=spec, memory_bytes=MEMORY_BYTES, wave=None)
    bench = Bench(target, config)
    reset(bench)
    record_at = bench.queue(Program(config.hash, [*callback(), *steps(40, COPY)]).to_bytes())
    assert target.wait(60)
    assert unpack(Status, target.csr_read(Register.STATUS.value))["faulted"]
    assert target.csr_read(Register.FAULT.value) == Cause.MEMORY_SILENT.value
    assert bench.read_record(record_at).state is State.RUNNING  # memory did not take it
    reset(bench)
    assert_usable(bench)
    target.close()


def run_often(executable: Callable[[torch.Tensor], object], inputs: torch.Tensor) -> None:
    for _ in range(100):
        executable(inputs)


@pytest.mark.parametrize(("pause", "usable"), [(",pause=100000", True), ("", False)], ids=["for a while", "for ever"])
def test_the_driver_says_that_memory_does_not_answer(pause: str, usable: bool) -> None:
    table, indices = np.arange(256, dtype=np.float32).reshape(16, 16), np.arange(16)
    config = RTL["edge"]
    with daedal.Device.open(
        "verilator", config, memory=f"ideal:pause_after=500{pause}", memory_bytes=MEMORY_BYTES
    ) as dev:
        bag = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum")
        inputs = torch.from_numpy(indices).reshape(4, 4)
        executable = daedal.compile(bag, (inputs,), device=dev)
        with pytest.raises(daedal.MemoryFault, match=r"memory did not answer|memory, which does not answer"):
            run_often(executable, inputs)
        if usable:
            assert torch.equal(executable(inputs), bag(inputs))
        else:
            with pytest.raises(daedal.DaedalError, match="open it again"):
                executable(inputs)
