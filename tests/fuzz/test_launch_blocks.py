"""Launch blocks, programs and records that are not where they can be: the same fault on emulator and RTL."""

from collections.abc import Iterator

import pytest

from daedal.driver.launcher import launch_block
from daedal.driver.record import RECORD_BYTES
from daedal.hw.isa.launch import LAUNCH_ALIGNMENT, Cause, State
from daedal.hw.isa.registers import Register
from tests.fuzz.configs import RTL
from tests.fuzz.generator import legal_case
from tests.fuzz.image import BLOCK, MEMORY_BYTES, PLACE, PLACE_BYTES, PROGRAM
from tests.fuzz.judge import expect, judge
from tests.fuzz.machines import Machine, Record

CONFIG = RTL["small"]
BLOCK_AT, PROGRAM_AT, RECORD_AT = PLACE + BLOCK, PLACE + PROGRAM, PLACE
BEYOND = 1 << (CONFIG.place_bits - 1)


@pytest.fixture(params=["emulator", pytest.param("verilator", marks=[pytest.mark.rtl, pytest.mark.slow])])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    with Machine(CONFIG, request.param, "ideal:stall=0.3,seed=5") as opened:
        yield opened


def place(machine: Machine, at: int, program: int, record: int) -> None:
    """A legal program and its launch block; ``program`` and ``record`` are what the block says."""
    case = legal_case([4], CONFIG)
    machine.target.mem_write(at + BLOCK, launch_block(CONFIG, program, record, 77, case.arguments))
    machine.target.mem_write(at + PROGRAM, case.raw)


def ring(machine: Machine, *blocks: int) -> Cause:
    """Queue these launches and wait for the end of all; the fault."""
    target = machine.target
    before = target.csr_read(Register.COMPLETED.value)
    for block in blocks:
        target.csr_write(Register.LAUNCH_LOW.value, block & 0xFFFF_FFFF)
        target.csr_write(Register.LAUNCH_HIGH.value, block >> 32)
        target.csr_write(Register.DOORBELL.value, 1)
    for _ in range(10):
        if target.csr_read(Register.COMPLETED.value) == before + len(blocks):
            return Cause(target.csr_read(Register.FAULT.value))
        target.wait(10)
        target.csr_write(Register.INTERRUPT.value, 1)
    raise AssertionError("the launches must end")


def record(machine: Machine, at: int) -> Record:
    raw = machine.target.mem_read(at, RECORD_BYTES)
    words = tuple(int.from_bytes(raw[k : k + 8], "little") for k in range(0, RECORD_BYTES, 8))
    return Record(words, CONFIG.registers)


def check_usable(machine: Machine) -> None:
    machine.reset()
    case = legal_case([5], CONFIG)
    with Machine(CONFIG, "emulator") as emulator:
        judge([case], expect([case], emulator), machine)


@pytest.mark.parametrize(
    ("block", "program", "record_at", "cause"),
    [
        (BLOCK_AT + 8, PROGRAM_AT, RECORD_AT, Cause.ALIGNMENT), (BLOCK_AT + 1, PROGRAM_AT, RECORD_AT, Cause.ALIGNMENT),
        (BEYOND, PROGRAM_AT, RECORD_AT, Cause.MEMORY_ERROR),
        (MEMORY_BYTES - LAUNCH_ALIGNMENT, PROGRAM_AT, RECORD_AT, Cause.MEMORY_ERROR),
        (BLOCK_AT, PROGRAM_AT, RECORD_AT + 32, Cause.ALIGNMENT), (BLOCK_AT, PROGRAM_AT, 4, Cause.ALIGNMENT),
    ],
)  # fmt: skip
def test_without_a_record(machine: Machine, block: int, program: int, record_at: int, cause: Cause) -> None:
    machine.target.mem_write(0, bytes(MEMORY_BYTES))
    place(machine, PLACE, program, record_at)
    before = machine.target.mem_read(0, MEMORY_BYTES)
    assert ring(machine, block) is cause
    assert machine.target.mem_read(0, MEMORY_BYTES) == before, "nothing may be written"
    check_usable(machine)


@pytest.mark.parametrize(
    ("program", "cause"),
    [(PROGRAM_AT + 8, Cause.ALIGNMENT), (BEYOND, Cause.MEMORY_ERROR), (BEYOND + 3, Cause.ALIGNMENT)],
)
def test_with_a_record(machine: Machine, program: int, cause: Cause) -> None:
    place(machine, PLACE, program, RECORD_AT)
    assert ring(machine, BLOCK_AT) is cause
    found = record(machine, RECORD_AT).fault()
    assert (found["state"], found["cause"], found["address"]) == (State.FAULTED.name, cause.name, program)
    check_usable(machine)


def test_those_that_wait_are_cancelled_with_a_record_if_they_have_one(machine: Machine) -> None:
    machine.target.mem_write(0, bytes(MEMORY_BYTES))
    ats = [PLACE + k * PLACE_BYTES for k in range(4)]
    for at in ats:
        place(machine, at, at + PROGRAM, at if at != ats[2] else at + 4)
    assert ring(machine, ats[0] + BLOCK, BLOCK_AT + 8, ats[2] + BLOCK, ats[3] + BLOCK) is Cause.ALIGNMENT
    states = [record(machine, at).words[0] & 0xFF for at in ats]
    assert states == [State.DONE.value, 0, 0, State.CANCELLED.value]
    check_usable(machine)


@pytest.mark.parametrize("record_at", [BEYOND, MEMORY_BYTES - LAUNCH_ALIGNMENT])
def test_a_record_that_memory_does_not_take(machine: Machine, record_at: int) -> None:
    """The launch has run, its record is lost; a queued one is cancelled with a record of its own."""
    machine.target.mem_write(0, bytes(MEMORY_BYTES))
    for at, told in ((PLACE, record_at), (PLACE + PLACE_BYTES, RECORD_AT + PLACE_BYTES)):
        place(machine, at, PROGRAM_AT, told)
    assert ring(machine, BLOCK_AT, BLOCK_AT + PLACE_BYTES) is Cause.MEMORY_ERROR
    assert record(machine, RECORD_AT + PLACE_BYTES).words[0] & 0xFF == State.CANCELLED.value
    check_usable(machine)
