"""Launch blocks, programs and records that are not where they can be: the same fault on emulator and RTL."""

from collections.abc import Iterator

import pytest

from daedal.driver.launch.launch_block import launch_block
from daedal.driver.launch.record import RECORD_BYTES
from daedal.hw.isa.launch import LAUNCH_ALIGNMENT, Cause, LaunchFlags, LaunchWord, State
from daedal.hw.isa.program import WORD_BYTES, Program, pack
from daedal.hw.isa.registers import Register
from tests.fuzz.configs import RTL
from tests.fuzz.judge import expect, judge
from tests.fuzz.machines import Machine, Record
from tests.fuzz.programs.generator import legal_case
from tests.fuzz.programs.image import BLOCK, MEMORY_BYTES, PLACE, PLACE_BYTES, PROGRAM

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


def place_following(machine: Machine, at: int, *, words: int = 0, arguments: int = 0, record: int = PLACE) -> int:
    """A legal program behind its launch block, whose flags are off by ``words``, and that has so many ``arguments``
    fewer; how many words the program has.
    """
    case = legal_case([4], CONFIG)
    block = bytearray(launch_block(CONFIG, 3, record, 77, case.arguments, follows=case.raw, least=CONFIG.arguments))
    count, at_flags = len(case.raw) // WORD_BYTES, LaunchWord.FLAGS.value * WORD_BYTES
    flags = {"last_word": count + words - 1, "last_argument": CONFIG.arguments - 1 - arguments}
    block[at_flags : at_flags + WORD_BYTES] = pack(LaunchFlags, flags).to_bytes(WORD_BYTES, "little")
    whole = bytes(block[: len(block) - WORD_BYTES * arguments]) + case.raw
    machine.target.mem_write(at, whole[: MEMORY_BYTES - at])
    return count


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


@pytest.mark.parametrize("at", [BLOCK_AT, BLOCK_AT + 1024 - 64, BLOCK_AT + 64])
def test_a_program_that_follows_its_block(machine: Machine, at: int) -> None:
    place_following(machine, at)
    assert ring(machine, at) is Cause.NONE
    assert record(machine, RECORD_AT).words[0] & 0xFF == State.DONE.value


@pytest.mark.parametrize(("words", "value"), [(-1, -2), (1, -1), (100, -1)])
def test_a_program_that_does_not_end_where_its_block_says(machine: Machine, words: int, value: int) -> None:
    count = place_following(machine, BLOCK_AT, words=words)
    assert ring(machine, BLOCK_AT) is Cause.PROGRAM
    assert record(machine, RECORD_AT).fault()["value"] == count + value
    check_usable(machine)


def test_a_program_that_uses_an_argument_that_its_block_has_not(machine: Machine) -> None:
    case = legal_case([4], CONFIG)
    body = Program.from_bytes(case.raw).body
    number, last = max((word.argument, n) for n, word in enumerate(body) if word.argument is not None)
    first = min(n for n, word in enumerate(body) if word.argument == number)
    assert last >= first
    place_following(machine, BLOCK_AT, arguments=CONFIG.arguments - number)
    assert ring(machine, BLOCK_AT) is Cause.PROGRAM
    assert record(machine, RECORD_AT).fault()["value"] == 2 + first
    check_usable(machine)


@pytest.mark.parametrize("words", [0, 30_000])
def test_a_program_that_follows_its_block_beyond_memory(machine: Machine, words: int) -> None:
    """Neither is there: no record."""
    machine.target.mem_write(0, bytes(MEMORY_BYTES))
    at = MEMORY_BYTES - LAUNCH_ALIGNMENT if not words else MEMORY_BYTES - 1024
    place_following(machine, at, words=words)
    assert ring(machine, at) is Cause.MEMORY_ERROR
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
