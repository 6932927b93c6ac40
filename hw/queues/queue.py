"""A typed queue that remembers how full it has been."""

from amaranth.hdl import Elaboratable, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.memory_style import DISTRIBUTED_RAM
from daedal.hw.queues.block_store import BlockStore
from daedal.hw.queues.ring_pointers import RingPointers
from daedal.hw.queues.up_down import up_down

DISTRIBUTED_DEPTH = 32
"""Queues up to this depth are in distributed memory, deeper ones in block RAM."""


class Queue(wiring.Component):
    """First-in first-out queue with occupancy and high-water mark.

    Accepts and delivers one payload per cycle at every occupancy; all outputs are registered. A payload written
    into an empty queue can be read two cycles later (three for a depth over ``DISTRIBUTED_DEPTH``, one for 2).

    Parameters
    ----------
    shape
        Shape of a payload.
    depth
        Payloads the queue can hold, at least 2.

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

    def __init__(self, shape: ShapeLike, *, depth: int) -> None:
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"Queue depth must be an integer of at least 2, not {depth!r}")
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
        self._depth = depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.storage = storage = (
            _BlockStorage(self._width, depth=self._depth)
            if self._depth > DISTRIBUTED_DEPTH
            else _DistributedStorage(self._width, depth=self._depth)
        )
        push, pop = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            self.i.ready.eq(self.level != self._depth),
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


class _DistributedStorage(wiring.Component):
    """A small memory with a register at its output; the writer makes sure that there is room.

    Members: ``payload`` is stored in cycles with ``write``; ``o`` delivers.
    """

    def __init__(self, width: int, *, depth: int) -> None:
        super().__init__({"write": In(1), "payload": In(width), "o": Out(stream.Signature(width))})
        self._depth = depth
        self._bypass = depth == 2  # too few to be busy on the way through the memory

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.memory = store = memory.Memory(
            shape=len(self.payload), depth=self._depth, init=[], attrs=DISTRIBUTED_RAM
        )
        write, read = store.write_port(), store.read_port(domain="comb")
        m.submodules.pointers = pointers = RingPointers(self._depth)
        move, past = Signal(), Signal()
        m.d.comb += [
            move.eq(~self.o.valid | self.o.ready),
            past.eq(self.write & move if self._bypass else 0),  # in a queue of two the memory is empty then
            pointers.write.eq(self.write & ~past),
            pointers.fetch.eq(pointers.available & move),
            write.en.eq(self.write),  # what goes past is written as well, and not counted: the place is free
            write.addr.eq(pointers.write_address),
            write.data.eq(self.payload),
            read.addr.eq(pointers.read_address),
        ]
        fetched = Mux(pointers.available, read.data, self.payload) if self._bypass else read.data
        with m.If(move):
            m.d.sync += [self.o.valid.eq(pointers.available | past), self.o.payload.eq(fetched)]
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
