"""Gives streams to stream registers.

A bundle's registers are written level by level and read to the end: a nest is one straight line of writes and
reads, and a register is free again after the last read of what it holds. Events read at the very end. Bounds,
sequential loads and limits read what the level around has left, so they read before the level writes
anything.
"""

from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from daedal.compiler.backend.levels import Level
from daedal.compiler.dialects import slc
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config


@dataclass
class _Line:
    """The straight line: at which time each stream is written and last read."""

    time: int = 0
    written: dict[SSAValue, int] = field(default_factory=dict)
    last_read: dict[SSAValue, int] = field(default_factory=dict)

    def read(self, *values: SSAValue | None) -> None:
        for value in values:
            if value is not None and isinstance(value.type, slc.StreamType):
                self.last_read[value] = self.time

    def write(self, value: SSAValue) -> None:
        self.time += 1
        self.written[value] = self.time


def _line(levels: list[Level]) -> _Line:
    line = _Line()
    for level in levels:
        line.time += 1
        line.read(level.loop.lower, level.loop.upper, *(load.base for load in level.sequential))
        if level.check is not None:
            line.read(level.check.limit)
        line.write(level.loop.induction)
        for load in level.sequential:
            line.write(load.result)
        for load in level.random:
            line.time += 1
            if load.index is not level.loop.induction:
                line.read(load.index)
            line.read(load.base)
            line.write(load.result)
        for op in level.alus:
            line.time += 1
            line.read(op.a, op.b)
            line.write(op.result)
        if level.count is not None:
            line.time += 1
            line.read(level.count.condition)
            line.write(level.count.result)
    line.time += 1
    for level in levels:
        for event in level.events:
            line.read(event.condition)
            for op in event.body.block.ops:
                line.read(*op.operands)
    return line


def allocate(levels: list[Level], config: Config) -> dict[SSAValue, int]:
    """Stream -> register. Streams that nothing reads from a register get none.

    Raises UnsupportedOperation, naming the loop, if there are too few registers.
    """
    line = _line(levels)
    registers: dict[SSAValue, int] = {}
    holder: dict[int, SSAValue] = {}
    for value, time in line.written.items():
        if line.last_read.get(value, -1) < time:
            continue
        free = [r for r in range(config.registers) if r not in holder or line.last_read[holder[r]] < time]
        if not free:
            loop = _loop_of(value, levels)
            raise UnsupportedOperation(
                f"{loop} needs more than the {config.registers} stream registers of configuration "
                f"{config.name}, "
                f"for %{value.name_hint or '?'} beside "
                + ", ".join(f"%{held.name_hint or '?'}" for held in holder.values())
            )
        registers[value] = free[0]
        holder[free[0]] = value
    return registers


def _loop_of(value: SSAValue, levels: list[Level]) -> str:
    for level in levels:
        own = (level.loop.induction, *(op.results[0] for op in level.loop.body.block.ops if op.results))
        if any(value is other for other in own):
            return level.name
    return levels[-1].name
