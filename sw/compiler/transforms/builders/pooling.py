"""Writes the loops that pool the rows of one bag."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math, scf
from xdsl.ir import Attribute, Block, SSAValue

from daedal.compiler.dialects import emb
from daedal.compiler.dialects.elements import LANE
from daedal.compiler.transforms.builders.emitter import Emitter

_COMPARES = {"max": ("ogt", "greater"), "min": ("olt", "less")}
"""Modes that keep one of two elements -> the predicate by which a later one is kept, and what that is called."""


@dataclass(frozen=True)
class Constants:
    """Values that all loops use: 0, 1, the width of a row, and what a result begins with: 0.0, or 1.0 of a product."""

    c0: SSAValue
    c1: SSAValue
    width: SSAValue
    nothing: SSAValue


@dataclass(frozen=True)
class Pooling:
    """How the rows of a bag are pooled, in a local row ``pooled``.

    Attributes
    ----------
    mode, is_fused
        As in ``emb.bag``.
    indices, weights
        Memrefs; weights may be None.
    padding
        The index that does not count, or None.
    pooled
        The local row.
    element
        What tables and results are made of. Sums are rounded to it: where they are stored, or before they are divided.
    is_away
        Sums are rounded with ties away from zero.
    rounds
        As in ``emb.bag``: what else is rounded.
    """

    emit: Emitter
    constants: Constants
    mode: str
    is_fused: bool
    indices: SSAValue
    weights: SSAValue | None
    padding: SSAValue | None
    pooled: SSAValue
    element: Attribute = LANE
    is_away: bool = False
    rounds: str = ""

    def bag(self, start: SSAValue, end: SSAValue, table: SSAValue, rows: SSAValue, out: SSAValue, b: SSAValue) -> None:
        """Pool entries ``start`` to ``end`` over a table with that many rows and store row ``b`` of ``out``."""
        c, emit = self.constants, self.emit
        self.along_row(lambda d: emit.store(c.nothing, self.pooled, [d]))
        carried = [c.c0] if self.mode == "mean" or self.mode in _COMPARES else []
        over_entries = self.entries(start, end, table, rows, carried)
        divisor: SSAValue | None = None
        if self.mode == "mean":
            at_least_one = emit.insert(arith.MaxSIOp(over_entries.results[0], c.c1), "at_least_one")
            divisor = emit.as_f32(at_least_one, "divisor")

        def finish(d: SSAValue) -> None:
            result = emit.load(self.pooled, [d], "s")
            if divisor is not None:
                if self.rounds not in emb.ROUNDS_SUMS:
                    result = emit.shorten(result, self.element, "sum", away=self.is_away)
                result = emit.insert(arith.DivfOp(result, divisor), "mean")
            emit.store_f32(result, out, [b, d], away=self.is_away and divisor is None)

        self.along_row(finish, self.columns)

    def entries(
        self, start: SSAValue, end: SSAValue, table: SSAValue, rows: SSAValue, carried: Sequence[SSAValue] = ()
    ) -> scf.ForOp:
        """The loop that adds entries ``start`` to ``end`` to the local row; ``carried`` begin the counts."""
        with self.emit.loop(start, end, self.constants.c1, "p", carried, "count") as over_entries:
            self._entry(over_entries, table, rows)
        return over_entries

    @property
    def columns(self) -> SSAValue:
        """How many elements of the local row are stored."""
        return self.constants.width

    def along_row(self, body: Callable[[SSAValue], None], width: SSAValue | None = None) -> None:
        """A loop over all elements of a row, or ``width`` of them."""
        c = self.constants
        with self.emit.loop(c.c0, c.width if width is None else width, c.c1, "d") as over_row:
            body(over_row.body.block.args[0])

    def _entry(self, loop: scf.ForOp, table: SSAValue, rows: SSAValue) -> None:
        emit, c = self.emit, self.constants
        p = loop.body.block.args[0]
        counts: list[SSAValue] = list(loop.body.block.args[1:])
        index = emit.load(self.indices, [p], "index")
        emit.check("index", index, rows)
        if self.padding is None:
            self.accumulate(p, table, index, counts)
            counts = [emit.insert(arith.AddiOp(n, c.c1), "count") for n in counts]
        else:
            counts = self._unless_padding(p, table, index, counts)
        if counts:
            emit.append(scf.YieldOp(*counts))

    def _unless_padding(self, p: SSAValue, table: SSAValue, index: SSAValue, counts: list[SSAValue]) -> list[SSAValue]:
        emit, c = self.emit, self.constants
        assert self.padding is not None
        counted = emit.insert(arith.CmpiOp(index, self.padding, "ne"), "counted")
        then, otherwise = Block(), Block()
        with emit.inside(then):
            self.accumulate(p, table, index, counts)
            emit.append(scf.YieldOp(*(emit.insert(arith.AddiOp(n, c.c1), "count") for n in counts)))
        with emit.inside(otherwise):
            emit.append(scf.YieldOp(*counts))
        op = scf.IfOp(counted, [n.type for n in counts], [then], [otherwise] if counts else None)
        emit.append(op)
        return list(op.results)

    def accumulate(self, p: SSAValue, table: SSAValue, index: SSAValue, counts: list[SSAValue]) -> None:
        """Add entry ``p``, row ``index`` of the table, to the local row; ``counts`` has how many came before."""
        emit = self.emit
        weight = None if self.weights is None else emit.load(self.weights, [p], "weight")
        first = None
        if self.mode in _COMPARES:
            first = emit.insert(arith.CmpiOp(counts[0], self.constants.c0, "eq"), "first")

        def pool(d: SSAValue) -> None:
            x = emit.load_f32(table, [index, d], "x")
            s = emit.load(self.pooled, [d], "s")
            emit.store(self._pooled(x, s, weight, first), self.pooled, [d])

        self.along_row(pool)

    def _pooled(self, x: SSAValue, s: SSAValue, weight: SSAValue | None, first: SSAValue | None) -> SSAValue:
        """What becomes of element ``s`` with ``x``; a maximum or minimum takes the first element as it is."""
        emit = self.emit
        if first is not None:
            predicate, name = _COMPARES[self.mode]
            beyond = emit.insert(arith.CmpfOp(x, s, predicate), name)
            taken = emit.insert(arith.OrIOp(first, beyond), "taken")
            return emit.insert(arith.SelectOp(taken, x, s), "kept")
        if self.mode == "prod":
            return emit.insert(arith.MulfOp(s, x), "multiplied")
        if weight is not None and self.is_fused:
            return emit.insert(math.FmaOp(x, weight, s), "added")
        if weight is not None:
            x = emit.insert(arith.MulfOp(x, weight), "scaled")
            if self.rounds in emb.ROUNDS_PRODUCTS:
                x = emit.shorten(x, self.element, "product")
        added = emit.insert(arith.AddfOp(s, x), "added")
        return emit.shorten(added, self.element, "sum") if self.rounds in emb.ROUNDS_SUMS else added
