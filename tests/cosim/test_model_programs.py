"""The target ``model`` on random programs: its memory and faults are the emulator's, whatever was launched before."""

from itertools import islice

import pytest

from daedal.hw.config.core import Config
from tests.fuzz.machines import Machine
from tests.fuzz.programs.generator import legal_case
from tests.fuzz.programs.mutations import MUTATIONS, mutants
from tests.fuzz.residue import outcome_of

PROGRAMS, TRIES = 40, 20


@pytest.mark.parametrize("name", ["ddr3", "edge"])
def test_random_programs_do_as_on_the_emulator(name: str) -> None:
    """Every third one is mutated, and most of these fault: the clock begins anew behind them."""
    config, mutations = Config.preset(name), list(MUTATIONS)
    with Machine(config, "model") as model, Machine(config, "emulator") as emulator:
        for number in range(PROGRAMS):
            case = legal_case([number], config)
            if number % 3 == 2:
                tries = mutants([number], config, mutations[number % len(mutations)])
                case = next((mutant for mutant in islice(tries, TRIES) if mutant), case)
            wanted = outcome_of(case, emulator)
            if wanted is None:
                continue
            found = model.run(case)
            assert (found.memory, found.fault) == (wanted.memory, wanted.fault), number
            assert [record.state for record in found.records] == [record.state for record in wanted.records]
