"""State machines with a register for each state; what LiteDRAM makes of them is in the tests of what has them."""

from collections.abc import Generator
from typing import Any

import pytest
from litex.gen import LiteXModule
from migen import FSM, If, NextState, NextValue, Signal, run_simulation

from daedal.errors import InvalidConfig
from daedal.fpga.litedram_patches.one_hot import next_is, one_hot


class Machine(LiteXModule):
    """Three states and two that only pass time, a value of its own, and an output in one of them."""

    def __init__(self) -> None:
        self.go, self.told, self.count = Signal(), Signal(), Signal(4)
        self.fsm = fsm = FSM(reset_state="WAIT")
        fsm.act("WAIT", If(self.go, NextState("COUNT")))
        fsm.act("COUNT", NextValue(self.count, self.count + 1), If(self.go, NextState("PAUSE")).Else(NextState("TELL")))
        fsm.act("TELL", self.told.eq(self.go), NextState("WAIT"))
        fsm.delayed_enter("PAUSE", "TELL", 2)


def test_it_is_in_the_same_states() -> None:
    first, second = Machine(), Machine()
    one_hot(second.fsm)
    both, seen = LiteXModule(), set()
    both.submodules += [first, second]

    def drive() -> Generator[Any, Any, None]:
        for cycle in range(60):
            for machine in (first, second):
                yield machine.go.eq(0b110110110 >> cycle % 9 & 1)
            yield
            values = []
            for each in (first, second):
                number = list(each.fsm.decoding).index((yield each.fsm.state))
                values.append(((yield each.told), (yield each.count), number))
            assert values[0] == values[1], f"cycle {cycle}"
            seen.add(str(list(second.fsm.actions)[number]))

    run_simulation(both, drive())
    assert seen >= {"WAIT", "COUNT", "PAUSE", "TELL"}
    assert len(second.fsm.state) == len(second.fsm.actions)


@pytest.mark.parametrize("state", ["WAIT", "COUNT", "TELL"])
def test_what_it_says_of_the_next_cycle_comes_true(state: str) -> None:
    machine = Machine()
    said: list[int] = []
    was: list[int] = []
    one_hot(machine.fsm)
    soon = next_is(machine.fsm, state)

    def drive() -> Generator[Any, Any, None]:
        for cycle in range(60):
            yield machine.go.eq(0b110110110 >> cycle % 9 & 1)
            yield
            said.append((yield soon))
            was.append(int((yield machine.fsm.state) == machine.fsm.encoding[state]))

    run_simulation(machine, drive())
    assert said[:-1] == was[1:]
    assert set(said) == {0, 1}


def test_one_that_tells_of_its_changes_is_refused() -> None:
    machine = Machine()
    one_hot(machine.fsm)
    machine.fsm.before_entering("TELL")
    with pytest.raises(InvalidConfig, match="it tells when it enters or leaves a state"):
        machine.get_fragment()
