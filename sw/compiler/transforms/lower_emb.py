"""Pass ``lower-emb``: operations of ``emb`` become loops over memrefs.

A function with one such operation becomes one that writes its result to a last argument ``out``; 2-D indices
become flat ones with the bags' length as an argument. Below this pass nothing knows what an embedding is.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    f32,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects import emb
from daedal.compiler.transforms.emitter import Emitter


def _flat(value: SSAValue) -> MemRefType:
    """A flat array with the elements of a tensor."""
    assert isinstance(value.type, TensorType)
    return MemRefType(value.type.element_type, [DYNAMIC_INDEX])


def _rows(value: SSAValue) -> MemRefType:
    """Rows of a tensor, with a pitch that is known when a launch starts."""
    assert isinstance(value.type, TensorType)
    return MemRefType(f32, value.type.get_shape(), StridedLayoutAttr([NoneAttr(), 1], 0))


def _width(table: SSAValue) -> int:
    assert isinstance(table.type, TensorType)
    return table.type.get_shape()[1]


class _Function:
    """The function that is written, with its arguments by name and the constants that all lowerings use."""

    def __init__(self, name: str, arguments: dict[str, Attribute], width: int) -> None:
        block = Block(arg_types=list(arguments.values()))
        for argument, hint in zip(block.args, arguments, strict=True):
            argument.name_hint = hint
        self.op = func.FuncOp(name, (list(arguments.values()), []), Region(block))
        self.arguments = dict(zip(arguments, block.args, strict=True))
        self.emit = emit = Emitter(block)
        self.c0, self.c1 = emit.index(0), emit.index(1)
        self.width = emit.index(width, "width")
        self.rows = emit.size(self["table"], self.c0, "rows")

    def __getitem__(self, name: str) -> SSAValue:
        return self.arguments[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arguments


def _lower_lookup(name: str, op: emb.LookupOp) -> func.FuncOp:
    width = _width(op.table)
    out = MemRefType(f32, [DYNAMIC_INDEX, width])
    f = _Function(name, {"table": _rows(op.table), "indices": _flat(op.indices), "out": out}, width)
    emit = f.emit
    entries = emit.size(f["indices"], f.c0, "entries")
    with emit.loop(f.c0, entries, f.c1, "p") as over_entries:
        (p,) = over_entries.body.block.args
        index = emit.load(f["indices"], [p], "index")
        emit.check("index", index, f.rows)
        with emit.loop(f.c0, f.width, f.c1, "d") as over_row:
            (d,) = over_row.body.block.args
            emit.store(emit.load(f["table"], [index, d], "x"), f["out"], [p, d])
    emit.append(func.ReturnOp())
    return f.op


class _BagLowering:
    """Writes the loops of one bag operation."""

    def __init__(self, name: str, op: emb.BagOp) -> None:
        self._op = op
        width = _width(op.table)
        arguments: dict[str, Attribute] = {"table": _rows(op.table), "indices": _flat(op.indices)}
        if op.offsets is not None:
            arguments["offsets"] = _flat(op.offsets)
        else:
            arguments["length"] = IndexType()
        if op.weights is not None:
            arguments["weights"] = _flat(op.weights)
        arguments["out"] = MemRefType(f32, [DYNAMIC_INDEX, width])
        self._function = f = _Function(name, arguments, width)
        self._emit = emit = f.emit
        self._padding = None
        if op.padding is not None:
            self._padding = emit.index(op.padding.value.data, "padding")
        self._zero = emit.f32(0.0, "zero")
        self._sum = emit.row_buffer(width, "sum")

    def run(self) -> func.FuncOp:
        """The finished function."""
        f, emit = self._function, self._emit
        bags = emit.size(f["out"], f.c0, "bags")
        if "offsets" in f:
            entries = emit.size(f["indices"], f.c0, "entries")
            self._limit = emit.insert(arith.AddiOp(entries, f.c1), "limit")
        with emit.loop(f.c0, bags, f.c1, "b") as over_bags:
            self._bag(over_bags.body.block.args[0])
        emit.append(func.ReturnOp())
        return f.op

    def _bag(self, b: SSAValue) -> None:
        f, emit = self._function, self._emit
        start, end = self._bounds(b)
        with emit.loop(f.c0, f.width, f.c1, "d") as over_row:
            emit.store(self._zero, self._sum, [over_row.body.block.args[0]])
        is_mean = self._op.mode.data == "mean"
        carried = [f.c0] if is_mean else []
        with emit.loop(start, end, f.c1, "p", carried, "count") as over_entries:
            self._entry(over_entries)
        divisor = None
        if is_mean:
            at_least_one = emit.insert(arith.MaxSIOp(over_entries.results[0], f.c1), "at_least_one")
            divisor = emit.as_f32(at_least_one, "divisor")
        with emit.loop(f.c0, f.width, f.c1, "d") as over_row:
            (d,) = over_row.body.block.args
            result = emit.load(self._sum, [d], "s")
            if divisor is not None:
                result = emit.insert(arith.DivfOp(result, divisor), "mean")
            emit.store(result, f["out"], [b, d])

    def _bounds(self, b: SSAValue) -> tuple[SSAValue, SSAValue]:
        f, emit = self._function, self._emit
        if "offsets" not in f:
            start = emit.insert(arith.MuliOp(b, f["length"]), "start")
            return start, emit.insert(arith.AddiOp(start, f["length"]), "end")
        following = emit.insert(arith.AddiOp(b, f.c1), "following")
        start = emit.load(f["offsets"], [b], "start")
        end = emit.load(f["offsets"], [following], "end")
        emit.check("offset", end, self._limit)
        return start, end

    def _entry(self, loop: scf.ForOp) -> None:
        f, emit = self._function, self._emit
        p = loop.body.block.args[0]
        counts: list[SSAValue] = list(loop.body.block.args[1:])
        index = emit.load(f["indices"], [p], "index")
        emit.check("index", index, f.rows)
        if self._padding is None:
            self._accumulate(p, index)
            counts = [emit.insert(arith.AddiOp(n, f.c1), "count") for n in counts]
        else:
            counts = self._unless_padding(p, index, counts)
        if counts:
            emit.append(scf.YieldOp(*counts))

    def _unless_padding(self, p: SSAValue, index: SSAValue, counts: list[SSAValue]) -> list[SSAValue]:
        f, emit = self._function, self._emit
        assert self._padding is not None
        counted = emit.insert(arith.CmpiOp(index, self._padding, "ne"), "counted")
        then, otherwise = Block(), Block()
        with emit.inside(then):
            self._accumulate(p, index)
            emit.append(scf.YieldOp(*(emit.insert(arith.AddiOp(n, f.c1), "count") for n in counts)))
        with emit.inside(otherwise):
            emit.append(scf.YieldOp(*counts))
        op = scf.IfOp(counted, [n.type for n in counts], [then], [otherwise] if counts else None)
        emit.append(op)
        return list(op.results)

    def _accumulate(self, p: SSAValue, index: SSAValue) -> None:
        f, emit = self._function, self._emit
        weight = emit.load(f["weights"], [p], "weight") if "weights" in f else None
        with emit.loop(f.c0, f.width, f.c1, "d") as over_row:
            (d,) = over_row.body.block.args
            x = emit.load(f["table"], [index, d], "x")
            s = emit.load(self._sum, [d], "s")
            if weight is not None and self._op.fused is not None:
                added = emit.insert(math.FmaOp(x, weight, s), "added")
            else:
                if weight is not None:
                    x = emit.insert(arith.MulfOp(x, weight), "scaled")
                added = emit.insert(arith.AddfOp(s, x), "added")
            emit.store(added, self._sum, [d])


def _lower(function: func.FuncOp) -> func.FuncOp:
    found = [op for op in function.body.block.ops if not isinstance(op, func.ReturnOp)]
    if len(found) != 1 or not isinstance(found[0], emb.BagOp | emb.LookupOp):
        raise VerifyException(f"function {function.sym_name.data} must have one operation of emb")
    name, op = function.sym_name.data, found[0]
    return _BagLowering(name, op).run() if isinstance(op, emb.BagOp) else _lower_lookup(name, op)


@dataclass(frozen=True)
class LowerEmb(ModulePass):
    """See the module."""

    name = "lower-emb"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function that has an operation of ``emb``."""
        block = op.body.block
        for function in list(block.ops):
            if isinstance(function, func.FuncOp) and any(
                isinstance(inner, emb.BagOp | emb.LookupOp) for inner in function.walk()
            ):
                lowered = _lower(function)
                block.insert_op_before(lowered, function)
                function.detach()
                function.erase()
