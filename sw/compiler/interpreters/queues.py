"""The level ``dlc``: the access program fills queues, the execute program empties them, and memory is bytes."""

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.scalars import is_float
from daedal.compiler.dialects import dlc, slc, slcv
from daedal.compiler.dialects.elements import row_element
from daedal.compiler.interpreters.loops import Level
from daedal.errors import IndexOutOfRange, UnsupportedOperation
from daedal.hw.isa.elements import LANE, ROW_GRANULE

GAP = 64
"""Buffers begin at multiples of this, with as much between them."""


class Queues(Level):
    """Text of ``dlc``: the access program runs to its end first, then callbacks in the order of their tokens."""

    def __init__(self, function: func.FuncOp, arrays: dict[str, NDArray[Any]], numbers: dict[str, float]) -> None:
        super().__init__(function, arrays, numbers)
        self.memory, self.bases = _placed(arrays)
        self.tokens: deque[int] = deque()
        self.scalars: deque[Any] = deque()
        self.rows: dict[str, deque[Any]] = defaultdict(deque)
        self.places: deque[tuple[int, int]] = deque()
        self.handlers |= {
            func.ReturnOp: lambda op: None,
            dlc.ArgumentOp: self._argument,
            dlc.AccessOp: lambda op: self.block(op.body.block),
            dlc.ExecuteOp: self._execute,
            dlc.LoadOp: self._load,
            dlc.PushScalarOp: lambda op: self.scalars.append(self.values[op.value]),
            dlc.PushTokenOp: self._push_token,
            dlc.PushStoreOp: self._push_store,
            dlc.FetchOp: self._fetch,
            dlc.ScalarOp: self._scalar,
            dlc.KeepOp: self._keep,
            dlc.PopOp: self._pop,
            dlc.PopScalarOp: self._pop_scalar,
            dlc.PushOp: self._push,
        }

    def run(self) -> None:
        """Run both programs; copy memory back to the arrays. Queues must be empty then."""
        self.block(self.function.body.block)
        left = [self.tokens, self.scalars, self.places, *self.rows.values()]
        if any(left):
            raise UnsupportedOperation("something is left in a queue: the two programs do not fit each other")
        for name, array in self.arrays.items():
            base = self.bases[name]
            array[...] = self.memory[base : base + array.nbytes].view(array.dtype).reshape(array.shape)

    def event_of(self, op: Operation) -> str | None:
        """Events stand for themselves."""
        return op.event.data if isinstance(op, dlc.EventOp) else None

    def event(self, op: Operation) -> None:
        """Fill queues."""
        assert isinstance(op, dlc.EventOp)
        if self.holds(op.condition):
            self.block(op.body.block)

    # ------------------------------------------------------------------ access

    def _argument(self, op: dlc.ArgumentOp) -> None:
        name, kind = op.buffer.data, op.kind.data
        if kind == "value":
            number = self.named(name, self.numbers, "number")
            is_float = isinstance(number, float | np.floating)
            self.values[op.result] = int(np.float32(number).view(np.uint32)) if is_float else int(number)
            return
        array = self.named(name, self.arrays, "buffer")
        dimension = 0 if op.dimension is None else op.dimension.value.data
        self.values[op.result] = {
            "base": self.bases[name],
            "end": self.bases[name] + array.nbytes,
            "size": array.shape[dimension],
            "stride": array.strides[dimension],
        }[kind]

    def _bytes(self, address: int, size: int) -> NDArray[np.uint8]:
        if not 0 <= address <= len(self.memory) - size:
            raise IndexOutOfRange(f"address {address} is outside of memory")
        return self.memory[address : address + size]

    def _load(self, op: dlc.LoadOp) -> None:
        size = op.bytes.value.data
        address = self.values[op.base] + self.values[op.index] * size
        data = self._bytes(address, size).tobytes()
        if op.result.type == slc.FLOAT_STREAM:
            self.values[op.result] = np.frombuffer(data, LANE.dtype)[0]
        else:
            self.values[op.result] = int.from_bytes(data, "little", signed=op.signed is not None)

    def _address(self, op: dlc.FetchOp | dlc.PushStoreOp) -> int:
        base, index, pitch = (self.values[value] for value in (op.base, op.index, op.pitch))
        return int(base + index * pitch)

    def _fetch(self, op: dlc.FetchOp) -> None:
        self.rows[op.queue.data].append(self._bytes(self._address(op), op.bytes.value.data).copy())
        if op.queue.data == "store":
            self._stream()

    def _push_token(self, op: dlc.PushTokenOp) -> None:
        self.tokens.append(op.token.value.data + (0 if op.offset is None else int(self.values[op.offset])))

    def _push_store(self, op: dlc.PushStoreOp) -> None:
        place = (self._address(op), op.bytes.value.data)
        if op.stream is None:
            self.places.append(place)
        else:
            self.rows["place"].append(place)
            self._stream()

    def _stream(self) -> None:
        """Rows fetched to the store unit, each to the next place."""
        while self.rows["store"] and self.rows["place"]:
            address, size = self.rows["place"].popleft()
            row = self.rows["store"].popleft()
            self._write(address, size, row[:size] if len(row) - size < ROW_GRANULE else row)

    def _write(self, address: int, size: int, data: NDArray[np.uint8]) -> None:
        if len(data) != size:
            raise UnsupportedOperation(f"a row of {len(data)} bytes goes to a place for {size}")
        self._bytes(address, size)[:] = data

    # ------------------------------------------------------------------ execute

    def _execute(self, op: dlc.ExecuteOp) -> None:
        callbacks: Mapping[int, dlc.CallbackOp] = {
            one.token.value.data: one for one in op.body.block.ops if isinstance(one, dlc.CallbackOp)
        }
        for declared in op.body.block.ops:
            if not isinstance(declared, dlc.CallbackOp):
                self.operation(declared)
        while self.tokens:
            self.block(callbacks[self.tokens.popleft()].body.block)

    def _next(self, queue: deque[Any], name: str) -> Any:
        if not queue:
            raise UnsupportedOperation(f"queue {name} is empty: the two programs do not fit each other")
        return queue.popleft()

    def _scalar(self, op: dlc.ScalarOp) -> None:
        self.values[op.result] = np.float32(0)

    def _keep(self, op: dlc.KeepOp) -> None:
        self.values[op.scalar] = self.values[op.value]

    def _pop(self, op: dlc.PopOp) -> None:
        row = self._next(self.rows[op.queue.data], op.queue.data)
        width, elements = slcv.width_of(op.result), row.view(_dtype(op.result))
        if len(row) != slcv.fetched_bytes(op.result):
            raise UnsupportedOperation(f"a row of {len(elements)} elements is popped as {width}")
        self.values[op.result] = elements[:width]

    def _pop_scalar(self, op: dlc.PopScalarOp) -> None:
        value: Any = self._next(self.scalars, "scalar")
        kind = op.result.type
        if is_float(op.result) and isinstance(value, int):  # an f32 that the launch fixes: its bits
            value = np.uint32(value % (1 << 32)).view(np.float32)
        elif isinstance(kind, IntegerType):
            value = (int(value) + (1 << 31)) % (1 << 32) - (1 << 31)
        self.values[op.result] = value

    def _push(self, op: dlc.PushOp) -> None:
        address, size = self._next(self.places, "store address")
        self._write(address, size, np.atleast_1d(np.asarray(self.values[op.row], _dtype(op.row))).view(np.uint8))


def _dtype(row: SSAValue) -> str:
    """The type of a row's elements, or of a single one, as they are in memory."""
    element = row_element(slcv.element_type(row))
    assert element is not None
    return element.array


def _placed(arrays: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.uint8], dict[str, int]]:
    """Memory with all arrays in it, and where they begin; one called ``memory`` keeps its addresses."""
    bases, at = {"memory": 0}, GAP + (arrays["memory"].nbytes if "memory" in arrays else 0) // GAP * GAP + GAP
    for name, array in arrays.items():
        if name not in bases:
            bases[name] = at
            at += (array.nbytes + 2 * GAP - 1) // GAP * GAP
    memory = np.zeros(at, np.uint8)
    for name, array in arrays.items():
        memory[bases[name] : bases[name] + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memory, bases
