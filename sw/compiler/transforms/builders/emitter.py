"""Writes plain loops: constants, loads, stores and ``scf.for`` with names that a reader recognises."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, MemRefType, StringAttr, f32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from daedal.compiler.bounds import NO_CHECKS
from daedal.compiler.dialects import check, narrow
from daedal.compiler.dialects.elements import LANE, row_element


class Emitter:
    """Appends operations to a block, and to those of the loops opened in it.

    ``bounds``: what indices outside their table do, one of ``bounds.BOUNDS``.
    """

    def __init__(self, block: Block, bounds: str = "fatal") -> None:
        self._builder = Builder(InsertPoint.at_end(block))
        self._bounds = bounds

    def insert(self, op: Operation, name: str | None = None) -> SSAValue:
        """Append ``op``; its first result, named ``name``."""
        self._builder.insert(op)
        op.results[0].name_hint = name
        return op.results[0]

    def append(self, op: Operation) -> None:
        """Append an operation without results."""
        self._builder.insert(op)

    def index(self, value: int, name: str | None = None) -> SSAValue:
        """A constant index."""
        op = arith.ConstantOp(IntegerAttr(value, IndexType()))
        return self.insert(op, name or f"c{value}".replace("-", "m"))

    def f32(self, value: float, name: str) -> SSAValue:
        """A constant f32."""
        return self.insert(arith.ConstantOp(FloatAttr(value, f32)), name)

    def size(self, buffer: SSAValue, dimension: SSAValue, name: str) -> SSAValue:
        """The size of a memref in a dimension."""
        return self.insert(memref.DimOp(buffer, dimension), name)

    def load(self, buffer: SSAValue, indices: Sequence[SSAValue], name: str) -> SSAValue:
        """An element of a memref; integers as an index."""
        value = self.insert(memref.LoadOp.get(buffer, indices), name)
        if row_element(value.type) is not None:
            return value
        value.name_hint = f"{name}_loaded"
        return self.insert(arith.IndexCastOp(value, IndexType()), name)

    def store(self, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        """Set an element of a memref."""
        self.append(memref.StoreOp.get(value, buffer, indices))

    def load_f32(self, buffer: SSAValue, indices: Sequence[SSAValue], name: str) -> SSAValue:
        """An element of a memref of rows, widened if it is no f32."""
        value = self.load(buffer, indices, name)
        return value if value.type == LANE else self.insert(narrow.WidenOp(value), f"{name}_wide")

    def store_f32(self, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue], *, away: bool = False) -> None:
        """Set an element of a memref of rows, rounded if it is no f32; ``away`` as of ``narrow.round``."""
        assert isinstance(buffer.type, MemRefType)
        element = buffer.type.element_type
        rounded = value if element == LANE else self.insert(narrow.RoundOp(value, element, away=away), "rounded")
        self.store(rounded, buffer, indices)

    def shorten(self, value: SSAValue, element: Attribute, name: str, *, away: bool = False) -> SSAValue:
        """What an f32 is rounded to, as f32; itself if ``element`` is f32."""
        if element == LANE:
            return value
        rounded = self.insert(narrow.RoundOp(value, element, away=away), f"{name}_rounded")
        return self.insert(narrow.WidenOp(rounded), name)

    def check(self, kind: str, value: SSAValue, limit: SSAValue) -> None:
        """What is to happen unless ``0 <= value < limit``: bad offsets stop the launch, whatever indices do."""
        if self._bounds != NO_CHECKS:
            is_fatal = kind != "index" or self._bounds == "fatal"
            self.append(check.BoundsOp(kind, value, limit, None if is_fatal else StringAttr(self._bounds)))

    def as_f32(self, value: SSAValue, name: str) -> SSAValue:
        """An index as an f32."""
        wide = self.insert(arith.IndexCastOp(value, i64), f"{name}_wide")
        return self.insert(arith.SIToFPOp(wide, f32), name)

    def row_buffer(self, width: int, name: str) -> SSAValue:
        """A local row of ``width`` f32."""
        op = memref.AllocaOp.get(f32, shape=[width])
        return self.insert(op, name)

    @contextmanager
    def loop(
        self,
        lower: SSAValue,
        upper: SSAValue,
        step: SSAValue,
        name: str,
        carried: Sequence[SSAValue] = (),
        carried_name: str | None = None,
    ) -> Iterator[scf.ForOp]:
        """Append a loop; what is appended in the ``with`` block goes into its body.

        With ``carried`` values the body must end with ``yield_``.
        """
        block = Block(arg_types=[IndexType(), *(value.type for value in carried)])
        block.args[0].name_hint = name
        for argument in block.args[1:]:
            argument.name_hint = carried_name
        op = scf.ForOp(lower, upper, step, carried, block)
        self.append(op)
        with self.inside(block):
            yield op
            if not carried:
                self.append(scf.YieldOp())

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """What is appended in the ``with`` block goes to the end of ``block``."""
        outer, self._builder = self._builder, Builder(InsertPoint.at_end(block))
        yield
        self._builder = outer
