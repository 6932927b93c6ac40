"""LiteDRAM's bank machines, deciding from registers: the same cycles, on a faster clock.

A bank machine compares the row of its next command with the row that is open. From that follow, in the same cycle, its
request, which bank's request goes to the memory and the states of all banks: 14 LUTs, the longest way of a system. But
whether the rows are the same can be known when the command comes, since the open row does not change before the command
is taken, except when the command itself opens it.

Whether a bank has commands keeps ports from other banks meanwhile, and from that follows, again in one cycle, which
commands the banks take. It is known a cycle before, too. And a bank machine has a register for each of its states.
"""

from collections.abc import Callable
from typing import Any

from litex.soc.interconnect import stream
from migen import If, Signal
from migen.fhdl.structure import _Assign, _Operator, _Slice

from daedal.hw.boards.litedram_parts import bank_machines, only_part, unknown
from daedal.hw.boards.one_hot import one_hot

OPENS = "ACTIVATE"
"""The state of a bank machine in which it opens the row of its command, which waits."""


def decide_from_registers(controller: Any) -> list[Signal]:
    """Change all bank machines of ``controller``, a LiteDRAMController that is not finalized yet.

    Returns for each bank whether it has commands in the next cycle. Raises InvalidConfig if the bank machines are not
    those of the release that pyproject.toml names.
    """
    locks = []
    for machine in bank_machines(controller):
        ahead, buffer = only_part(machine, stream.SyncFIFO), only_part(machine, stream.Buffer)
        _register_hit(machine, buffer)
        locks.append(_register_lock(machine, ahead, buffer))
        one_hot(machine.fsm)
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
