"""Writes functions of ``emb`` that pool bags over several tables, found through a list in device memory."""

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, ModuleOp, TensorType, f32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from daedal.compiler.dialects import emb
from daedal.compiler.frontends.requests.emb_builder import FUNCTION


@dataclass(frozen=True)
class Kind:
    """What tables must have in common to be walked by one nest of loops; widths and pitches in elements."""

    mode: str
    width: int
    pitch: int
    out_pitch: int
    index_bits: int
    is_weighted: bool
    is_fused: bool
    padding: int | None


@dataclass(frozen=True)
class BagList:
    """A pooling over lists: each kind with the number of entries that it has, in the order of the list."""

    groups: tuple[tuple[Kind, int], ...]

    @property
    def entries(self) -> int:
        """Entries of the list."""
        return sum(count for _, count in self.groups)

    def build(self) -> ModuleOp:
        """The function."""
        arguments: dict[str, Attribute] = {
            "list": TensorType(i64, [emb.LIST_NUMBERS, self.entries]),
            "offsets": TensorType(i64, [DYNAMIC_INDEX]),
            "bags": IndexType(),
        }
        for kind, _ in self.groups:
            arguments[f"indices{kind.index_bits}"] = TensorType(IntegerType(kind.index_bits), [DYNAMIC_INDEX])
            if kind.is_weighted:
                arguments[f"weights{kind.index_bits}"] = TensorType(f32, [DYNAMIC_INDEX])
        block = Block(arg_types=list(arguments.values()))
        for argument, name in zip(block.args, arguments, strict=True):
            argument.name_hint = name
        values: dict[str, SSAValue] = dict(zip(arguments, block.args, strict=True))
        first = 0
        for kind, count in self.groups:
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
