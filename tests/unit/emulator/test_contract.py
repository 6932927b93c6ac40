"""The emulator's access unit against the reference interpreter of the event contract, on random programs."""

from typing import Any

import numpy as np
import pytest

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause, Counter, State
from daedal.hw.isa.program import Program, Word, pack
from daedal.hw.isa.registers import Control, Register
from daedal.hw.isa.spec.access import NestTrace, run_contract
from daedal.hw.isa.words import AluOp, Destination, EventField, LevelField, Source, StepField
from tests.fuzz.judge import as_entry
from tests.unit.emulator.conftest import NARROW
from tests.unit.emulator.programs import Bench, Record, level, load, run_nest
from tests.unit.emulator.random_programs import DATA, Generator, data

WIDE = Config(
    name="wide", bus_bytes=64, lanes=16, levels=6, registers=7, sequential_loads=(4, 0, 1, 2, 2, 0),
    random_loads=(0, 4, 2, 1, 2, 0), alus=(4, 0, 1, 2, 4, 3), shifters=(False, True, True, False, True, True),
    contexts=(0, 0, 0, 4, 0, 0), steps=32, callbacks=64, arguments=16,
)  # fmt: skip


def compare(bench: Bench, raw: bytes, arguments: list[int]) -> tuple[Record, list[NestTrace]]:
    """Run a program by both and compare what the access unit did."""
    traces = run_contract(raw, bench.config, bench.target.mem_read, arguments)
    record_at = bench.queue(raw, arguments)
    assert bench.target.wait(30)
    record = bench.read_record(record_at)
    target: Any = bench.target
    assert target.trace() == [as_entry(push) for trace in traces for push in trace.pushes]
    fault = traces[-1].fault if traces else None
    if fault:
        assert (record.state, record.cause, record.value) == (State.FAULTED, fault.cause, fault.value)
        assert (record.head["level"], record.head["nest"]) == (fault.level, len(traces) - 1)
        assert (record.queue, record.address) == (fault.queue, fault.address)
        registers = tuple(record.register(k) for k in range(bench.config.registers))
        assert registers == fault.registers
    else:
        assert record.cause in (Cause.NONE, Cause.HANG), record
    assert record.counter(Counter.BUNDLES) == sum(trace.bundles for trace in traces)
    assert record.counter(Counter.TOKENS) == sum(len(trace.tokens) for trace in traces)
    assert record.counter(Counter.ROWS) == sum(len(trace.fetches) for trace in traces)
    assert record.counter(Counter.BOUNDS_WARNINGS) == sum(trace.replaced for trace in traces)
    if record.state is State.DONE:
        assert record.value == next((trace.warned for trace in traces if trace.warned is not None), 0)
    if not fault:
        assert record.counter(Counter.LOOKUPS) == sum(trace.lookups for trace in traces)
    if record.state is State.FAULTED:
        bench.target.csr_write(Register.CONTROL.value, pack(Control, {"reset": 1}))
    return record, traces


@pytest.fixture(params=[Config(), Config.preset("ddr3"), WIDE, NARROW], ids=["plain", "ddr3", "wide", "narrow"])
def config(request: pytest.FixtureRequest) -> Config:
    chosen: Config = request.param
    return chosen


@pytest.mark.parametrize("faults", [False, True])
@pytest.mark.parametrize("part", range(2))
def test_random_programs(bench: Bench, rng: np.random.Generator, part: int, faults: bool) -> None:
    rng = np.random.default_rng([part, int(rng.integers(1 << 30))])
    pushes, replaced, warnings, causes = 0, 0, set(), set()
    for number in range(60):
        bench.next = 1 << 20
        bench.target.mem_write(DATA, data(rng))
        generator = Generator(rng, bench.config, faults, silent=number % 3 == 0)
        raw = generator.program()
        record, traces = compare(bench, raw, generator.arguments)
        pushes += sum(len(trace.pushes) for trace in traces)
        replaced += record.counter(Counter.BOUNDS_WARNINGS)
        warnings |= {record.value} if record.state is State.DONE else set()
        causes.add(record.cause)
    assert pushes > 200
    assert replaced > 50
    assert len(warnings) > 1
    if faults:
        assert causes & {Cause.INDEX, Cause.OFFSET}
    else:
        assert causes <= {Cause.NONE, Cause.HANG}


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_address_bits_below_an_elements_size_do_not_count(bench: Bench, size: int) -> None:
    values = bench.place(np.arange(64, dtype=np.uint8))
    body = [
        *level(0), Word(LevelField.LOWER, 0, 0), Word(LevelField.UPPER, 0, 3),
        *load(0, 0, values + size - 1, size, limit=values + 64, destination=Source.R0),
        Word.packed(EventField.CONTROL, 1, count=1),
        Word.packed(StepField.CONTROL, 0, scalar_enable=1, scalar=Source.R0),
        run_nest(),
    ]  # fmt: skip
    _, (trace,) = compare(bench, Program(bench.config.hash, body).to_bytes(), [])
    words = [bytes(range(size * n, size * n + size)) for n in range(3)]
    assert trace.scalars == [int.from_bytes(word, "little") % (1 << bench.config.address_bits) for word in words]


def test_a_product_takes_the_low_bits_of_its_operands(bench: Bench) -> None:
    a, b = 0x9F_8765_4321, 0xAB_CDFE_DCBA
    body = [
        *level(0), Word(LevelField.LOWER, 0, 0), Word(LevelField.UPPER, 0, 1),
        Word.packed(LevelField.ALU0, 0, op=AluOp.MUL, destination=Destination.R0),
        Word(LevelField.ALU0_A, 0, a), Word(LevelField.ALU0_B, 0, b),
        Word.packed(EventField.CONTROL, 1, count=1),
        Word.packed(StepField.CONTROL, 0, scalar_enable=1, scalar=Source.R0),
        run_nest(),
    ]  # fmt: skip
    _, (trace,) = compare(bench, Program(bench.config.hash, body).to_bytes(), [])
    assert trace.scalars == [(a % (1 << 32)) * (b % (1 << 24)) % (1 << bench.config.address_bits)]


def test_words_that_no_program_wrote_are_0_and_a_step_1(bench: Bench) -> None:
    body = [
        Word.packed(LevelField.CONTROL, 0, enable=1, induction=Destination.R0), Word(LevelField.UPPER, 0, 3),
        Word.packed(EventField.CONTROL, 1, count=1),
        Word.packed(StepField.CONTROL, 0, scalar_enable=1, scalar=Source.R0),
        run_nest(),
    ]  # fmt: skip
    _, (trace,) = compare(bench, Program(bench.config.hash, body).to_bytes(), [])
    assert trace.scalars == [0, 1, 2]
