"""Writes functions of ``emb``: what has to be known of an operation to compile it, and nothing that a run
decides.
"""

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Block, Region, SSAValue

from daedal.compiler.dialects import emb
from daedal.compiler.frontends.requests.bag_list import FUNCTION, build_list
from daedal.runtime.operations import Bag, BagList, Lookup, Operation


def build(operation: Operation) -> ModuleOp:
    """The function for an operation."""
    match operation:
        case Bag():
            return _bag(operation)
        case Lookup():
            return _lookup(operation)
        case BagList():
            return build_list(operation)


def _bag(bag: Bag) -> ModuleOp:
    rank = 2 if bag.offset_bits is None else 1
    arguments = {"table": _table(bag.width), "indices": _integers(bag.index_bits, rank)}
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
        block=bag.block,
    )
    return _module(block, op, op.result.type)


def _lookup(lookup: Lookup) -> ModuleOp:
    block, values = _block({"table": _table(lookup.width), "indices": _integers(lookup.index_bits, 1)})
    op = emb.LookupOp(values["table"], values["indices"])
    return _module(block, op, op.result.type)


def _table(width: int) -> TensorType:
    return TensorType(f32, [DYNAMIC_INDEX, width])


def _integers(bits: int, rank: int) -> TensorType:
    return TensorType(IntegerType(bits), [DYNAMIC_INDEX] * rank)


def _block(arguments: dict[str, TensorType]) -> tuple[Block, dict[str, SSAValue]]:
    block = Block(arg_types=list(arguments.values()))
    for argument, name in zip(block.args, arguments, strict=True):
        argument.name_hint = name
    return block, dict(zip(arguments, block.args, strict=True))


def _module(block: Block, op: emb.BagOp | emb.LookupOp, result: Attribute) -> ModuleOp:
    op.result.name_hint = "out"
    block.add_ops([op, func.ReturnOp(op.result)])
    inputs = [argument.type for argument in block.args]
    return ModuleOp([func.FuncOp(FUNCTION, (inputs, [result]), Region(block))])
