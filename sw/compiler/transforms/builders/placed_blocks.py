"""Writes the loops that add up sums of blocks of rows, of which some are the last of a result."""

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from daedal.compiler.transforms.builders.emitter import Emitter
from daedal.compiler.transforms.builders.pooling import Constants, Pooling


@dataclass(frozen=True)
class PlacedBlocks:
    """How blocks are added up: ``pooling`` adds up one in the local row ``part``, ``total`` is of those before it."""

    emit: Emitter
    constants: Constants
    pooling: Pooling
    total: SSAValue
    part: SSAValue

    def begin(self) -> None:
        """Nothing is added up yet."""
        for row in (self.total, self.part):
            self._begin_row(row)

    def block(self, start: SSAValue, end: SSAValue, place: SSAValue, rows: tuple[SSAValue, SSAValue, SSAValue]) -> None:
        """Store the total in row ``place`` unless that is 0, and add entries ``start`` to ``end``; ``rows``: the table,
        how many it has, and those of the result.
        """
        emit, c = self.emit, self.constants
        table, count, out = rows
        ends = emit.insert(arith.CmpiOp(place, c.c0, "ne"), "ends")
        then = Block()
        with emit.inside(then):

            def store(d: SSAValue) -> None:
                emit.store(emit.load(self.total, [d], "s"), out, [place, d])
                emit.store(c.nothing, self.total, [d])

            self.pooling.along_row(store)
            emit.append(scf.YieldOp())
        emit.append(scf.IfOp(ends, [], [then]))
        self.pooling.entries(start, end, table, count)

        def add(d: SSAValue) -> None:
            part, total = emit.load(self.part, [d], "part"), emit.load(self.total, [d], "total")
            emit.store(emit.insert(arith.AddfOp(total, part), "added"), self.total, [d])
            emit.store(c.nothing, self.part, [d])

        self.pooling.along_row(add)

    def _begin_row(self, row: SSAValue) -> None:
        self.pooling.along_row(lambda d: self.emit.store(self.constants.nothing, row, [d]))
