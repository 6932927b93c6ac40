"""Pass ``lower-emb``: operations of ``emb`` become loops over memrefs.

A function with one operation on tensors becomes one that writes its result to a last argument ``out``; 2-D
indices become flat ones with the bags' length as an argument. A function with operations on lists of tables
becomes one nest after the other. Below this pass nothing knows what an embedding is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.bounds import BOUNDS
from daedal.compiler.dialects import emb, place
from daedal.compiler.dialects.emb_blocks import BlockListOp
from daedal.compiler.dialects.emb_checks import LIST_NUMBERS
from daedal.compiler.dialects.emb_score import ScoreOp
from daedal.compiler.dialects.narrow_packed import packed_elements
from daedal.compiler.transforms.builders.block_pooling import BlockPooling
from daedal.compiler.transforms.builders.emitter import Emitter
from daedal.compiler.transforms.builders.packed_pooling import PackedPooling
from daedal.compiler.transforms.builders.placed_blocks import PlacedBlocks
from daedal.compiler.transforms.builders.pooling import Constants, Pooling
from daedal.compiler.transforms.builders.scoring import Scoring


def _flat(value: SSAValue) -> MemRefType:
    """A flat array with the elements of a tensor."""
    assert isinstance(value.type, TensorType)
    return MemRefType(value.type.element_type, [DYNAMIC_INDEX])


def _rows(value: SSAValue) -> MemRefType:
    """Rows of a tensor, with a pitch that is known when a launch starts."""
    assert isinstance(value.type, TensorType)
    return MemRefType(value.type.element_type, value.type.get_shape(), StridedLayoutAttr([NoneAttr(), 1], 0))


def _out(result: SSAValue) -> MemRefType:
    """Rows of a result, one after the other."""
    assert isinstance(result.type, TensorType)
    return MemRefType(result.type.element_type, [DYNAMIC_INDEX, _width(result)])


def _apart(element: Attribute, width: int, pitch: int) -> MemRefType:
    """Rows of ``width`` elements that are ``pitch`` elements apart."""
    return MemRefType(element, [DYNAMIC_INDEX, width], StridedLayoutAttr([IntAttr(pitch), 1], 0))


def _width(table: SSAValue) -> int:
    assert isinstance(table.type, TensorType)
    return table.type.get_shape()[1]


class _Function:
    """The function that is written, with its arguments by name and the constants that all lowerings use."""

    def __init__(self, name: str, arguments: dict[str, Attribute], bounds: str) -> None:
        block = Block(arg_types=list(arguments.values()))
        for argument, hint in zip(block.args, arguments, strict=True):
            argument.name_hint = hint
        self.op = func.FuncOp(name, (list(arguments.values()), []), Region(block))
        self.arguments = dict(zip(arguments, block.args, strict=True))
        self.emit = emit = Emitter(block, bounds)
        self.c0, self.c1 = emit.index(0), emit.index(1)

    def __getitem__(self, name: str) -> SSAValue:
        return self.arguments[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arguments

    def get(self, name: str) -> SSAValue | None:
        """The argument ``name``, if there is one."""
        return self.arguments.get(name)

    def constants(self, width: int, mode: str = "sum") -> Constants:
        """What loops over rows of ``width`` use that are pooled in this mode."""
        nothing, name = (1.0, "one") if mode == "prod" else (0.0, "zero")
        return Constants(self.c0, self.c1, self.emit.index(width, "width"), self.emit.f32(nothing, name))

    def bounds(self, offsets: SSAValue, b: SSAValue, limit: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Start and end of bag ``b``."""
        emit = self.emit
        following = emit.insert(arith.AddiOp(b, self.c1), "following")
        start = emit.load(offsets, [b], "start")
        end = emit.load(offsets, [following], "end")
        emit.check("offset", end, limit)
        return start, end

    def limit(self, indices: SSAValue) -> SSAValue:
        """What the offsets of these indices must be below."""
        entries = self.emit.size(indices, self.c0, "entries")
        return self.emit.insert(arith.AddiOp(entries, self.c1), "limit")


def _lower_lookup(name: str, op: emb.LookupOp, bounds: str) -> func.FuncOp:
    width = _width(op.table)
    f = _Function(name, {"table": _rows(op.table), "indices": _flat(op.indices), "out": _out(op.result)}, bounds)
    emit = f.emit
    width_value = emit.index(width, "width")
    rows = emit.size(f["table"], f.c0, "rows")
    entries = emit.size(f["indices"], f.c0, "entries")
    with emit.loop(f.c0, entries, f.c1, "p") as over_entries:
        (p,) = over_entries.body.block.args
        index = emit.load(f["indices"], [p], "index")
        emit.check("index", index, rows)
        with emit.loop(f.c0, width_value, f.c1, "d") as over_row:
            (d,) = over_row.body.block.args
            emit.store(emit.load(f["table"], [index, d], "x"), f["out"], [p, d])
    emit.append(func.ReturnOp())
    return f.op


def _bag_arguments(op: emb.BagOp) -> dict[str, Attribute]:
    arguments: dict[str, Attribute] = {"table": _rows(op.table), "indices": _flat(op.indices)}
    if op.offsets is not None:
        arguments["offsets"] = _flat(op.offsets)
    else:
        arguments["length"] = IndexType()
    if op.weights is not None:
        arguments["weights"] = _flat(op.weights)
    return {**arguments, "out": _out(op.result)}


def _lower_bag(name: str, op: emb.BagOp, bounds: str) -> func.FuncOp:
    f = _Function(name, _bag_arguments(op), bounds)
    emit, width = f.emit, _width(op.table)
    if op.bits is not None:
        width = packed_elements(width, op.bits.value.data)
    constants = f.constants(width, op.mode.data)
    rows = emit.size(f["table"], f.c0, "rows")
    padding = None if op.padding is None else emit.index(op.padding.value.data, "padding")
    pooling: Pooling | BlockPooling
    if op.block is not None:
        pooling = _blocks(f, op, constants, op.block.value.data)
    elif op.bits is not None and op.columns is not None:
        columns, pooled = emit.index(op.columns.value.data, "columns"), emit.row_buffer(width, "pooled")
        pooling = PackedPooling(
            emit, constants, op.mode.data, False, f["indices"], f.get("weights"), padding, pooled,
            bits=op.bits.value.data, kept=columns,
        )  # fmt: skip
    else:
        pooled = emit.row_buffer(width, "pooled")
        pooling = Pooling(
            emit, constants, op.mode.data, op.fused is not None, f["indices"], f.get("weights"), padding, pooled,
            op.row_element, op.away is not None, op.rounds_what,
        )  # fmt: skip
    bags = emit.size(f["out"], f.c0, "bags")
    limit = f.limit(f["indices"]) if "offsets" in f else None
    with emit.loop(f.c0, bags, f.c1, "b") as over_bags:
        (b,) = over_bags.body.block.args
        if limit is not None:
            start, end = f.bounds(f["offsets"], b, limit)
        else:
            start = emit.insert(arith.MuliOp(b, f["length"]), "start")
            end = emit.insert(arith.AddiOp(start, f["length"]), "end")
        pooling.bag(start, end, f["table"], rows, f["out"], b)
    emit.append(func.ReturnOp())
    return f.op


def _blocks(f: _Function, op: emb.BagOp, constants: Constants, block: int) -> BlockPooling:
    """Rows that are added up in blocks; every bag has the same length, which a mean is divided by."""
    emit, width, divisor = f.emit, _width(op.table), None
    if op.mode.data == "mean":
        divisor = emit.as_f32(emit.insert(arith.MaxSIOp(f["length"], f.c1), "at_least_one"), "divisor")
    total, part = (emit.row_buffer(width, name) for name in ("total", "part"))
    return BlockPooling(
        emit, constants, f["indices"], emit.index(block, "block"), total, part, divisor, f.get("weights")
    )


ListOp: TypeAlias = emb.BagListOp | BlockListOp | emb.LookupListOp


class _ListLowering:
    """Writes a function with operations on lists, whose arguments are those of the old one."""

    def __init__(self, function: func.FuncOp, bounds: str) -> None:
        self._old = function.body.block
        kinds = {argument.name_hint or f"arg{n}": _plain(argument) for n, argument in enumerate(self._old.args)}
        self._function = _Function(function.sym_name.data, kinds, bounds)
        self._values: dict[SSAValue, SSAValue] = dict(
            zip(self._old.args, self._function.op.body.block.args, strict=True)
        )

    def run(self, operations: Sequence[ListOp]) -> func.FuncOp:
        """The finished function."""
        for op in operations:
            if isinstance(op, emb.BagListOp):
                self._nest(op)
            elif isinstance(op, BlockListOp):
                self._sums(op)
            else:
                self._copy(op)
        self._function.emit.append(func.ReturnOp())
        return self._function.op

    def _entry(
        self, op: ListOp, entries: SSAValue, numbers: Sequence[SSAValue], t: SSAValue
    ) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Rows, table and result of entry ``t`` of the list."""
        emit, width = self._function.emit, op.width.value.data
        rows, *addresses = (
            emit.load(entries, [number, t], name)
            for number, name in zip(numbers, ("rows", "table_address", "out_address"), strict=True)
        )
        row_width, out_element = width, op.row_element
        if isinstance(op, emb.BagListOp):
            row_width, out_element = op.row_width, op.out_element
        row = _apart(op.row_element, row_width, op.pitch.value.data)
        result = _apart(out_element, width, op.out_pitch.value.data)
        table, out = (
            emit.insert(place.MemrefOp(address, kind), name)
            for address, kind, name in zip(addresses, (row, result), ("table", "out"), strict=True)
        )
        return rows, table, out

    def _copy(self, op: emb.LookupListOp) -> None:
        f, emit = self._function, self._function.emit
        entries, indices, ends = (self._values[value] for value in (op.list, op.indices, op.ends))
        width, first = op.width.value.data, op.first.value.data
        width_value = emit.index(width, "width")
        numbers = [emit.index(n, f"number{n}") for n in range(LIST_NUMBERS)]
        two = emit.index(2, "two")
        last = emit.index(first + op.count.value.data, "last")
        with emit.loop(emit.index(first, "first"), last, f.c1, "t") as over_tables:
            (t,) = over_tables.body.block.args
            rows, table, out = self._entry(op, entries, numbers, t)
            begin = emit.insert(arith.MuliOp(t, two), "begin")
            behind = emit.insert(arith.AddiOp(begin, f.c1), "behind")
            with emit.loop(begin, behind, f.c1, "b") as once:  # a level for two more loads
                (b,) = once.body.block.args
                following = emit.insert(arith.AddiOp(b, f.c1), "following")
                start, end = emit.load(ends, [b], "start"), emit.load(ends, [following], "end")
                with emit.loop(start, end, f.c1, "p") as over_entries:
                    (p,) = over_entries.body.block.args
                    index = emit.load(indices, [p], "index")
                    emit.check("index", index, rows)
                    with emit.loop(f.c0, width_value, f.c1, "d") as over_row:
                        (d,) = over_row.body.block.args
                        emit.store(emit.load(table, [index, d], "x"), out, [p, d])

    def _nest(self, op: emb.BagListOp) -> None:
        f, emit = self._function, self._function.emit
        entries, indices, bags = (self._values[value] for value in (op.list, op.indices, op.bags))
        width = op.width.value.data if op.bits is None else packed_elements(op.row_width, op.bits.value.data)
        constants = f.constants(width, op.mode.data)
        first, count = op.first.value.data, op.count.value.data
        padding = None if op.padding is None else emit.index(op.padding.value.data, "padding")
        weights = None if op.weights is None else self._values[op.weights]
        pooled = emit.row_buffer(width, "pooled")
        if op.bits is None:
            pooling = Pooling(
                emit, constants, op.mode.data, op.fused is not None, indices, weights, padding, pooled,
                op.row_element, op.away is not None, op.rounds_what,
            )  # fmt: skip
        else:
            pooling = PackedPooling(
                emit, constants, op.mode.data, False, indices, weights, padding, pooled,
                bits=op.bits.value.data, kept=emit.index(op.width.value.data, "columns"),
            )  # fmt: skip
        numbers = [emit.index(n, f"number{n}") for n in range(LIST_NUMBERS)]
        limit, apart = f.limit(indices), emit.insert(arith.AddiOp(bags, f.c1), "apart")
        with emit.loop(emit.index(first, "first"), emit.index(first + count, "last"), f.c1, "t") as over_tables:
            (t,) = over_tables.body.block.args
            rows, table, out = self._entry(op, entries, numbers, t)
            begin = emit.insert(arith.MuliOp(t, apart), "begin")
            behind = emit.insert(arith.AddiOp(begin, bags), "behind")
            with emit.loop(begin, behind, f.c1, "b") as over_bags:
                (b,) = over_bags.body.block.args
                start, end = f.bounds(self._values[op.offsets], b, limit)
                pooling.bag(start, end, table, rows, out, b)

    def _sums(self, op: BlockListOp) -> None:
        f, emit = self._function, self._function.emit
        entries, indices, ends, places, blocks = (
            self._values[value] for value in (op.list, op.indices, op.ends, op.places, op.blocks)
        )
        width, first = op.width.value.data, op.first.value.data
        weights = None if op.weights is None else self._values[op.weights]
        total, part = emit.row_buffer(width, "total"), emit.row_buffer(width, "part")
        constants = f.constants(width)
        pooling = Pooling(emit, constants, "sum", op.fused is not None, indices, weights, None, part)
        sums = PlacedBlocks(emit, constants, pooling, total, part)
        numbers = [emit.index(n, f"number{n}") for n in range(LIST_NUMBERS)]
        limit, apart = f.limit(indices), emit.insert(arith.AddiOp(blocks, f.c1), "apart")
        last = emit.index(first + op.count.value.data, "last")
        with emit.loop(emit.index(first, "first"), last, f.c1, "t") as over_tables:
            (t,) = over_tables.body.block.args
            rows, table, out = self._entry(op, entries, numbers, t)
            begin = emit.insert(arith.MuliOp(t, apart), "begin")
            behind = emit.insert(arith.AddiOp(begin, blocks), "behind")
            sums.begin()
            with emit.loop(begin, behind, f.c1, "k") as over_blocks:
                (k,) = over_blocks.body.block.args
                start, end = f.bounds(ends, k, limit)
                sums.block(start, end, emit.load(places, [k], "place"), (table, rows, out))


def _lower_score(name: str, op: ScoreOp, bounds: str) -> func.FuncOp:
    tables = {f"table{n or ''}": _rows(table) for n, table in enumerate(op.tables)}
    lists = {f"indices{n or ''}": _flat(entries) for n, entries in enumerate(op.lists)}
    f = _Function(name, {**tables, **lists, "length": IndexType(), "out": _flat(op.result)}, bounds)
    given = [f[each] for each in tables], [f[each] for each in lists]
    Scoring(f.emit, op, *given, f["length"], f["out"]).run()
    f.emit.append(func.ReturnOp())
    return f.op


def _plain(argument: SSAValue) -> Attribute:
    """The memref with the shape and elements of a tensor; numbers stay."""
    kind = argument.type
    return MemRefType(kind.element_type, kind.get_shape()) if isinstance(kind, TensorType) else kind


def _lower(function: func.FuncOp, bounds: str) -> func.FuncOp:
    found: list[Operation] = [op for op in function.body.block.ops if not isinstance(op, func.ReturnOp)]
    lists = [op for op in found if isinstance(op, ListOp)]
    if lists and len(lists) == len(found):
        return _ListLowering(function, bounds).run(lists)
    if len(found) != 1 or not isinstance(found[0], emb.BagOp | emb.LookupOp | ScoreOp):
        raise VerifyException(
            f"function {function.sym_name.data} must have one operation of emb, or several on lists of tables"
        )
    name, op = function.sym_name.data, found[0]
    if isinstance(op, ScoreOp):
        return _lower_score(name, op, bounds)
    return _lower_bag(name, op, bounds) if isinstance(op, emb.BagOp) else _lower_lookup(name, op, bounds)


@dataclass(frozen=True)
class LowerEmb(ModulePass):
    """See the module; ``bounds``, one of ``BOUNDS``: what an index outside its table does."""

    name = "lower-emb"

    bounds: str = "fatal"

    def __post_init__(self) -> None:
        if self.bounds not in BOUNDS:
            raise ValueError(f"bounds must be one of {', '.join(BOUNDS)}, not {self.bounds!r}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function that has an operation of ``emb``."""
        block = op.body.block
        for function in list(block.ops):
            if isinstance(function, func.FuncOp) and any(
                isinstance(inner, emb.BagOp | emb.LookupOp | ListOp | ScoreOp) for inner in function.walk()
            ):
                lowered = _lower(function, self.bounds)
                block.insert_op_before(lowered, function)
                Rewriter.erase_op(function)
