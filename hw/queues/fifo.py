"""A typed queue that remembers how full it has been."""

from amaranth.hdl import Elaboratable, Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.lib.ram_style import DISTRIBUTED_RAM
from daedal.hw.queues.block_store import BlockStore
from daedal.hw.queues.ring_pointers import RingPointers
from daedal.hw.queues.skid_buffer import SkidBuffer
from daedal.hw.queues.up_down_counter import up_down

DISTRIBUTED_DEPTH = 32
"""Queues up to this depth are in distributed memory, deeper ones in block RAM."""


class Fifo(wiring.Component):
    """First-in first-out queue with occupancy and high-water mark.

    Accepts and delivers one payload per cycle at every occupancy; all outputs are registered. A payload written
    into an empty queue can be read two cycles later (three in block RAM, where those deeper than ``DISTRIBUTED_DEPTH``
    are, one for a depth of 2).

    Parameters
    ----------
    shape
        Shape of a payload.
    depth
        Payloads the queue can hold, at least 2.
    in_block
        In block RAM, whatever its depth: for wide payloads that may come a cycle later.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        Payloads to store.
    o : ``Out(stream.Signature(shape))``
        The same payloads, in the same order.
    level : ``Out(range(depth + 1))``
        Payloads held in this cycle.
    mark : ``Out(range(depth + 1))``
        Largest ``level`` since reset or ``clear``.
    clear : ``In(1)``
        Sets ``mark`` to the present level.

    Raises
    ------
    ValueError
        If ``depth`` is not an integer of at least 2.
    """

    def __init__(self, shape: ShapeLike, *, depth: int, in_block: bool = False) -> None:
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"Fifo depth must be an integer of at least 2, not {depth!r}")
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
                "mark": Out(range(depth + 1)),
                "clear": In(1),
            }
        )
        self._width = Shape.cast(shape).width
        self._depth, self._in_block = depth, in_block

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        storage: _Pair | _DistributedStorage | _BlockStorage
        if self._in_block or self._depth > DISTRIBUTED_DEPTH:
            storage = _BlockStorage(self._width, depth=self._depth)
        elif self._depth == 2:
            storage = _Pair(self._width)
        else:
            storage = _DistributedStorage(self._width, depth=self._depth)
        m.submodules.storage = storage
        push, pop = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            # Of a power of two only the full level has the highest bit.
            self.i.ready.eq(self.level != self._depth if self._depth & (self._depth - 1) else ~self.level[-1]),
            storage.write.eq(push),
            storage.payload.eq(Value.cast(self.i.payload)),
            Value.cast(self.o.payload).eq(storage.o.payload),
            self.o.valid.eq(storage.o.valid),
            storage.o.ready.eq(self.o.ready),
        ]
        up_down(m, self.level, up=push, down=pop)
        with m.If(self.clear | (self.level > self.mark)):
            m.d.sync += self.mark.eq(self.level)
        return m


class _Pair(wiring.Component):
    """Two registers, half the logic of a memory of two entries. The writer makes sure that there is room.

    Members: ``payload`` is stored in cycles with ``write``; ``o`` delivers.
    """

    def __init__(self, width: int) -> None:
        super().__init__({"write": In(1), "payload": In(width), "o": Out(stream.Signature(width))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.skid = skid = SkidBuffer(len(self.payload))
        m.d.comb += [skid.i.valid.eq(self.write), skid.i.payload.eq(self.payload)]
        connect(m, skid.o, flipped(self.o))
        return m


class _DistributedStorage(wiring.Component):
    """The same in a small memory with a register at its output."""

    def __init__(self, width: int, *, depth: int) -> None:
        super().__init__({"write": In(1), "payload": In(width), "o": Out(stream.Signature(width))})
        self._depth = depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.memory = store = memory.Memory(
            shape=len(self.payload), depth=self._depth, init=[], attrs=DISTRIBUTED_RAM
        )
        write, read = store.write_port(), store.read_port(domain="comb")
        m.submodules.pointers = pointers = RingPointers(self._depth)
        move = Signal()
        m.d.comb += [
            move.eq(~self.o.valid | self.o.ready),
            pointers.write.eq(self.write),
            pointers.fetch.eq(pointers.available & move),
            write.en.eq(self.write),
            write.addr.eq(pointers.write_address),
            write.data.eq(self.payload),
            read.addr.eq(pointers.read_address),
        ]
        with m.If(move):
            m.d.sync += [self.o.valid.eq(pointers.available), self.o.payload.eq(read.data)]
        return m


class _BlockStorage(wiring.Component):
    """The same in block RAM."""

    def __init__(self, width: int, *, depth: int) -> None:
        super().__init__({"write": In(1), "payload": In(width), "o": Out(stream.Signature(width))})
        self._depth = depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.store = store = BlockStore(len(self.payload), depth=self._depth)
        m.submodules.pointers = pointers = RingPointers(self._depth)
        m.d.comb += [
            pointers.write.eq(self.write),
            pointers.fetch.eq(store.fetch),
            store.write.eq(self.write),
            store.write_address.eq(pointers.write_address),
            store.payload.eq(self.payload),
            store.available.eq(pointers.available),
            store.read_address.eq(pointers.read_address),
        ]
        connect(m, store.o, flipped(self.o))
        return m
