"""The levels ``scf``, ``slc`` and ``slcv``: loops, and callbacks at their events, on named arrays."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import Float32Type, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from daedal.compiler.analysis.reductions import reductions_of
from daedal.compiler.analysis.row_loops import OCTETS
from daedal.compiler.dialects import check, place, slc, slcv
from daedal.compiler.dialects.elements import row_element
from daedal.compiler.dialects.narrow_packed import PACKED_BITS, AffineOp, ElementOp, HeadOp, UnpackOp
from daedal.compiler.interpreters.arithmetic import CALLS, OPERATIONS, as_f32, reduction
from daedal.compiler.interpreters.elements import unpacked
from daedal.compiler.interpreters.row_memory import Rows
from daedal.errors import IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.hw.isa.instructions import OCTET, PARTIAL_SUMS
from daedal.hw.isa.spec import binary32
from daedal.hw.isa.spec.reduction import combine, combine_neighbours


@dataclass
class Accumulator:
    """A row that stays; ``set`` since it was made or cleared."""

    row: NDArray[np.float32]
    is_set: bool = False


class Level(ABC):
    """What all levels have in common: values by SSA name, and one operation after the other.

    Parameters
    ----------
    function
        The function.
    arrays
        Its buffers by name; what it writes is written there.
    numbers
        Its other arguments by name.
    """

    def __init__(self, function: func.FuncOp, arrays: dict[str, NDArray[Any]], numbers: dict[str, float]) -> None:
        self.function, self.arrays, self.numbers = function, arrays, numbers
        self.values: dict[SSAValue, Any] = {}
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            slc.ForOp: self.loop,
            slc.CountOp: self.count,
            slc.FirstOp: self.first,
            slc.CheckOp: self.check_stream,
            slcv.AccumulatorOp: self.accumulator,
            slcv.GetOp: self.get,
            slcv.SetOp: self.set,
            UnpackOp: self.unpack,
            AffineOp: self.affine,
        }
        self.counted: dict[Operation, int] = {}

    @abstractmethod
    def run(self) -> None:
        """Run the function."""

    def named(self, name: str, table: Mapping[str, Any], what: str) -> Any:
        """The buffer or number called ``name``."""
        if name not in table:
            raise UnsupportedOperation(f"{what} {name!r} must be given")
        return table[name]

    def block(self, block: Block) -> None:
        """Every operation in its place."""
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        """One operation."""
        handler = self.handlers.get(type(op))
        if handler is not None:
            handler(op)
        elif op.name in OPERATIONS:
            operands = [self.values[value] for value in op.operands]
            self.values[op.results[0]] = OPERATIONS[op.name](op, *operands)
        else:
            raise UnsupportedOperation(f"{op.name} cannot be interpreted")

    def unpack(self, op: UnpackOp) -> None:
        """Scale, bias and integers of a row of words."""
        found = unpacked(self.values[op.words], op.bits.value.data)
        self.values.update(zip(op.results, found, strict=True))

    def affine(self, op: AffineOp) -> None:
        """The sum with a row of words."""
        scale, bias, row = unpacked(self.values[op.words], op.bits.value.data)
        weight = np.float32(1) if op.weight is None else self.values[op.weight]
        with np.errstate(all="ignore"):
            scale, bias = np.float32(scale * weight), np.float32(bias * weight)
            added = self.values[op.addend] + bias
            self.values[op.result] = binary32.fused(row, np.full_like(row, scale), added)

    # ------------------------------------------------------------------ slc

    def loop(self, op: slc.ForOp) -> None:
        """Begin events, the iterations, end events."""
        lower, upper, step = (self.values[value] for value in (op.lower, op.upper, op.step))
        if upper < lower:
            raise InvalidOffsets(f"the upper bound {upper} of %{op.induction.name_hint} is below the lower one {lower}")
        inside = list(op.body.block.ops)
        for inner in inside:
            if isinstance(inner, slc.CountOp | slc.FirstOp):
                self.counted[inner] = 0
                self.values[inner.result] = 0
        for inner in inside:
            if self.event_of(inner) == "begin":
                self.event(inner)
        for number in range(lower, upper, step):
            self.values[op.induction] = number
            for inner in inside:
                if self.event_of(inner) in (None, "iteration"):
                    self.event(inner) if self.event_of(inner) else self.operation(inner)
        for inner in inside:
            if self.event_of(inner) == "end":
                self.event(inner)

    @abstractmethod
    def event_of(self, op: Operation) -> str | None:
        """The event that an operation belongs to."""

    @abstractmethod
    def event(self, op: Operation) -> None:
        """What happens there."""

    def holds(self, condition: SSAValue | None) -> bool:
        """Whether something under ``condition`` happens."""
        return condition is None or bool(self.values[condition])

    def count(self, op: slc.CountOp) -> None:
        """Iterations so far whose condition held."""
        self.counted[op] += self.holds(op.condition)
        self.values[op.result] = self.counted[op]

    def first(self, op: slc.FirstOp) -> None:
        """Whether no earlier iteration's condition held."""
        self.values[op.result] = self.counted[op] == 0
        self.counted[op] += self.holds(op.condition)

    def check_stream(self, op: slc.CheckOp) -> None:
        """Stop, or 0 in the value's place."""
        self.checked(op.value, self.values[op.limit], op.kind.data, op.mode)

    def checked(self, value: SSAValue, limit: int, kind: str, mode: Any) -> None:
        """The same for both forms of a check."""
        found = self.values[value]
        if 0 <= found < limit:
            return
        if mode is not None and mode.data != "fatal":
            while isinstance(value.owner, arith.IndexCastOp | arith.ExtSIOp):
                self.values[value] = 0
                value = value.owner.operands[0]
            self.values[value] = 0
            return
        error = IndexOutOfRange if kind == "index" else InvalidOffsets
        raise error(f"%{value.name_hint} is {found}, and must be from 0 to {limit - 1}")

    # ------------------------------------------------------------------ slcv

    def accumulator(self, op: slcv.AccumulatorOp) -> None:
        """An accumulator, all +0.0."""
        self.values[op.result] = Accumulator(np.zeros(slcv.width_of(op.result), np.float32))

    def get(self, op: slcv.GetOp) -> None:
        """Its first elements; for an operation that asks for it, None if it was not set."""
        here: Accumulator = self.values[op.accumulator]
        row: Any = here.row[: slcv.width_of(op.result)].copy()
        asks = [use.operation for use in op.result.uses]
        if not here.is_set and any(getattr(ask, "first", None) is not None for ask in asks):
            row = None
        self.values[op.result] = row
        if op.clear is not None:
            here.row[:], here.is_set = 0, False

    def set(self, op: slcv.SetOp) -> None:
        """Its first elements change."""
        here: Accumulator = self.values[op.accumulator]
        row = self.values[op.row]
        here.row[: len(row)] = row
        here.is_set = True


class Loops(Level):
    """Text of ``scf``, ``slc`` or ``slcv``."""

    def __init__(self, function: func.FuncOp, arrays: dict[str, NDArray[Any]], numbers: dict[str, float]) -> None:
        super().__init__(function, arrays, numbers)
        self.handlers |= {
            func.ReturnOp: lambda op: None,
            func.CallOp: self._call,
            scf.ForOp: self._for,
            scf.IfOp: self._if,
            scf.YieldOp: lambda op: None,
            memref.LoadOp: self._load,
            memref.StoreOp: self._store,
            place.MemrefOp: self._placed,
            HeadOp: self._head,
            ElementOp: self._element,
            check.BoundsOp: lambda op: self.checked(op.value, self.values[op.limit], op.kind.data, op.mode),
            slc.LoadOp: self._load,
            slcv.FetchOp: self._fetch,
            slcv.StoreOp: self._store_row,
        }

    def run(self) -> None:
        """Bind the arguments and run the body."""
        for argument in self.function.body.block.args:
            name = argument.name_hint or ""
            if isinstance(argument.type, MemRefType):
                self.values[argument] = self.named(name, self.arrays, "buffer")
            else:
                number = self.named(name, self.numbers, "number")
                self.values[argument] = np.float32(number) if isinstance(argument.type, Float32Type) else int(number)
        self.block(self.function.body.block)

    def event_of(self, op: Operation) -> str | None:
        """Callbacks stand for their event."""
        return op.event.data if isinstance(op, slc.CallbackOp) else None

    def event(self, op: Operation) -> None:
        """Run a callback."""
        assert isinstance(op, slc.CallbackOp)
        if self.holds(op.condition):
            for argument, value in zip(op.body.block.args, op.inputs, strict=True):
                self.values[argument] = self.values[value]
            self.block(op.body.block)

    def _call(self, op: func.CallOp) -> None:
        self.values[op.res[0]] = as_f32(CALLS[op.callee.root_reference.data](self.values[op.arguments[0]]))

    # ------------------------------------------------------------------ memory

    def _placed(self, op: place.MemrefOp) -> None:
        kind = op.result.type
        assert isinstance(kind, MemRefType)
        pitch = (kind.get_strides() or ())[0]
        assert pitch is not None
        memory = self.named("memory", self.arrays, "buffer")
        element = row_element(kind.element_type)
        assert element is not None
        self.values[op.result] = Rows(memory, int(self.values[op.address]), kind.get_shape()[1], pitch, element)

    def _place(self, array: SSAValue, indices: Sequence[SSAValue]) -> tuple[NDArray[Any], tuple[int, ...]]:
        found, at = self.values[array], tuple(self.values[index] for index in indices)
        return (found.elements, (found.place(*at),)) if isinstance(found, Rows) else (found, at)

    def _load(self, op: memref.LoadOp | slc.LoadOp) -> None:
        """A single f32 may be loaded from outside its buffer if nobody uses it: a NaN, which shows if somebody does."""
        array, place = self._place(op.memref, op.indices)
        if array.dtype == np.float32 and not _is_within(array, place):
            self.values[op.results[0]] = np.float32(np.nan)
            return
        self._within(array, place)
        loaded = array[place]
        self.values[op.results[0]] = loaded if array.dtype.kind == "f" else int(loaded)

    def _head(self, op: HeadOp) -> None:
        scale, bias, _ = unpacked(self._words(op.table, op.index), PACKED_BITS[0])
        self.values[op.scale], self.values[op.bias] = scale, bias

    def _element(self, op: ElementOp) -> None:
        row = unpacked(self._words(op.table, op.index), op.bits.value.data)[2]
        self._within(row, (self.values[op.column],))
        self.values[op.result] = row[self.values[op.column]]

    def _words(self, table: SSAValue, index: SSAValue) -> NDArray[np.float32]:
        """A row of words, with its head."""
        found = self.values[table]
        if not isinstance(found, Rows):
            self._within(found, (self.values[index], 0))
        row: NDArray[np.float32] = found[self.values[index]]
        return row

    def _store(self, op: memref.StoreOp) -> None:
        array, place = self._place(op.memref, op.indices)
        self._within(array, place)
        array[place] = self.values[op.value]

    def _within(self, array: NDArray[Any], place: tuple[int, ...]) -> None:
        if not _is_within(array, place):
            raise IndexOutOfRange(f"index {place} is outside of a buffer of shape {array.shape}")

    def _fetch(self, op: slcv.FetchOp) -> None:
        array, place = self._place(op.memref, op.indices)
        self._within(array, place)
        row = array[place[:-1]][place[-1] : place[-1] + slcv.width_of(op.result)]
        self.values[op.result] = row.copy()

    def _store_row(self, op: slcv.StoreOp) -> None:
        array, place = self._place(op.memref, op.indices)
        self._within(array, place)
        row = np.atleast_1d(self.values[op.row])
        array[place[:-1]][place[-1] : place[-1] + len(row)] = row

    # ------------------------------------------------------------------ scf

    def _for(self, op: scf.ForOp) -> None:
        lower, upper, step = (self.values[value] for value in (op.lb, op.ub, op.step))
        carried = [self.values[value] for value in op.iter_args]
        if "daedal.reduce" in op.attributes:
            carried = self._reduce(op, range(lower, upper, step), carried)
        else:
            for number in range(lower, upper, step):
                carried = self._iteration(op, number, carried)
        self.values.update(zip(op.results, carried, strict=True))

    def _iteration(self, op: scf.ForOp, number: int, carried: list[Any]) -> list[Any]:
        """One iteration; what it carries on."""
        body = op.body.block
        self.values.update(zip(body.args, [number, *carried], strict=True))
        self.block(body)
        return self._yielded(body)

    def _reduce(self, op: scf.ForOp, numbers: range, initial: list[Any]) -> list[Any]:
        """A loop that is a reduction: element i goes to partial result i mod 16, or 8."""
        reductions, octets = reductions_of(op), OCTETS in op.attributes
        how = [reduction(one.kind) for one in reductions]
        partial = [[np.float32(one.neutral) for one in how] for _ in range(OCTET if octets else PARTIAL_SUMS)]
        for position, number in enumerate(numbers):
            part = position % len(partial)
            partial[part] = self._iteration(op, number, partial[part])
        totals = []
        for n, (one, start) in enumerate(zip(reductions, initial, strict=True)):
            into_one = combine_neighbours if octets else combine
            total = into_one(how[n], np.array([part[n] for part in partial], np.float32))
            totals.append(as_f32(total if one.is_neutral else how[n].combine(total, total, start)))
        return totals

    def _if(self, op: scf.IfOp) -> None:
        block = (op.true_region if self.values[op.cond] else op.false_region).first_block
        if block is not None:
            self.block(block)
            self.values.update(zip(op.results, self._yielded(block), strict=True))

    def _yielded(self, block: Block) -> list[Any]:
        end = block.last_op
        return [self.values[value] for value in end.operands] if isinstance(end, scf.YieldOp) else []


def _is_within(array: NDArray[Any], place: tuple[int, ...]) -> bool:
    return all(0 <= index < size for index, size in zip(place, array.shape, strict=True))
