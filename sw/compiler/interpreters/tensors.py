"""The level ``emb``: what PyTorch's embedding operations give, by the rules of docs/machine/numerics.md, row by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from daedal.compiler.dialects import emb
from daedal.compiler.dialects.elements import row_element
from daedal.compiler.dialects.emb_blocks import BlockListOp
from daedal.compiler.dialects.emb_score import ScoreOp, evaluate, rows_of
from daedal.compiler.interpreters.elements import rounded, shortened, unpacked, widened
from daedal.compiler.interpreters.row_memory import Rows
from daedal.errors import IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec import binary32
from daedal.hw.isa.spec.reduction import reduce as reduced

Array = NDArray[Any]


@dataclass(frozen=True)
class Bags:
    """What the two operations that pool have in common.

    Attributes
    ----------
    mode, padding, is_fused
        As in ``emb.bag``.
    width
        Elements of a row.
    indices, weights
        Flat; weights may be None.
    kind, is_away, rounds
        What rows are made of, and how they are rounded to it: as in ``emb.bag``.
    """

    mode: str
    padding: int | None
    is_fused: bool
    width: int
    indices: Array
    weights: Array | None
    kind: Attribute
    is_away: bool
    rounds: str

    def pool(self, table: Any, rows: int, start: int, end: int) -> Array:
        """The pooled row of the entries ``start`` … ``end - 1``; ``table`` gives row i for ``[i]``."""
        if not 0 <= start <= end <= len(self.indices):
            raise InvalidOffsets(f"a bag of the entries {start} to {end} is not within the {len(self.indices)} indices")
        nothing = 1.0 if self.mode == "prod" else 0.0
        total = np.full(self.width, nothing, np.float32)
        count = 0
        for entry in range(start, end):
            index = int(self.indices[entry])
            if not 0 <= index < rows:
                raise IndexOutOfRange(f"index {index} at {entry} must be from 0 to {rows - 1}")
            if index == self.padding:
                continue
            weight = None if self.weights is None else self.weights[entry]
            total = self._added(total, table[index], weight, is_first=count == 0)
            count += 1
        if self.mode != "mean" or not count:
            return total
        rounded_sum: Array = shortened(total, self.kind, away=self.is_away)
        return rounded_sum / np.float32(count)

    def pool_blocks(self, table: Any, shape: tuple[int, ...], block: int) -> Array:
        """Bags of ``shape[1]`` entries each: sums of ``block`` rows, and then their sum."""
        bags, length = shape
        totals = np.zeros((bags, self.width), np.float32)
        plain = replace(self, mode="sum")
        for bag in range(bags):
            start, end = bag * length, (bag + 1) * length
            for first in range(start, end, block):
                totals[bag] += plain.pool(table, len(table), first, min(first + block, end))
        return totals / np.float32(max(length, 1)) if self.mode == "mean" else totals

    def _added(self, total: Array, row: Array, weight: Any, *, is_first: bool) -> Array:
        if self.mode in ("max", "min"):
            is_beyond = row > total if self.mode == "max" else row < total
            return row if is_first else np.where(is_beyond, row, total)
        if self.mode == "prod":
            return total * row
        if self.is_fused:
            return binary32.fused(row, weight, total)
        if weight is not None:
            row = row * weight
            row = shortened(row, self.kind) if self.rounds in emb.ROUNDS_PRODUCTS else row
        total = total + row
        return shortened(total, self.kind) if self.rounds in emb.ROUNDS_SUMS else total


@dataclass(frozen=True)
class PackedBags(Bags):
    """The same of rows of words with a head, whose integers have ``bits`` bits."""

    bits: int = 8

    def _added(self, total: Array, row: Array, weight: Any, *, is_first: bool) -> Array:
        scale, bias, integers = unpacked(row, self.bits)
        if weight is not None:
            scale, bias = scale * np.float32(weight), bias * np.float32(weight)
        return binary32.fused(integers[: self.width], np.full(self.width, scale, np.float32), total + bias)


@dataclass(frozen=True)
class _Widened:
    """Rows of elements of this type, as f32."""

    rows: Rows
    kind: Attribute

    def __getitem__(self, row: int) -> Array:
        values: Array = widened(self.rows[row], self.kind)
        return values


class Tensors:
    """Text of ``emb``: the result of its one operation is left in ``out``; lists of tables are in ``memory``.

    Parameters
    ----------
    function
        The function.
    arrays
        Its tensors by name; those of two dimensions have two here.
    numbers
        Its other arguments by name.
    """

    def __init__(self, function: func.FuncOp, arrays: dict[str, Array], numbers: dict[str, float]) -> None:
        self._function, self._arrays, self._numbers = function, arrays, numbers
        self._handlers: dict[type[Operation], Callable[[Any], None]] = {
            emb.BagOp: self._bag,
            emb.BagListOp: self._bag_list,
            BlockListOp: self._block_list,
            emb.LookupOp: self._lookup,
            emb.LookupListOp: self._lookup_list,
            ScoreOp: self._score,
            func.ReturnOp: lambda op: None,
        }

    def run(self) -> None:
        """Every operation in its place."""
        for op in self._function.body.block.ops:
            if type(op) not in self._handlers:
                raise UnsupportedOperation(f"{op.name} cannot be interpreted among operations of emb")
            self._handlers[type(op)](op)

    def _value(self, value: SSAValue) -> Any:
        """The tensor or number that an argument stands for."""
        name = value.name_hint or ""
        table = self._arrays if isinstance(value.type, TensorType) else self._numbers
        if name not in table:
            raise UnsupportedOperation(f"{'buffer' if table is self._arrays else 'number'} {name!r} must be given")
        return table[name]

    def _bag(self, op: emb.BagOp) -> None:
        table, indices = self._value(op.table), self._value(op.indices)
        offsets = np.arange(len(indices) + 1) * indices.shape[1] if op.offsets is None else self._value(op.offsets)
        width = table.shape[1]
        if op.bits is not None and op.columns is not None:
            self._packed_bag(op, table, indices, offsets)
            return
        bags = self._bags_of(op, width, indices)
        if op.block is not None:
            self._arrays["out"] = bags.pool_blocks(table, indices.shape, op.block.value.data)
            return
        assert isinstance(op.table.type, TensorType)
        kind = op.table.type.element_type
        table = widened(table, kind)
        rows = [bags.pool(table, len(table), int(a), int(b)) for a, b in pairwise(offsets)]
        away, pooled = op.away is not None and bags.mode != "mean", np.array(rows, np.float32).reshape(-1, width)
        self._arrays["out"] = pooled if op.wide is not None else rounded(pooled, kind, away=away)

    def _packed_bag(self, op: emb.BagOp, table: Array, indices: Array, offsets: Array) -> None:
        assert op.bits is not None
        assert op.columns is not None
        width = op.columns.value.data
        bags = PackedBags(**vars(self._bags_of(op, width, indices)), bits=op.bits.value.data)
        rows = [bags.pool(table, len(table), int(a), int(b)) for a, b in pairwise(offsets)]
        self._arrays["out"] = np.array(rows, np.float32).reshape(-1, width)

    def _bags_of(self, op: emb.BagOp | emb.BagListOp, width: int, indices: Array) -> Bags:
        return Bags(
            op.mode.data,
            None if op.padding is None else op.padding.value.data,
            op.fused is not None,
            width,
            indices.reshape(-1),
            None if op.weights is None else self._value(op.weights).reshape(-1),
            op.row_element,
            op.away is not None,
            op.rounds_what,
        )

    def _bag_list(self, op: emb.BagListOp) -> None:
        entries, offsets, count = self._value(op.list), self._value(op.offsets), int(self._value(op.bags))
        width, pitch, out_pitch = (value.value.data for value in (op.width, op.pitch, op.out_pitch))
        bags = self._bags_of(op, width, self._value(op.indices))
        if op.bits is not None:
            bags = PackedBags(**vars(bags), bits=op.bits.value.data)
        memory, element, out_element = self._memory(), row_element(op.row_element), row_element(op.out_element)
        assert element is not None
        assert out_element is not None
        for entry in range(op.first.value.data, op.first.value.data + op.count.value.data):
            rows, address, out_address = (int(number) for number in entries[:, entry])
            table = _Widened(Rows(memory, address, op.row_width, pitch, element), op.row_element)
            out = Rows(memory, out_address, width, out_pitch, out_element)
            begin = entry * (count + 1)
            for bag in range(begin, begin + count):
                row = bags.pool(table, rows, int(offsets[bag]), int(offsets[bag + 1]))
                out[bag] = rounded(row, op.out_element, away=op.away is not None and bags.mode != "mean")

    def _block_list(self, op: BlockListOp) -> None:
        entries, ends, places = (self._value(value) for value in (op.list, op.ends, op.places))
        width, pitch, out_pitch = (value.value.data for value in (op.width, op.pitch, op.out_pitch))
        count, weights = int(self._value(op.blocks)), None if op.weights is None else self._value(op.weights)
        indices, is_fused = self._value(op.indices), op.fused is not None
        bags = Bags("sum", None, is_fused, width, indices, weights, op.row_element, False, "")
        memory, element = self._memory(), BINARY32
        for entry in range(op.first.value.data, op.first.value.data + op.count.value.data):
            rows, address, out_address = (int(number) for number in entries[:, entry])
            table, out = (
                Rows(memory, address, width, pitch, element),
                Rows(memory, out_address, width, out_pitch, element),
            )
            total = np.zeros(width, np.float32)
            for block in range(entry * (count + 1), entry * (count + 1) + count):
                if places[block]:
                    out[int(places[block])] = total
                    total = np.zeros(width, np.float32)
                total = total + bags.pool(table, rows, int(ends[block]), int(ends[block + 1]))

    def _memory(self) -> Array:
        if "memory" not in self._arrays:
            raise UnsupportedOperation("buffer 'memory' must be given")
        return self._arrays["memory"]

    def _lookup_list(self, op: emb.LookupListOp) -> None:
        entries, indices, ends = (self._value(value) for value in (op.list, op.indices, op.ends))
        width, pitch, out_pitch = (value.value.data for value in (op.width, op.pitch, op.out_pitch))
        element = row_element(op.row_element)
        assert element is not None
        memory = self._memory()
        for entry in range(op.first.value.data, op.first.value.data + op.count.value.data):
            rows, address, out_address = (int(number) for number in entries[:, entry])
            table = Rows(memory, address, width, pitch, element)
            out = Rows(memory, out_address, width, out_pitch, element)
            for position in range(*ends[2 * entry : 2 * entry + 2]):
                index = int(indices[position])
                if not 0 <= index < rows:
                    raise IndexOutOfRange(f"index {index} at {position} must be from 0 to {rows - 1}")
                out[position] = table[index]

    def _lookup(self, op: emb.LookupOp) -> None:
        table, indices = self._value(op.table), self._value(op.indices)
        self._check(table, indices)
        self._arrays["out"] = table[indices]

    def _score(self, op: ScoreOp) -> None:
        tables, lists = ([self._value(value) for value in values] for values in (op.tables, op.lists))
        length, reduction = int(self._value(op.length)), op.reduction.data
        for table, entries in rows_of(op.expression.data):
            self._check(tables[table], lists[entries])
        for number in range(op.outer.value.data):
            lists[number] = np.repeat(lists[number], length)

        def apply(name: str, operands: Sequence[Array]) -> Array:
            how = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs}[name]
            values: Array = how(*operands)
            return values

        row = evaluate(op.expression.data, lambda a, b: tables[a][lists[b]], np.float32, apply)
        found = reduced(VectorOp.ADD, row * row if reduction == "squares" else row)
        self._arrays["out"] = found / np.float32(op.width) if reduction == "mean" else found

    def _check(self, table: Array, indices: Array) -> None:
        for position, index in enumerate(indices):
            if not 0 <= index < len(table):
                raise IndexOutOfRange(f"index {index} at {position} must be from 0 to {len(table) - 1}")
