"""Writes functions of ``emb``: what has to be known of an operation to compile it, and nothing that a run
decides.
"""

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Block, Region, SSAValue

from daedal.compiler.dialects import emb

FUNCTION = "kernel"
"""The name of every function."""


@dataclass(frozen=True)
class Bag:
    """A pooling of bags; bits of the integer types, ``offset_bits`` None for 2-D indices."""

    mode: str
    width: int
    index_bits: int
    offset_bits: int | None
    is_weighted: bool = False
    is_fused: bool = False
    padding: int | None = None
    block: int | None = None

    def build(self) -> ModuleOp:
        """The function."""
        rank = 2 if self.offset_bits is None else 1
        arguments = {"table": _table(self.width), "indices": _integers(self.index_bits, rank)}
        if self.offset_bits is not None:
            arguments["offsets"] = _integers(self.offset_bits, 1)
        if self.is_weighted:
            arguments["weights"] = TensorType(f32, [DYNAMIC_INDEX])
        block, values = _block(arguments)
        op = emb.BagOp(
            self.mode,
            values["table"],
            values["indices"],
            values.get("offsets"),
            values.get("weights"),
            padding=self.padding,
            fused=self.is_fused,
            block=self.block,
        )
        return _module(block, op, op.result.type)


@dataclass(frozen=True)
class Lookup:
    """A gather of rows."""

    width: int
    index_bits: int

    def build(self) -> ModuleOp:
        """The function."""
        block, values = _block({"table": _table(self.width), "indices": _integers(self.index_bits, 1)})
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
