"""Writes the loops that pool rows in blocks: each is added up by itself, and then their sums."""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from daedal.compiler.transforms.builders.emitter import Emitter
from daedal.compiler.transforms.builders.pooling import Constants


@dataclass(frozen=True)
class BlockPooling:
    """How the rows of a bag are pooled: ``block`` of them at a time, an index that is fixed.

    ``total`` and ``part`` are local rows; ``divisor`` is an f32 that the sum is divided by, or None. ``weights``, a
    memref, scale the rows, unless they are None.
    """

    emit: Emitter
    constants: Constants
    indices: SSAValue
    block: SSAValue
    total: SSAValue
    part: SSAValue
    divisor: SSAValue | None
    weights: SSAValue | None = None

    def bag(self, start: SSAValue, end: SSAValue, table: SSAValue, rows: SSAValue, out: SSAValue, b: SSAValue) -> None:
        """Pool entries ``start`` to ``end`` over a table with that many rows and store row ``b`` of ``out``."""
        emit, c = self.emit, self.constants
        self._along_row(lambda d: emit.store(c.nothing, self.total, [d]))
        with emit.loop(start, end, self.block, "k") as over_blocks:
            (k,) = over_blocks.body.block.args
            behind = emit.insert(arith.AddiOp(k, self.block), "behind")
            self._block(k, emit.insert(arith.MinSIOp(behind, end), "stop"), table, rows)

        def finish(d: SSAValue) -> None:
            result = emit.load(self.total, [d], "s")
            if self.divisor is not None:
                result = emit.insert(arith.DivfOp(result, self.divisor), "mean")
            emit.store(result, out, [b, d])

        self._along_row(finish)

    def _block(self, start: SSAValue, end: SSAValue, table: SSAValue, rows: SSAValue) -> None:
        """Add these entries up, and their sum to the total."""
        emit, c = self.emit, self.constants
        self._along_row(lambda d: emit.store(c.nothing, self.part, [d]))
        with emit.loop(start, end, c.c1, "p") as over_entries:
            (p,) = over_entries.body.block.args
            index = emit.load(self.indices, [p], "index")
            emit.check("index", index, rows)
            weight = None if self.weights is None else emit.load(self.weights, [p], "weight")
            self._along_row(lambda d: self._add(self._scaled(emit.load(table, [index, d], "x"), weight), self.part, d))
        self._along_row(lambda d: self._add(emit.load(self.part, [d], "x"), self.total, d))

    def _scaled(self, x: SSAValue, weight: SSAValue | None) -> SSAValue:
        return x if weight is None else self.emit.insert(arith.MulfOp(x, weight), "scaled")

    def _add(self, x: SSAValue, to: SSAValue, d: SSAValue) -> None:
        s = self.emit.load(to, [d], "s")
        self.emit.store(self.emit.insert(arith.AddfOp(s, x), "added"), to, [d])

    def _along_row(self, body: Callable[[SSAValue], None]) -> None:
        c = self.constants
        with self.emit.loop(c.c0, c.width, c.c1, "d") as over_row:
            body(over_row.body.block.args[0])
