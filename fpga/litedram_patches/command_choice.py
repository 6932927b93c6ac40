"""LiteDRAM's choice of a command, with less to wait for: the same cycles, on a faster clock.

Banks ask, one is chosen, and is told when its command is taken. For that LiteDRAM looks at the chosen command, one out
of all banks': whether it is valid, and whether it opens a row, which may have to wait. But the chosen one is the bank's
own, so each bank's command is looked at by itself, and the choice out of all is not on the way from bank to bank.
The multiplexer's state, on which it depends what is chosen, is there when a cycle begins.

Without it, on an LFE5U of grade 6: from a bank's state, through the choice among all, to another bank's queue 12.4 ns
(typical delays). Upstream: ``_CommandChooser`` of ``litedram/core/multiplexer.py``, enjoy-digital/litedram.
"""

from collections.abc import Iterator
from typing import Any

from migen import Constant, If, Signal
from migen.fhdl.structure import _Assign, _Operator
from migen.genlib.roundrobin import RoundRobin

from daedal.fpga.litedram_patches.one_hot import one_hot
from daedal.fpga.litedram_patches.parts import bank_machines, only_part, unknown

STATES = ("READ", "WRITE")
"""States of the multiplexer in which it takes commands of banks."""


def tell_by_own(controller: Any) -> None:
    """Change the multiplexer of ``controller``, a LiteDRAMController that is not finalized yet."""
    multiplexer = controller.multiplexer
    one_hot(multiplexer.fsm)
    commands = [machine.cmd for machine in bank_machines(controller)]
    found = 0
    for chooser in (multiplexer.choose_cmd, multiplexer.choose_req):
        takes, may_open = Signal(), Signal()
        for state in STATES:
            actions = multiplexer.fsm.actions[state]
            for ready in [each for each in _assignments(actions) if each.l is chooser.cmd.ready]:
                when, allowed = _split(ready.r)
                actions += [takes.eq(when), may_open.eq(allowed)]
                found += 1
        _tell(chooser, commands, takes, may_open)
    if found < len(STATES):
        raise unknown(multiplexer, f"it takes commands in {found} states")


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


def _assignments(statements: Any) -> Iterator[Any]:
    """All assignments that can happen; conditions that are constant are decided."""
    for each in statements:
        if isinstance(each, _Assign):
            yield each
        elif isinstance(each, If):
            decided = isinstance(each.cond, Constant)
            branches = [each.t if each.cond.value else each.f] if decided else [each.t, each.f]
            for branch in branches:
                yield from _assignments(branch)
        elif isinstance(each, list | tuple):
            yield from _assignments(each)
