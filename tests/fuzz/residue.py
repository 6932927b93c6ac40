"""What one launch leaves behind must not matter to the next: constants are undefined until they are written."""

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Counter
from daedal.hw.isa.program import FIELD_STRUCTS, Word
from daedal.hw.isa.words import LevelField, StepField
from tests.fuzz.machines import Machine, Outcome, Stuck
from tests.fuzz.programs.case import Case

MOST_BUNDLES = 20_000
"""What takes longer is too long for simulated RTL."""

LOADS_FROM, ALUS_FROM = LevelField.LOAD0.value, LevelField.ALU0.value


def residue(config: Config, value: int) -> Case:
    """A program that does nothing but to leave ``value`` in all constants, and steps that do something or nothing."""
    body = [
        Word(field, step, value) for step in range(config.steps) for field in StepField if field not in FIELD_STRUCTS
    ]
    body += [Word.packed(StepField.CONTROL, step, scalar_enable=value & 1) for step in range(config.steps)]
    for level in range(config.levels):
        loads = config.sequential_loads[level] + config.random_loads[level]
        for field in LevelField:
            is_load, is_alu = LOADS_FROM <= field.value < ALUS_FROM, field.value >= ALUS_FROM
            absent = (is_load and field.value >= LOADS_FROM + 4 * loads) or (
                is_alu and field.value >= ALUS_FROM + 4 * config.alus[level]
            )
            if field not in FIELD_STRUCTS and not absent:
                body.append(Word(field, level, max(value, 1) if field is LevelField.STEP else value))
    return Case.of(config, 0, body, [])


def outcome_of(case: Case, emulator: Machine) -> Outcome | None:
    """What the emulator makes of a case; None if it does not end soon, or if that depends on what came before."""
    outcomes = []
    for value in (0, 3, 0x55_5555_5554):
        try:
            emulator.run(residue(case.config, value))
            outcomes.append(emulator.run(case))
        except Stuck:
            return None
    first, *others = outcomes
    if first.records[0].counter(Counter.BUNDLES) > MOST_BUNDLES:
        return None
    same = all(first.records[0].fault() == one.records[0].fault() and first.memory == one.memory for one in others)
    return first if same else None
