"""Byte addresses of elements and rows, as sums of streams and of numbers that a launch fixes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import BlockArgument, SSAValue

from daedal.compiler.analysis.uniforms import Uniform, Uniforms
from daedal.compiler.dialects import place, slc
from daedal.compiler.dialects.elements import bytes_of


@dataclass
class Linear:
    """``offset`` plus every stream times its factor; streams are those of ``slcv``."""

    offset: Uniform = 0
    terms: dict[SSAValue, Uniform] = field(default_factory=dict)


def element_bytes(memref: SSAValue) -> int:
    """Bytes of an element of a buffer."""
    assert isinstance(memref.type, MemRefType)
    return bytes_of(memref.type.element_type)


class Addresses:
    """Analyses indices.

    Parameters
    ----------
    uniforms
        Where new numbers are made.
    uniform
        Gives what a value of the function's top level became.
    """

    def __init__(self, uniforms: Uniforms, uniform: Callable[[SSAValue], Uniform]) -> None:
        self._uniforms, self._uniform = uniforms, uniform

    def linear(self, value: SSAValue) -> Linear:
        """An index as a sum; sums with at least one fixed side are taken apart, all else is a term."""
        value = outside(value)
        owner = value.owner
        if not isinstance(value.type, slc.StreamType):
            if isinstance(owner, arith.AddiOp) and isinstance(owner.parent_op(), slc.CallbackOp):
                return self._sum(self.linear(owner.lhs), self.linear(owner.rhs))
            return Linear(self._uniform(value))
        if isinstance(owner, slc.AluOp) and owner.kind.data == "add":
            a, b = owner.a, owner.b
            if not (isinstance(a.type, slc.StreamType) and isinstance(b.type, slc.StreamType)):
                return self._sum(self.linear(a), self.linear(b))
        return Linear(0, {value: 1})

    def _sum(self, a: Linear, b: Linear) -> Linear:
        terms = dict(a.terms)
        for stream, factor in b.terms.items():
            terms[stream] = self._uniforms.add(terms.get(stream, 0), factor)
        return Linear(self._uniforms.add(a.offset, b.offset), terms)

    def _scaled(self, a: Linear, factor: Uniform) -> Linear:
        mul = self._uniforms.mul
        return Linear(mul(a.offset, factor), {stream: mul(old, factor) for stream, old in a.terms.items()})

    def address(self, memref: SSAValue, indices: list[SSAValue]) -> Linear:
        """The byte address of an element."""
        if isinstance(memref.owner, place.MemrefOp):
            total = self.linear(memref.owner.address)
        else:
            total = Linear(self._uniforms.argument("base", buffer_name(memref)))
        for dimension, index in enumerate(indices):
            total = self._sum(total, self._scaled(self.linear(index), self.stride(memref, dimension)))
        return total

    def stride(self, memref: SSAValue, dimension: int) -> Uniform:
        """Bytes from one index of a dimension to the next."""
        assert isinstance(memref.type, MemRefType)
        strides = memref.type.get_strides()
        static = None if strides is None else strides[dimension]
        if static is not None:
            return static * element_bytes(memref)
        return self._uniforms.argument("stride", buffer_name(memref), dimension)


def outside(value: SSAValue) -> SSAValue:
    """The stream that gives an argument of a callback; any other value itself."""
    if isinstance(value, BlockArgument) and isinstance(value.type, IndexType):
        callback = value.block.parent_op()
        if isinstance(callback, slc.CallbackOp):
            return callback.source(value)
    return value


def buffer_name(memref: SSAValue) -> str:
    """The name of a function's buffer: that of its argument in the text, or its position."""
    if isinstance(memref, BlockArgument):
        return memref.name_hint or f"arg{memref.index}"
    return memref.name_hint or "a buffer at an address"
