"""What a launch changes of a table, kept on the device as it was before, for a launch that fails."""

import math

import numpy as np
from numpy.typing import NDArray

from daedal.driver.device import Device
from daedal.driver.memory.allocator import BUFFER_ALIGNMENT, Address
from daedal.driver.tables.table_store import Table
from daedal.errors import OutOfDeviceMemory
from daedal.hw.isa.elements import LANE
from daedal.runtime.launch_arguments import Buffer

_FIRST_TAG, _TAGS = 0x0080_0000, 0x7F00_0000
"""The bits of tags: normal numbers, which no unit changes."""


class Undo:
    """The rows of a table that a launch changes, with their numbers of state, as they were before.

    Launches fill its buffers (``compiler.library.kept_updates``): row u of ``kept`` and number u of ``kept_h``, or row
    u of ``kept_m``, belong to row ``rows[u]`` of the table, if ``done[u]`` is the launch's tag.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._address: Address | None = None
        self._room = self._launches = 0
        self._sizes = (0, 0)
        """Bytes of a row, and of its state."""
        self._rows: NDArray[np.int64] = np.zeros(0, np.int64)
        self._table: Table | None = None

    def begin(self, table: Table, rows: NDArray[np.int64], state: Buffer | None) -> dict[str, Buffer]:
        """Buffers for a launch that changes these rows, and their state, by name. OutOfDeviceMemory if there is no room
        for them.
        """
        count, row_bytes = len(rows), LANE.bytes * table.dim
        state_bytes = 0 if state is None else LANE.bytes * math.prod(state.shape[1:])
        if self._address is None or count > self._room or (row_bytes, state_bytes) != self._sizes:
            self._address, self._sizes = None, (row_bytes, state_bytes)
            try:
                self._reserve(min(2 * count, table.rows))
            except OutOfDeviceMemory:
                self._reserve(count)
        self._launches += 1
        self._table, self._rows = table, rows
        kept, kept_state, done = self._places()
        return {
            "kept": Buffer(kept, (count, table.dim), (row_bytes, LANE.bytes)),
            "kept_h": Buffer(kept_state, (count,), (LANE.bytes,)),
            "kept_m": Buffer(kept_state, (count, table.dim), (row_bytes, LANE.bytes)),
            "done": Buffer(done, (count,), (LANE.bytes,)),
        }

    @property
    def tag(self) -> float:
        """The tag of the launch that was begun last: a number of f32."""
        return float(np.uint32(_FIRST_TAG + self._launches % _TAGS).view(np.float32))

    def _places(self) -> tuple[int, int, int]:
        assert self._address is not None
        first, (row_bytes, state_bytes) = int(self._address), self._sizes
        state = first + self._room * row_bytes
        return first, state, state + self._room * state_bytes

    def _reserve(self, rows: int) -> None:
        self._address = self._device.allocator.allocate(
            rows * (sum(self._sizes) + LANE.bytes), BUFFER_ALIGNMENT, what="what a step changes, as it is,"
        )
        self._room = rows
        self._device.memory.write(self._places()[2], bytes(LANE.bytes * rows))  # what was there may look like a tag

    def restore(self, state: Buffer | None) -> None:
        """Write back what the launch has changed, in the table and in the state, if it changes that."""
        table, memory, count = self._table, self._device.memory, len(self._rows)
        assert table is not None
        kept, kept_state, done = self._places()
        changed = [(kept, self._sizes[0], table.address, table.pitch)]
        if state is not None:
            changed.append((kept_state, self._sizes[1], state.address, state.strides[0]))
        tags = np.frombuffer(memory.read(done, LANE.bytes * count), np.float32)
        for source, size, target, pitch in changed:
            before = np.frombuffer(memory.read(source, count * size), np.uint8).reshape(count, size)
            for place in np.flatnonzero(tags == np.float32(self.tag)):
                memory.write(target + int(self._rows[place]) * pitch, before[place].tobytes())
