"""LiteDRAM's choice of a command, with less to wait for: the same cycles, on a faster clock.

Banks ask, one is chosen, and is told when its command is taken. For that LiteDRAM looks at the chosen command, one out
of all banks': whether it is valid, and whether it opens a row, which may have to wait. But the chosen one is the bank's
own, so each bank's command is looked at by itself, and the choice out of all is not on the way from bank to bank.

Which commands are wanted, reads or writes, depends on the multiplexer's state, one of a dozen. Whether it is one of the
two that want any is in a register each, known when a cycle begins.
"""

from functools import reduce
from operator import or_
from typing import Any

from migen import Constant, If, Signal
from migen.fhdl.structure import _Assign, _Operator
from migen.genlib.roundrobin import RoundRobin

from daedal.hw.boards.litedram_parts import bank_machines, only_part, unknown

STATES = ("READ", "WRITE")
"""States of the multiplexer in which it takes commands of banks."""


def tell_by_own(controller: Any) -> None:
    """Change the multiplexer of ``controller``, a LiteDRAMController that is not finalized yet."""
    multiplexer = controller.multiplexer
    now = {state: _register_of_state(multiplexer, state) for state in STATES}
    commands = [machine.cmd for machine in bank_machines(controller)]
    found = 0
    for chooser in (multiplexer.choose_cmd, multiplexer.choose_req):
        for wanted in (chooser.want_reads, chooser.want_writes, chooser.want_activates):
            _decide_outside(multiplexer, now, wanted)
        ready = _decide_outside(multiplexer, now, chooser.cmd.ready)
        split = {state: _split(value) for state, value in ready.items()}
        found += len(split)
        takes, may_open = (
            [now[state] & condition[part] for state, condition in split.items()] or [Constant(0)] for part in range(2)
        )
        _tell(chooser, commands, reduce(or_, takes), reduce(or_, may_open))
    if found < len(STATES):
        raise unknown(multiplexer, f"it takes commands in {found} states")


def _register_of_state(multiplexer: Any, state: str) -> Signal:
    """Whether the multiplexer is in ``state``."""
    fsm = multiplexer.fsm
    now = Signal(reset=int(state == fsm.reset_state))
    multiplexer.sync += If(fsm.before_entering(state), now.eq(1)).Elif(fsm.before_leaving(state), now.eq(0))
    return now


def _decide_outside(multiplexer: Any, now: dict[str, Any], signal: Any) -> dict[str, Any]:
    """Take what the states assign to ``signal`` out of them, and assign it by their registers; state -> its value."""
    values: dict[str, Any] = {}
    for state in now:
        found = _take_out(multiplexer.fsm.actions[state], signal)
        if len(found) > 1:
            raise unknown(multiplexer, f"it assigns a signal {len(found)} times in {state}")
        if found:
            values[state] = found[0].r
    if values:
        multiplexer.comb += signal.eq(reduce(or_, (now[state] & value for state, value in values.items())))
    return values


def _tell(chooser: Any, commands: list[Any], takes: Signal, may_open: Signal) -> None:
    """A bank's command is taken if it is the chosen one, valid, and needs not wait to open a row."""
    statements = chooser._fragment.comb
    arbiter = only_part(chooser, RoundRobin)
    valids = [each.r for each in statements if isinstance(each, _Assign) and each.l is arbiter.request]
    told = [each for each in statements if isinstance(each, If) and _looks_at_chosen(each.cond, chooser.cmd)]
    if len(valids) != 1 or len(told) != len(commands):
        raise unknown(chooser, f"it tells {len(told)} of {len(commands)} banks")
    for number, (each, command) in enumerate(zip(told, commands, strict=True)):
        opens = command.ras & ~command.cas & ~command.we
        each.cond = valids[0][number] & (arbiter.grant == number) & takes & (~opens | may_open)


def _looks_at_chosen(condition: Any, chosen: Any) -> bool:
    """``chosen.valid & chosen.ready & …``."""
    first = _operands(condition, "&")[0]
    return [id(each) for each in _operands(first, "&")] == [id(chosen.valid), id(chosen.ready)]


def _split(ready: Any) -> tuple[Any, Any]:
    """Of ``when & (~opens | may_open)``, either of which may be missing: ``when`` and ``may_open``."""
    *before, last = _operands(ready, "&")
    negated, *may_open = _operands(last, "|")
    if may_open and _operands(negated, "~")[0] is not negated:
        return (before or [Constant(1)])[0], may_open[0]
    return ready, Constant(1)


def _operands(value: Any, op: str) -> list[Any]:
    """Those of an operation; of any other value itself."""
    return value.operands if isinstance(value, _Operator) and value.op == op else [value]


def _take_out(statements: list[Any], signal: Any) -> list[Any]:
    """Remove and return the assignments to ``signal`` that can happen; conditions that are constant are decided."""
    found = []
    for each in list(statements):
        if isinstance(each, _Assign) and each.l is signal:
            statements[:] = [other for other in statements if other is not each]
            found.append(each)
        elif isinstance(each, If) and isinstance(each.cond, Constant):
            found += _take_out(each.t if each.cond.value else each.f, signal)
        elif isinstance(each, list):
            found += _take_out(each, signal)
    return found
