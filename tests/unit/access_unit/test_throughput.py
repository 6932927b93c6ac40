"""The access unit keeps its pace: a bundle or a step per cycle, and no line of offsets read twice."""

import pytest

from daedal.hw.config.core import Config
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.spec.access import run_contract
from daedal.hw.isa.words import (
    CheckKind,
    ControlField,
    EventField,
    EventKind,
    LevelField,
    Source,
    StepField,
    event_index,
)
from tests.unit.access_unit.machine import Behaviour, Machine, Sent
from tests.unit.access_unit.test_access_unit import compare, model_of
from tests.unit.harness import CONFIGS, ODD, SERIAL

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

EDGE = pytest.param(CONFIGS[1], marks=pytest.mark.full)

OFFSETS, INDICES, TABLE, ARRAYS = 0x1000, 0x4000, 0x10000, 0x3000
ELEMENT = 4
START_UP = 250
"""Cycles for the first loads, each as far ahead as its look-ahead goes, and the way through all stages."""


def image_of(bag: int, bags: int) -> bytearray:
    image = bytearray(1 << 17)
    indices = bag * bags
    own = (INDICES, INDICES + ELEMENT, indices, indices + 1)  # where the indices of two tables begin, and their rows
    for base, values in ((OFFSETS, range(0, indices + 1, bag)), (INDICES, range(indices + 1)), (ARRAYS, own)):
        for n, value in enumerate(values):
            image[base + n * ELEMENT : base + (n + 1) * ELEMENT] = value.to_bytes(ELEMENT, "little")
    return image


def bags_program(config: Config, bag: int, bags: int, *, at_end: bool, fetch: bool, in_turn: bool) -> Program:
    """Bags of rows: a token and a row fetch for each index, and a store at the end of each bag if ``at_end``; bags
    ``in_turn`` or one after the other.

    On the first levels that are pipelined, if there are any.
    """
    outer = config.serial.index(False) if not all(config.serial) else 0
    inner = outer + 1
    offsets = [
        word
        for slot in (0, 1)
        for word in (
            Word.packed(LevelField[f"LOAD{slot}"], outer, enable=1, size=2, destination=Source(slot + 1)),
            Word(LevelField[f"LOAD{slot}_BASE"], outer, OFFSETS + slot * ELEMENT),
            Word(LevelField[f"LOAD{slot}_LIMIT"], outer, OFFSETS + (bags + 1) * ELEMENT),
        )
    ]
    return Program(config.hash, [
        Word.packed(LevelField.CONTROL, outer, enable=1),
        Word(LevelField.LOWER, outer, 0), Word(LevelField.UPPER, outer, bags), Word(LevelField.STEP, outer, 1),
        *offsets,
        Word.packed(LevelField.CONTROL, inner, enable=1, lower=Source.R0, upper=Source.R1, interleave=in_turn),
        Word(LevelField.STEP, inner, 1),
        Word.packed(LevelField.LOAD0, inner, enable=1, size=2, is_signed=1, destination=Source.R2),
        Word(LevelField.LOAD0_BASE, inner, INDICES),
        Word(LevelField.LOAD0_LIMIT, inner, INDICES + bag * bags * ELEMENT),
        Word.packed(LevelField.CHECK, inner, enable=1, load=0, kind=CheckKind.INDEX),
        Word(LevelField.CHECK_LIMIT, inner, bag * bags),
        Word.packed(EventField.CONTROL, event_index(inner, EventKind.ITER), first=0, count=1),
        *([Word.packed(EventField.CONTROL, event_index(inner, EventKind.END), first=1, count=1)] if at_end else []),
        Word.packed(StepField.CONTROL, 0, fetch_enable=fetch, token_enable=1, fetch_index=Source.R2),
        Word(StepField.FETCH_BASE, 0, TABLE), Word(StepField.FETCH_PITCH, 0, 64), Word(StepField.FETCH_SIZE, 0, 64),
        Word(StepField.TOKEN, 0, 1), Word(StepField.TOKEN, 1, 2),
        Word.packed(StepField.CONTROL, 1, store_enable=1, token_enable=1, store_index=Source.R0),
        Word(StepField.STORE_BASE, 1, TABLE), Word(StepField.STORE_PITCH, 1, 64), Word(StepField.STORE_SIZE, 1, 64),
        Word(ControlField.RUN),
    ])  # fmt: skip


def run(
    config: Config, bag: int, bags: int, latency: int = 20, *, at_end: bool = False, fetch: bool = False,
    in_turn: bool = False,
) -> Sent:  # fmt: skip
    program = bags_program(config, bag, bags, at_end=at_end, fetch=fetch, in_turn=in_turn)
    sent = run_program(config, program, image_of(bag, bags), latency)
    assert sent.counts["lookup"] == bag * bags
    return sent


def run_program(config: Config, program: Program, image: bytearray, latency: int = 20) -> Sent:
    behaviour = Behaviour(refuse=0.0, port_busy=0.0, latency=(latency, latency), return_idle=0.0, shuffle=False)
    machine = Machine(model_of(config), config, image, behaviour, 1)
    machine.reset()
    (sent,) = machine.run(program, [])
    (trace,) = run_contract(program.to_bytes(), config, lambda address, size: bytes(image[address : address + size]))
    compare(sent, trace, config)
    return sent


@pytest.mark.parametrize("config", [CONFIGS[0], EDGE], ids=lambda config: config.name)
@pytest.mark.parametrize(("bag", "bags"), [(1, 500), (2, 250), (32, 16)])
def test_a_bundle_per_cycle_whatever_the_length_of_bags(config: Config, bag: int, bags: int) -> None:
    # Both of a bag's bounds are registers, which a level reads one per cycle.
    assert run(config, bag, bags).cycles <= 1.01 * max(bag, 2) * bags + START_UP


def test_a_row_per_cycle_beside_the_loads() -> None:
    assert run(CONFIGS[0], 4, 150, fetch=True).cycles <= 1.06 * 600 + START_UP


def test_what_belongs_to_a_table_is_read_once_for_all_of_its_bags() -> None:
    """Two tables, of which each has its own indices and limit, in registers: bags of one row take two cycles still."""
    config, bags = CONFIGS[0], 400
    image = image_of(1, bags)
    tables = [
        Word.packed(LevelField.CONTROL, 0, enable=1, induction=Source.R5),
        Word(LevelField.LOWER, 0, 0), Word(LevelField.UPPER, 0, 2), Word(LevelField.STEP, 0, 1),
        *(
            word
            for slot in (0, 1)
            for word in (
                Word.packed(LevelField[f"LOAD{slot}"], 0, enable=1, size=2, destination=Source(slot + 4)),
                Word(LevelField[f"LOAD{slot}_BASE"], 0, ARRAYS + slot * 2 * ELEMENT),
                Word(LevelField[f"LOAD{slot}_LIMIT"], 0, ARRAYS + (slot + 1) * 2 * ELEMENT),
            )
        ),
    ]  # fmt: skip
    program = bags_program(config, 1, bags, at_end=False, fetch=True, in_turn=False)
    inner = [
        Word.packed(LevelField.LOAD0, 2, enable=1, size=2, is_signed=1, base=Source.R3, destination=Source.R2),
        Word(LevelField.LOAD0_LIMIT, 2, INDICES + (bags + 1) * ELEMENT),
        Word.packed(LevelField.CHECK, 2, enable=1, load=0, kind=CheckKind.INDEX, limit=Source.R4),
    ]
    words = Program(config.hash, [*tables, *program.body[:-1], *inner, program.body[-1]])
    sent = run_program(config, words, image)
    assert sent.counts["lookup"] == 2 * bags
    assert sent.cycles <= 1.06 * 2 * 2 * bags + 2 * START_UP


def test_two_steps_in_two_cycles() -> None:
    assert run(CONFIGS[0], 1, 300, at_end=True).cycles <= 1.01 * 600 + START_UP


def test_prefetch_hides_a_slow_memory() -> None:
    assert run(CONFIGS[0], 4, 250, latency=150).cycles <= 1.01 * 1000 + 3 * START_UP


def test_serial_levels_take_as_many_cycles_as_they_say() -> None:
    """Four for an activation, and for an iteration four and four for each load; one level works at a time."""
    bag, bags = 4, 60
    outer, inner = 4 + 2 * 4, 4 + (4 + 4) * bag
    assert run(SERIAL, bag, bags, latency=2).cycles <= 1.01 * (outer + inner) * bags + START_UP


@pytest.mark.parametrize("config", [CONFIGS[0], EDGE, ODD, SERIAL], ids=lambda config: config.name)
def test_every_line_of_the_arrays_is_read_once_and_none_after_them(config: Config) -> None:
    assert sorted(run(config, 3, 60).load_lines) == sorted(lines_of(config, 3, 60))


@pytest.mark.parametrize("config", [CONFIGS[0], ODD], ids=lambda config: config.name)
def test_in_turn_bags_of_whole_lines_read_no_line_behind_theirs(config: Config) -> None:
    bag, bags = 2 * config.bus_bytes // ELEMENT, 40
    assert sorted(run(config, bag, bags, in_turn=True).load_lines) == sorted(lines_of(config, bag, bags))


def lines_of(config: Config, bag: int, bags: int) -> set[int]:
    """The lines that offsets and indices are in."""
    places = ((OFFSETS, bags + 1), (INDICES, bag * bags))
    return {(base + n * ELEMENT) // config.bus_bytes for base, elements in places for n in range(elements)}
