"""A typed queue that remembers how full it has been."""

from amaranth.hdl import Const, Elaboratable, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

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
        m.submodules.storage = storage = _Storage(self._width, depth=self._depth)
        push, pop = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            self.i.ready.eq(self.level != self._depth),
            storage.write.eq(push),
            storage.payload.eq(Value.cast(self.i.payload)),
            Value.cast(self.o.payload).eq(storage.o.payload),
            self.o.valid.eq(storage.o.valid),
            storage.o.ready.eq(self.o.ready),
        ]
        m.d.sync += self.level.eq(self.level + push - pop)
        with m.If(self.clear | (self.level > self.mark)):
            m.d.sync += self.mark.eq(self.level)
        return m


class _Storage(wiring.Component):
    """The memory of a queue and the registers at its output; the writer makes sure that there is room.

    Members: ``payload`` is stored in cycles with ``write``; ``o`` delivers.
    """

    def __init__(self, width: int, *, depth: int) -> None:
        super().__init__({"write": In(1), "payload": In(width), "o": Out(stream.Signature(width))})
        self._depth = depth
        self._block = depth > DISTRIBUTED_DEPTH
        self._bypass = depth == 2  # too few to be busy on the way through the memory

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        width = len(self.payload)
        attributes = {"ram_style": "block" if self._block else "distributed"}
        m.submodules.memory = store = memory.Memory(shape=width, depth=self._depth, init=[], attrs=attributes)
        write, read = store.write_port(), store.read_port(domain="sync" if self._block else "comb")
        unread = Signal(range(self._depth + 1))
        fetch = Signal()
        m.d.comb += write.data.eq(self.payload)
        m.d.sync += unread.eq(unread + write.en - fetch)
        self._count(m, write.addr, write.en)
        self._count(m, read.addr, fetch)

        available, move, fetched = unread != 0, ~self.o.valid | self.o.ready, read.data
        past = (self.write & move & ~available) if self._bypass else Const(0)
        m.d.comb += write.en.eq(self.write & ~past)
        if self._block:
            available = self._block_stage(m, read, fetch, available, move)
        else:
            m.d.comb += fetch.eq(available & move)
        if self._bypass:
            fetched = Mux(available, read.data, self.payload)
        with m.If(move):
            m.d.sync += [self.o.valid.eq(available | past), self.o.payload.eq(fetched)]
        return m

    def _block_stage(
        self, m: Module, read: memory.ReadPort, fetch: Signal, available: Value, move: Value
    ) -> Signal:
        """A block RAM's output holds one payload more, read ahead; return whether it does."""
        fetched = Signal()
        m.d.comb += [read.en.eq(~fetched | move), fetch.eq(available & read.en)]
        with m.If(read.en):
            m.d.sync += fetched.eq(available)
        return fetched

    def _count(self, m: Module, address: Value, step: Value) -> None:
        """Advance an address, modulo the depth."""
        pointer = Signal(range(self._depth))
        m.d.comb += address.eq(pointer)
        with m.If(step):
            m.d.sync += pointer.eq(Mux(pointer == self._depth - 1, 0, pointer + 1))
