"""Gives streams to stream registers.

A bundle's registers are written level by level and read to the end: a nest is one straight line of writes and
reads (``Lifetimes``), and a register is free again after the last read of what it holds.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from daedal.compiler.dialects.mach_access import LevelOp, Lifetimes, NestOp
from daedal.compiler.dialects.mach_types import NO_REGISTER, StreamRegister
from daedal.errors import UnsupportedOperation

FIRST = NO_REGISTER.index_by_name()["r0"]
"""The code of the first register."""


@dataclass(frozen=True)
class AllocateStreamRegisters(ModulePass):
    """Numbers the registers of streams, in all nests; streams that nothing reads from a register get none.

    Parameters
    ----------
    registers
        How many the machine has.
    configuration
        How messages call it.

    UnsupportedOperation names the loop, if there are too few.
    """

    name = "allocate-stream-registers"

    registers: int = 7
    configuration: str = "default"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        for nest in [nest for nest in op.walk() if isinstance(nest, NestOp)]:
            for value, register in self._allocate(nest).items():
                Rewriter.replace_value_with_new_type(value, register)

    def _allocate(self, nest: NestOp) -> dict[SSAValue, StreamRegister]:
        life = Lifetimes.of(nest)
        found: dict[SSAValue, StreamRegister] = {}
        holder: dict[int, SSAValue] = {}
        for value, time in life.written.items():
            if life.last_read.get(value, -1) < time:
                found[value] = NO_REGISTER
                continue
            free = [r for r in range(self.registers) if r not in holder or life.last_read[holder[r]] < time]
            if not free:
                raise UnsupportedOperation(
                    f"{_loop_of(value, nest)} needs more than the {self.registers} stream registers of configuration "
                    f"{self.configuration}, for %{value.name_hint or '?'} beside "
                    + ", ".join(f"%{held.name_hint or '?'}" for held in holder.values())
                )
            found[value] = StreamRegister.from_index(FIRST + free[0])
            holder[free[0]] = value
        return found


def _loop_of(value: SSAValue, nest: NestOp) -> str:
    """How messages call the loop that a stream is of."""
    assert isinstance(value.owner, Operation)
    level = value.owner.properties["level"]
    return next(op.loop for op in nest.body.block.ops if isinstance(op, LevelOp) and op.level == level)
