"""The reference interpreter against outcomes written down by hand."""

from dataclasses import replace

import pytest

from daedal.hw.config.core import Config
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.spec.access import Scalar, run_contract
from daedal.hw.isa.spec.integer import signed
from daedal.hw.isa.words import ControlField, EventField, EventKind, LevelField, StepField, event_index
from tests.unit.access_unit.directed import DIRECTED
from tests.unit.access_unit.programs import reader
from tests.unit.harness import ODD

DDR3 = Config.preset("ddr3")


@pytest.mark.parametrize("name", DIRECTED)
def test_directed_programs(name: str) -> None:
    case = DIRECTED[name]
    (trace,) = run_contract(case.program(ODD).to_bytes(), ODD, reader(case.image()))
    bits = ODD.address_bits
    pushes = [Scalar(signed(push.value, bits)) if isinstance(push, Scalar) else push for push in trace.pushes]
    assert tuple(pushes) == case.pushes
    fault = trace.fault
    if fault:
        fault = replace(fault, registers=tuple(signed(register, bits) for register in fault.registers))
    assert fault == case.fault
    assert (trace.replaced, trace.warned) == (case.replaced, case.warned)


def test_events_happen_inward_and_end_outward() -> None:
    words = []
    for level in range(3):
        words += [
            Word.packed(LevelField.CONTROL, level, enable=1),
            Word(LevelField.UPPER, level, 1), Word(LevelField.STEP, level, 1),
        ]  # fmt: skip
        for kind in EventKind:
            number = 3 * level + kind.value
            words += [
                Word.packed(EventField.CONTROL, event_index(level, kind), first=number, count=1),
                Word.packed(StepField.CONTROL, number, token_enable=1),
                Word(StepField.TOKEN, number, 10 * level + kind.value),
            ]
    program = Program(DDR3.hash, [*words, Word(ControlField.RUN)])
    (trace,) = run_contract(program.to_bytes(), DDR3, reader(bytearray(16)))
    assert trace.tokens == [0, 1, 10, 11, 20, 21, 22, 12, 2]
    assert trace.bundles == 1


def test_words_are_disabled_after_a_nest_but_steps_stay() -> None:
    level = [Word.packed(LevelField.CONTROL, 0, enable=1), Word.packed(EventField.CONTROL, 1, first=0, count=1)]
    constants = [Word(LevelField.UPPER, 0, 1, argument=2), Word(LevelField.STEP, 0, 1)]
    step = [Word.packed(StepField.CONTROL, 0, token_enable=1), Word(StepField.TOKEN, 0, 9)]
    run = Word(ControlField.RUN)
    program = Program(DDR3.hash, [*level, *constants, *step, run, run, *level, run])
    traces = run_contract(program.to_bytes(), DDR3, reader(bytearray(16)), [0, 0, 1])
    assert [trace.tokens for trace in traces] == [[9, 9], [], [9, 9]]


def test_nothing_runs_after_a_fault() -> None:
    order = [Word.packed(LevelField.CONTROL, 0, enable=1), Word(LevelField.LOWER, 0, 1), Word(LevelField.STEP, 0, 1)]
    run = Word(ControlField.RUN)
    traces = run_contract(Program(DDR3.hash, [*order, run, run]).to_bytes(), DDR3, reader(bytearray(16)))
    assert len(traces) == 1
    assert traces[0].fault
