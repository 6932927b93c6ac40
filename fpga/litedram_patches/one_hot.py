"""LiteX's state machines with a register for each state: which one it is in is known when a cycle begins.

Bank machines and the choice of a command use it. Upstream: an encoding as an option of ``FSM``, m-labs/migen.
"""

from functools import partial
from typing import Any

from migen import If, Signal

from daedal.fpga.litedram_patches.parts import unknown


def one_hot(fsm: Any) -> None:
    """Change ``fsm``, a state machine of Migen that is not finalized yet: the same states in each cycle.

    Migen numbers states and compares their number, two or three LUTs in front of all that a state says. Raises
    InvalidConfig if the machine tells when it enters or leaves a state, for which Migen compares numbers too.
    """
    fsm.next_is = {}
    fsm.do_finalize = partial(_finalize, fsm)


def next_is(fsm: Any, state: str) -> Signal:
    """Whether ``fsm``, which is ``one_hot``, is in that state in the next cycle."""
    return fsm.next_is.setdefault(state, Signal())


def _finalize(fsm: Any) -> None:
    if any((fsm.before_entering_signals, fsm.before_leaving_signals)):
        raise unknown(fsm, "it tells when it enters or leaves a state")
    fsm.encoding = {state: 1 << number for number, state in enumerate(fsm.actions)}
    fsm.decoding = {code: state for state, code in fsm.encoding.items()}
    fsm.state = Signal(len(fsm.actions), reset=fsm.encoding[fsm.reset_state])
    fsm.next_state = Signal(len(fsm.actions))
    lowered = fsm._lower_controls()
    for number, (state, actions) in enumerate(fsm.actions.items()):
        stays = fsm.next_state.eq(fsm.encoding[state])
        fsm.comb += If(fsm.state[number], stays, *lowered.visit(actions))
    fsm.comb += [is_next.eq(fsm.next_state & fsm.encoding[state] != 0) for state, is_next in fsm.next_is.items()]
    fsm.sync += fsm.state.eq(fsm.next_state)
    fsm.sync += [If(write, register.eq(value)) for register, write, value in lowered.registers]
