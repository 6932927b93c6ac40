"""Writes functions of ``emb`` for operations, of which several may be pooled through a list in device memory."""

from collections.abc import Mapping
from functools import singledispatch

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, ModuleOp, TensorType, f32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from daedal.compiler.dialects import emb, emb_checks
from daedal.compiler.dialects.elements import type_of
from daedal.compiler.dialects.emb_blocks import BlockListOp
from daedal.compiler.dialects.emb_score import ScoreOp
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.elements import BINARY32, Element
from daedal.runtime.operations import CHAIN, Bag, BagList, BlockKind, Kind, Lookup, Score

FUNCTION = "kernel"
"""The name of every function."""


@singledispatch
def build(operation: object) -> ModuleOp:
    """The function of ``emb`` that does an operation. TypeError for what is none."""
    raise TypeError(f"operation must be a Bag, Lookup or BagList, not {operation!r}")


@build.register
def _(bag: Bag) -> ModuleOp:
    if bag.in_list:
        raise UnsupportedOperation(f"sums in another order than {CHAIN}, from +0.0, must be of a list of operations")
    rank = 2 if bag.offset_bits is None else 1
    arguments: dict[str, Attribute] = {
        "table": _table(bag.width if bag.words is None else bag.words, bag.element),
        "indices": _integers(bag.index_bits, rank),
    }
    if bag.offset_bits is not None:
        arguments["offsets"] = _integers(bag.offset_bits, 1)
    if bag.is_weighted:
        arguments["weights"] = TensorType(f32, [DYNAMIC_INDEX])
    block, values = _block(arguments)
    op = emb.BagOp(
        bag.mode,
        values["table"],
        values["indices"],
        values.get("offsets"),
        values.get("weights"),
        padding=bag.padding,
        fused=bag.is_fused,
        away=bag.is_away,
        wide=bag.is_wide,
        rounds=bag.rounds,
        block=bag.block,
        bits=bag.bits,
        columns=None if bag.bits is None else bag.width,
    )
    return _with_result(block, op)


@build.register
def _(lookup: Lookup) -> ModuleOp:
    table = _table(lookup.width, lookup.element)
    block, values = _block({"table": table, "indices": _integers(lookup.index_bits, 1)})
    return _with_result(block, emb.LookupOp(values["table"], values["indices"]))


@build.register
def _(score: Score) -> ModuleOp:
    arguments: dict[str, Attribute] = {}
    for number in range(score.tables):
        arguments[f"table{number or ''}"] = _table(score.width, BINARY32)
    for number, bits in enumerate(score.index_bits):
        arguments[f"indices{number or ''}"] = _integers(bits, 1)
    block, values = _block({**arguments, "length": IndexType()})
    tables = [value for name, value in values.items() if name.startswith("table")]
    lists = [value for name, value in values.items() if name.startswith("indices")]
    op = ScoreOp(score.reduction, score.expression, tables, lists, values["length"], score.outer)
    return _with_result(block, op)


@build.register
def _(bags: BagList) -> ModuleOp:
    arguments: dict[str, Attribute] = {}
    if bags.groups:
        arguments["list"] = TensorType(i64, [emb_checks.LIST_NUMBERS, bags.entries])
        arguments["offsets"] = TensorType(i64, [DYNAMIC_INDEX])
        arguments["bags"] = IndexType()
    if bags.sums:
        arguments["sums"] = TensorType(i64, [emb_checks.LIST_NUMBERS, bags.summed_entries])
        arguments["block_ends"] = TensorType(i64, [DYNAMIC_INDEX])
        arguments["places"] = TensorType(i64, [DYNAMIC_INDEX])
        arguments["blocks"] = IndexType()
    if bags.copies:
        arguments["copies"] = TensorType(i64, [emb_checks.LIST_NUMBERS, bags.copied_entries])
        arguments["ends"] = TensorType(i64, [DYNAMIC_INDEX])
    for copied, _ in bags.copies:
        arguments[f"indices{copied.index_bits}"] = _integers(copied.index_bits, 1)
    kinds = [(kind.index_bits, kind.is_weighted) for kind, _ in bags.groups]
    kinds += [(kind.index_bits, kind.is_weighted) for kind, _ in bags.sums]
    for bits, is_weighted in kinds:
        arguments[f"indices{bits}"] = _integers(bits, 1)
        if is_weighted:
            arguments[f"weights{bits}"] = TensorType(f32, [DYNAMIC_INDEX])
    block, values = _block(arguments)
    first = 0
    for kind, count in bags.groups:
        block.add_op(_entries(kind, (values["list"], first, count), values))
        first += count
    first = 0
    for summed, count in bags.sums:
        block.add_op(_sums(summed, (values["sums"], first, count), values))
        first += count
    first = 0
    for copied, count in bags.copies:
        entries, indices = (values["copies"], first, count), values[f"indices{copied.index_bits}"]
        pitches = {"width": copied.width, "pitch": copied.pitch, "out_pitch": copied.out_pitch}
        block.add_op(emb.LookupListOp(entries, indices, values["ends"], **pitches, element=type_of(copied.element)))
        first += count
    block.add_op(func.ReturnOp())
    return _module(block, [])


def _entries(kind: Kind, entries: tuple[SSAValue, int, int], values: Mapping[str, SSAValue]) -> emb.BagListOp:
    return emb.BagListOp(
        kind.mode,
        entries,
        values[f"indices{kind.index_bits}"],
        values["offsets"],
        values["bags"],
        values[f"weights{kind.index_bits}"] if kind.is_weighted else None,
        width=kind.width,
        pitch=kind.pitch,
        out_pitch=kind.out_pitch,
        padding=kind.padding,
        fused=kind.is_fused,
        away=kind.is_away,
        wide=kind.is_wide,
        rounds=kind.rounds,
        element=type_of(kind.element),
        bits=kind.bits,
    )


def _sums(kind: BlockKind, entries: tuple[SSAValue, int, int], values: Mapping[str, SSAValue]) -> BlockListOp:
    return BlockListOp(
        entries,
        values[f"indices{kind.index_bits}"],
        values["block_ends"],
        values["places"],
        values["blocks"],
        values[f"weights{kind.index_bits}"] if kind.is_weighted else None,
        width=kind.width,
        pitch=kind.pitch,
        out_pitch=kind.out_pitch,
        fused=kind.is_fused,
    )


def _table(width: int, element: Element) -> TensorType:
    return TensorType(type_of(element), [DYNAMIC_INDEX, width])


def _integers(bits: int, rank: int) -> TensorType:
    return TensorType(IntegerType(bits), [DYNAMIC_INDEX] * rank)


def _block(arguments: Mapping[str, Attribute]) -> tuple[Block, dict[str, SSAValue]]:
    block = Block(arg_types=list(arguments.values()))
    for argument, name in zip(block.args, arguments, strict=True):
        argument.name_hint = name
    return block, dict(zip(arguments, block.args, strict=True))


def _with_result(block: Block, op: emb.BagOp | emb.LookupOp | ScoreOp) -> ModuleOp:
    op.result.name_hint = "out"
    block.add_ops([op, func.ReturnOp(op.result)])
    return _module(block, [op.result.type])


def _module(block: Block, results: list[Attribute]) -> ModuleOp:
    inputs = [argument.type for argument in block.args]
    return ModuleOp([func.FuncOp(FUNCTION, (inputs, results), Region(block))])
