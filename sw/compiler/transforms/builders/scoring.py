"""Loops for ``emb.score``: rows of several tables, an expression of them, and its sum along the row."""

from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.dialects.emb_score import ScoreOp, evaluate, rows_of
from daedal.compiler.transforms.builders.emitter import Emitter

_BINARY: dict[str, type[Operation]] = {"add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp}


class Scoring:
    """Writes the loops of one ``emb.score``.

    Parameters
    ----------
    tables, lists
        Memrefs; each index is checked in a loop of its own, of one iteration but for the first: a loop has one check.
    length
        Entries of the inner lists for each of the outer ones.
    """

    def __init__(
        self, emit: Emitter, op: ScoreOp, tables: Sequence[SSAValue], lists: Sequence[SSAValue], length: SSAValue,
        out: SSAValue,
    ) -> None:  # fmt: skip
        self._emit, self._op, self._out, self._length = emit, op, out, length
        self._tables, self._lists = tables, lists
        self._c0, self._c1, self._zero = emit.index(0), emit.index(1), emit.f32(0.0, "zero")
        self._width = emit.index(op.width, "width")
        rows = [emit.size(table, self._c0, f"rows{n}") for n, table in enumerate(tables)]
        used = rows_of(op.expression.data)
        self._limits: list[SSAValue] = []
        for entries in range(len(lists)):
            limit, *others = [rows[table] for table, named in dict.fromkeys(used) if named == entries]
            for other in others:
                limit = emit.insert(arith.MinSIOp(limit, other), "least")
            self._limits.append(limit)

    def run(self) -> None:
        """All loops."""
        emit, outer = self._emit, self._op.outer.value.data
        entries = emit.size(self._out, self._c0, "entries")
        indices: list[SSAValue] = []
        with ExitStack() as loops:
            place: SSAValue | None = None
            if outer:
                groups = emit.size(self._lists[0], self._c0, "groups")
                loop = loops.enter_context(emit.loop(self._c0, groups, self._c1, "b"))
                place = loop.body.block.args[0]
                place = self._named(loops, range(outer), place, indices)
                start = emit.insert(arith.MuliOp(place, self._length), "start")
                end = emit.insert(arith.AddiOp(start, self._length), "end")
                loop = loops.enter_context(emit.loop(start, end, self._c1, "p"))
            else:
                loop = loops.enter_context(emit.loop(self._c0, entries, self._c1, "p"))
            place = self._named(loops, range(outer, len(self._lists)), loop.body.block.args[0], indices)
            with emit.loop(self._c0, self._width, self._c1, "d", [self._zero], "total") as along:
                d, total = along.body.block.args
                value = self._value(indices, d)
                if self._op.reduction.data == "squares":
                    value = emit.insert(arith.MulfOp(value, value))
                emit.append(scf.YieldOp(emit.insert(arith.AddfOp(total, value))))
            self._finish(along, place)

    def _named(self, loops: ExitStack, lists: range, place: SSAValue, indices: list[SSAValue]) -> SSAValue:
        """Load and check an entry of each list, further ones in loops of one iteration; the last loop's variable."""
        for position, entries in enumerate(lists):
            if position:
                behind = self._emit.insert(arith.AddiOp(place, self._c1), "behind")
                loop = loops.enter_context(self._emit.loop(place, behind, self._c1, f"again{entries}"))
                place = loop.body.block.args[0]
            index = self._emit.load(self._lists[entries], [place], f"index{entries}")
            self._emit.check("index", index, self._limits[entries])
            indices.append(index)
        return place

    def _value(self, indices: Sequence[SSAValue], d: SSAValue) -> SSAValue:
        emit = self._emit
        loaded: dict[tuple[int, int], SSAValue] = {}

        def row(table: int, entries: int) -> SSAValue:
            key = table, entries
            if key not in loaded:
                loaded[key] = emit.load(self._tables[table], [indices[entries], d], f"x{table}")
            return loaded[key]

        def apply(name: str, operands: Sequence[SSAValue]) -> SSAValue:
            if name == "neg":
                return emit.insert(arith.MulfOp(operands[0], emit.f32(-1.0, "minus_one")))
            return emit.insert(math.AbsFOp(operands[0]) if name == "abs" else _BINARY[name](*operands))

        return evaluate(self._op.expression.data, row, lambda number: emit.f32(number, "number"), apply)

    def _finish(self, along: scf.ForOp, place: SSAValue) -> None:
        """Store what the sum along a row gives."""
        attribute = {"daedal.reduce": UnitAttr()}
        along.attributes.update(attribute)
        result: SSAValue = along.results[0]
        result.name_hint = "score"
        if self._op.reduction.data == "mean":
            result = self._emit.insert(arith.DivfOp(result, self._emit.f32(float(self._op.width), "columns")), "mean")
        self._emit.store(result, self._out, [place])
