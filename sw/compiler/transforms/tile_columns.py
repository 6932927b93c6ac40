"""Pass ``tile-columns``: work on rows longer than a vector register is done in tiles of columns.

The nest is put into a loop over the full tiles; a copy of it, after it, does what is left over. Where the
machine has no level for that loop there is a copy for every tile. A row that is only copied needs no register
and stays whole, unless the option ``copies`` says that it goes through one; but the machine cannot copy any length at
once, so rows longer than the option ``longest`` are copied in tiles of that.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from daedal.compiler.analysis.row_loops import loop_name
from daedal.compiler.dialects import slc, slcv, slcv_scalars
from daedal.compiler.dialects.elements import bytes_of
from daedal.compiler.dialects.narrow_packed import UnpackOp
from daedal.driver.memory.layout import row_step
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.elements import BINARY32, ROW_GRANULE
from daedal.hw.isa.words import SIZE_BITS

LONGEST_COPY = (1 << (SIZE_BITS - 1)) // BINARY32.bytes
"""Elements of the longest row that is copied at once: half of what the machine cannot, so that tiles begin at lines."""


def is_copy(fetch: slcv.FetchOp) -> bool:
    """Whether all that happens to a fetched row is to be stored."""
    users = [use.operation for use in fetch.result.uses]
    return len(users) == 1 and isinstance(users[0], slcv.StoreOp) and users[0].parent is fetch.parent


def _widths(nest: slc.ForOp, *, copies: bool) -> set[int]:
    return {
        slcv.width_of(result)
        for op in nest.walk()
        for result in op.results
        if isinstance(result.type, VectorType) and (copies or not (isinstance(op, slcv.FetchOp) and is_copy(op)))
    }


def _shared(nest: slc.ForOp) -> list[SSAValue]:
    """The accumulators of a nest that another nest uses as well."""
    own = list(nest.walk())
    used = {op.accumulator for op in own if isinstance(op, slcv.GetOp | slcv.SetOp)}
    return [value for value in used if any(all(use.operation is not op for op in own) for use in value.uses)]


def _constant(value: int, before: Operation) -> SSAValue:
    op = arith.ConstantOp(IntegerAttr(value, IndexType()))
    op.result.name_hint = f"c{value}"
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.result


class _Tiling:
    """Makes the tiled copies of one nest, whose rows have ``width`` elements."""

    def __init__(self, nest: slc.ForOp, width: int, elements: int) -> None:
        self._nest, self._width, self._elements = nest, width, elements
        self._accumulators: dict[tuple[SSAValue, int], SSAValue] = {}

    def run(self, *, has_level: bool) -> None:
        full, tail = divmod(self._width, self._elements)
        if full > 1 and has_level:
            self._place(self._loop(self._copy(self._elements), full))
        else:
            for tile in range(full):
                self._place_at(self._copy(self._elements), tile)
        if tail:
            self._place_at(self._copy(tail), full)
        Rewriter.erase_op(self._nest)

    def _place_at(self, nest: slc.ForOp, tile: int) -> None:
        first = _constant(tile * self._elements, self._nest) if tile else None
        self._place(nest)
        if first is not None:
            self._move_columns(nest, first)

    def _place(self, nest: slc.ForOp) -> None:
        assert self._nest.parent is not None
        self._nest.parent.insert_op_before(nest, self._nest)

    def _copy(self, width: int) -> slc.ForOp:
        """A copy of the nest for rows of ``width`` elements, with accumulators of its own."""
        known: dict[SSAValue, SSAValue] = {}
        for op in self._nest.walk():
            if isinstance(op, slcv.GetOp | slcv.SetOp) and op.accumulator not in known:
                known[op.accumulator] = self._accumulator(op.accumulator, width)
        copy = self._nest.clone(known)
        for op in copy.walk():
            for result in op.results:
                if isinstance(result.type, VectorType):
                    Rewriter.replace_value_with_new_type(result, slcv.row_type(width, result.type.element_type))
        return copy

    def _accumulator(self, old: SSAValue, width: int) -> SSAValue:
        """The accumulator of tiles of ``width``; tiles follow one another, so all share it."""
        if (old, width) not in self._accumulators:
            op = slcv.AccumulatorOp(width)
            op.result.name_hint = old.name_hint
            assert self._nest.parent is not None
            self._nest.parent.insert_op_before(op, self._nest)
            self._accumulators[old, width] = op.result
        return self._accumulators[old, width]

    def _loop(self, nest: slc.ForOp, full: int) -> slc.ForOp:
        zero, step = _constant(0, self._nest), _constant(self._elements, self._nest)
        tiles = slc.ForOp(zero, _constant(full * self._elements, self._nest), step, name="tile")
        tiles.body.block.add_op(nest)
        self._move_columns(nest, tiles.induction)
        return tiles

    def _move_columns(self, nest: slc.ForOp, first: SSAValue) -> None:
        """Let all rows start ``first`` columns further on."""
        for callback in [op for op in nest.walk() if isinstance(op, slc.CallbackOp)]:
            accesses = [op for op in callback.body.block.ops if _is_of_row(op)]
            if not accesses:
                continue
            block, inside = callback.body.block, first
            if isinstance(first.type, slc.StreamType):
                inside = block.insert_arg(IndexType(), len(block.args))
                inside.name_hint = first.name_hint
                _add_input(callback, first)
            for op in accesses:
                assert isinstance(op, slcv.FetchOp | slcv.StoreOp)
                moved = arith.AddiOp(op.indices[-1], inside)
                block.insert_op_before(moved, op)
                op.operands[len(op.operands) - 1] = moved.result


def _is_of_row(op: Operation) -> bool:
    """Whether a row is fetched or stored; a single f32 is stored at the same place, and the same, for each tile."""
    return isinstance(op, slcv.FetchOp) or (isinstance(op, slcv.StoreOp) and isinstance(op.row.type, VectorType))


def _loop_of(op: Operation) -> str:
    parent = op.parent_op()
    while not isinstance(parent, slc.ForOp):
        assert parent is not None
        parent = parent.parent_op()
    return loop_name(parent)


def _add_input(callback: slc.CallbackOp, stream: SSAValue) -> None:
    """Replace a callback by one with another input, for which its region has an argument already."""
    inputs = [*callback.inputs, stream]
    region = callback.detach_region(callback.body)
    new = slc.CallbackOp(callback.event.data, callback.condition, inputs, region)
    assert callback.parent is not None
    callback.parent.insert_op_before(new, callback)
    Rewriter.erase_op(callback)


@dataclass(frozen=True)
class TileColumns(ModulePass):
    """See the module.

    Attributes
    ----------
    elements
        The longest row that a vector register holds.
    levels
        How many loops a nest can have.
    copies
        Whether rows that are only copied need a register too.
    longest
        The longest row that is copied at once.
    line, whole
        Bytes of a line of memory, and of the longest rows that may begin inside of one, as ``row_step`` has them: tiles
        of these are no longer than their step. Without ``line`` all rows begin at lines.
    """

    name = "tile-columns"

    elements: int = 256
    levels: int = 4
    copies: bool = False
    longest: int = LONGEST_COPY
    line: int = 0
    whole: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Tile the nests that need it."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                for nest in [inner for inner in function.body.block.ops if isinstance(inner, slc.ForOp)]:
                    self._tile(nest)

    def _tile(self, nest: slc.ForOp) -> None:
        widths = _widths(nest, copies=self.copies)
        if max(widths, default=0) <= self.elements:
            self._tile_copies(nest)
            return
        for op in nest.walk():
            if isinstance(op, UnpackOp):
                raise UnsupportedOperation(
                    f"{_loop_of(op)}: rows with a head of {slcv.width_of(op.row)} elements must be popped by one "
                    f"instruction; here it takes {self.elements} at most: split the columns into several tables, each "
                    "with the scales and biases"
                )
            if isinstance(op, slcv_scalars.ReduceOp) and slcv.width_of(op.rows[0]) > self.elements:
                raise UnsupportedOperation(
                    f"{_loop_of(op)}: rows of {slcv.width_of(op.rows[0])} elements are reduced, which one instruction "
                    f"must do; here it takes {self.elements} at most"
                )
        for value in _shared(nest):
            raise UnsupportedOperation(
                f"{loop_name(nest)}: local row %{value.name_hint or '?'} of {slcv.width_of(value)} elements is used in "
                f"another nest too; rows of more than {self.elements} elements must be stored in between"
            )
        if len(widths) > 1:
            raise UnsupportedOperation(
                f"{loop_name(nest)}: rows longer than {self.elements} elements must all have the same "
                "length, "
                f"not {sorted(widths)}"
            )
        copies = [op for op in nest.walk() if isinstance(op, slcv.FetchOp) and is_copy(op)]
        if any(slcv.width_of(op.result) not in widths for op in copies):
            raise UnsupportedOperation(
                f"{loop_name(nest)}: rows that are copied must be as long as the others, {sorted(widths)} elements"
            )
        self._run(nest, widths.pop(), self._tile_elements(nest))

    def _tile_elements(self, nest: slc.ForOp) -> int:
        """Elements of a tile, which must be fetched in no more lines than it fills, and in whole granules."""
        rows = [
            op.result for op in nest.walk() if isinstance(op, slcv.FetchOp) and isinstance(op.result.type, VectorType)
        ]
        sizes = [(slcv.row_bytes(row), bytes_of(slcv.element_type(row))) for row in rows]
        steps = [(row_step(size, self.line, self.whole), each) for size, each in sizes if self.line]
        least = max((-(-ROW_GRANULE // each) for _, each in sizes), default=1)
        elements = min([max(least, self.elements), *(step // each for step, each in steps if step < self.line)])
        if elements < least:
            raise UnsupportedOperation(
                f"{loop_name(nest)}: tiles must have {least} elements at least, but rows that have no padding allow "
                f"{elements}"
            )
        return elements

    def _tile_copies(self, nest: slc.ForOp) -> None:
        widths = _widths(nest, copies=True)
        if max(widths, default=0) <= self.longest:
            return
        if len(widths) > 1:
            raise UnsupportedOperation(
                f"{loop_name(nest)}: rows longer than {self.longest} elements that are copied must all have the same "
                f"length, not {sorted(widths)}: copy them in loops of their own"
            )
        self._run(nest, widths.pop(), self.longest)

    def _run(self, nest: slc.ForOp, width: int, elements: int) -> None:
        depth = sum(isinstance(op, slc.ForOp) for op in nest.walk())
        _Tiling(nest, width, elements).run(has_level=depth < self.levels)
