"""LiteDRAM's bank machines, deciding from registers: the same cycles, on a faster clock.

A bank machine compares the row of its next command with the row that is open. From that follow, in the same cycle, its
request, which bank's request goes to the memory and the states of all banks: 14 LUTs, the longest way of a system. But
whether the rows are the same can be known when the command comes, since the open row does not change before the command
is taken, except when the command itself opens it.

Whether a bank has commands keeps ports from other banks meanwhile, and from that follows, again in one cycle, which
commands the banks take. It is known a cycle before, too. A bank machine has a register for each of its states, and one
for whether it takes commands: it does not when a refresh is asked for, of all banks, so that wire is long.

Without it, on an LFE5U of grade 6: from a bank machine's row to the states of all banks 16.9 ns, from whether one has
commands to another bank's queue 14.8 ns (routed). Upstream: ``row_hit`` and ``lock`` as registers in
``litedram/core/bankmachine.py``, enjoy-digital/litedram; builds on ``refresh``.
"""

from collections.abc import Callable
from typing import Any

from litex.soc.interconnect import stream
from migen import If, Signal
from migen.fhdl.structure import _Assign, _Operator, _Slice

from daedal.fpga.litedram_patches.one_hot import next_is, one_hot
from daedal.fpga.litedram_patches.parts import bank_machines, only_part, unknown

OPENS, SERVES = "ACTIVATE", "REGULAR"
"""States of a bank machine: it opens the row of its command, which waits; it takes commands, or begins a refresh."""


def decide_from_registers(controller: Any, refreshes: Signal) -> list[Signal]:
    """Change all bank machines of ``controller``, a LiteDRAMController that is not finalized yet.

    ``refreshes``: whether a refresh is asked for in the next cycle (``LateRefresher.soon``).

    Returns for each bank whether it has commands in the next cycle. Raises InvalidConfig if the bank machines are not
    those of the release that pyproject.toml names.
    """
    locks = []
    for machine in bank_machines(controller):
        ahead, buffer = only_part(machine, stream.SyncFIFO), only_part(machine, stream.Buffer)
        _register_hit(machine, buffer)
        locks.append(_register_lock(machine, ahead, buffer))
        one_hot(machine.fsm)
        _register_service(machine, refreshes)
    return locks


def _register_hit(machine: Any, buffer: Any) -> None:
    """A register in the place of ``row_hit = row == <that of the command in the buffer>``."""
    compare = _take_out(machine, "row_hit", lambda signal: _name(signal) == "row_hit")
    if not isinstance(compare.r, _Operator) or compare.r.op != "==" or not isinstance(compare.r.operands[1], _Slice):
        raise unknown(machine, "row_hit does not compare with a part of an address")
    row, wanted = compare.r.operands
    coming = buffer.sink.payload.addr[wanted.start : wanted.stop]
    hit = Signal()
    machine.comb += compare.l.eq(hit)
    machine.sync += [
        If(buffer.sink.ready, hit.eq(row == coming)),
        If(machine.fsm.ongoing(OPENS), hit.eq(1)),
    ]


def _register_lock(machine: Any, ahead: Any, buffer: Any) -> Signal:
    """A register in the place of ``lock``: the queue of commands or the buffer behind it has one.

    The buffer's command is taken when ``ready`` says so, which it does of a command that is there only; a request waits
    only for a full queue.
    """
    lock = _take_out(machine, "lock", lambda signal: signal is machine.req.lock).l
    held, holds = Signal(), Signal()
    machine.comb += [
        lock.eq(held),
        holds.eq(machine.req.valid | (held & ~(buffer.source.ready & ~ahead.source.valid))),
    ]
    machine.sync += held.eq(holds)
    return holds


def _register_service(machine: Any, refreshes: Signal) -> None:
    """A register for whether it is in its state for commands and no refresh is asked for."""
    actions = machine.fsm.actions[SERVES]
    if len(actions) != 1 or not isinstance(actions[0], If) or actions[0].cond is not machine.refresh_req:
        raise unknown(machine, f"it does not ask for a refresh first in its state {SERVES}")
    choice, serves = actions[0], Signal(reset=1)
    machine.sync += serves.eq(next_is(machine.fsm, SERVES) & ~refreshes)
    machine.fsm.actions[SERVES] = [If(machine.refresh_req, *choice.t), If(serves, *choice.f)]


def _take_out(machine: Any, name: str, is_it: Callable[[Any], bool]) -> Any:
    """Its only assignment to the signal ``name``, which it has no longer."""
    statements = machine._fragment.comb
    found = [x for x in statements if isinstance(x, _Assign) and is_it(x.l)]
    if len(found) != 1:
        raise unknown(machine, f"it has {len(found)} assignments to {name}")
    statements.remove(found[0])
    return found[0]


def _name(signal: Any) -> str | None:
    """The name of a signal in the source that made it."""
    trace = getattr(signal, "backtrace", None)
    return str(trace[-1][0]) if trace else None
