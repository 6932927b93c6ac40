"""Writes functions of ``emb`` that pool bags over several tables, found through a list in device memory."""

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, ModuleOp, TensorType, f32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from daedal.compiler.dialects import emb
from daedal.runtime.operations import BagList, Kind

FUNCTION = "kernel"
"""The name of every function."""


def build_list(operation: BagList) -> ModuleOp:
    """The function for a list."""
    arguments: dict[str, Attribute] = {
        "list": TensorType(i64, [emb.LIST_NUMBERS, operation.entries]),
        "offsets": TensorType(i64, [DYNAMIC_INDEX]),
        "bags": IndexType(),
    }
    for kind, _ in operation.groups:
        arguments[f"indices{kind.index_bits}"] = TensorType(IntegerType(kind.index_bits), [DYNAMIC_INDEX])
        if kind.is_weighted:
            arguments[f"weights{kind.index_bits}"] = TensorType(f32, [DYNAMIC_INDEX])
    block = Block(arg_types=list(arguments.values()))
    for argument, name in zip(block.args, arguments, strict=True):
        argument.name_hint = name
    values: dict[str, SSAValue] = dict(zip(arguments, block.args, strict=True))
    first = 0
    for kind, count in operation.groups:
        block.add_op(_operation(kind, (values["list"], first, count), values))
        first += count
    block.add_op(func.ReturnOp())
    return ModuleOp([func.FuncOp(FUNCTION, (list(arguments.values()), []), Region(block))])


def _operation(kind: Kind, entries: tuple[SSAValue, int, int], values: dict[str, SSAValue]) -> emb.BagListOp:
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
    )
