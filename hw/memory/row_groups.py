"""A queue in which requests to one DRAM row follow each other."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.memory_style import BLOCK_RAM, DISTRIBUTED_RAM
from daedal.hw.queues.queue import DISTRIBUTED_DEPTH
from daedal.hw.queues.ring_pointers import RingPointers
from daedal.hw.queues.up_down import up_down


class RowGroups(wiring.Component):
    """Gathers payloads with the same key while they wait; such a group leaves as a whole.

    Groups leave in the order of their first payloads, and payloads of a group in the order in which they came. A group
    takes no more once its turn has come: what comes then begins a new group behind the others. So nothing waits for
    ever: there are fewer than ``depth`` groups before it, of at most ``depth`` payloads each.

    Takes and gives one payload per cycle at every occupancy. What comes into an empty queue can be read two cycles
    later.

    A group is a list of places in memory, linked by ``following``. A ring has the key and the first place of each group
    that waits; ``newest`` has the last place of each key's group.

    Parameters
    ----------
    shape
        Shape of a payload.
    depth
        Payloads that it can hold, at least 2.
    keys
        Number of keys, a power of two, at least 2.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        Payloads.
    key : ``In(range(keys))``
        Key of ``i.payload``.
    o : ``Out(stream.Signature(shape))``
        The same payloads.

    Raises
    ------
    ValueError
        If ``depth`` is not an integer of at least 2, or ``keys`` is no power of two of at least 2.
    """

    def __init__(self, shape: ShapeLike, *, depth: int, keys: int) -> None:
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"RowGroups depth must be an integer of at least 2, not {depth!r}")
        if not isinstance(keys, int) or keys < 2 or keys & (keys - 1):
            raise ValueError(f"RowGroups keys must be a power of two of at least 2, not {keys!r}")
        super().__init__({"i": In(stream.Signature(shape)), "key": In(range(keys)), "o": Out(stream.Signature(shape))})
        self._width, self._depth, self._keys = Shape.cast(shape).width, depth, keys

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        place, first, at, end = (Signal(range(self._depth), name=n) for n in ("place", "first", "at", "end"))
        push, pop, turn, begin = Signal(), Signal(), Signal(), Signal()
        next_key, waiting = self._groups(m, place, first, push & begin, turn)
        m.d.comb += [push.eq(self.i.valid & self.i.ready), pop.eq(self.o.valid & self.o.ready)]
        self._places(m, place, at, push, pop)
        following, last = self._lists(m, place, at, push, begin, next_key, turn)
        inside, move, ahead = Signal(), Signal(), Signal.like(at)
        m.d.comb += [
            inside.eq(self.o.valid & (at != end)),
            turn.eq(waiting & (~self.o.valid | (self.o.ready & ~inside))),
            move.eq(turn | (pop & inside)),
            ahead.eq(Mux(inside, following, first)),
        ]
        with m.If(turn):
            m.d.sync += end.eq(last)
        with m.If(move):
            m.d.sync += [self.o.valid.eq(1), at.eq(ahead)]
        with m.Elif(pop):
            m.d.sync += self.o.valid.eq(0)
        self._payloads(m, place, push, ahead, move)
        return m

    def _places(self, m: Module, place: Signal, at: Signal, push: Value, pop: Value) -> None:
        """A free place for what comes: one that was never used, or the one that has been free for longest."""
        level, unused = Signal(range(self._depth + 1)), Signal(range(self._depth + 1))
        up_down(m, level, up=push, down=pop)
        fresh = unused != self._depth
        freed, _ = self._ring(m, "freed", at, pop, push & ~fresh)
        m.d.comb += [self.i.ready.eq(level != self._depth), place.eq(Mux(fresh, unused, freed))]
        with m.If(push & fresh):
            m.d.sync += unused.eq(unused + 1)

    def _groups(self, m: Module, place: Signal, first: Signal, begin: Value, turn: Signal) -> tuple[Value, Value]:
        """The groups that wait: key of the one whose turn is next, its ``first`` place, and whether there is one."""
        entry, waiting = self._ring(m, "order", Cat(place, self.key), begin, turn)
        m.d.comb += first.eq(entry[: len(place)])
        return entry[len(place) :], waiting

    def _lists(self, m: Module, place: Signal, at: Signal, push: Signal, begin: Signal, next_key: Value,
               turn: Signal) -> tuple[Value, Value]:  # fmt: skip
        """Links ``place`` to its group, or has it ``begin`` one.

        Returns the place that follows ``at``, and the last one of the group whose turn is next.
        """
        open_ = Signal(self._keys)
        m.submodules.newest = newest = self._memory(len(place), self._keys)
        m.submodules.following = following = self._memory(len(place), self._depth)
        of_key, of_next, after = (m_.read_port(domain="comb") for m_ in (newest, newest, following))
        put, link = newest.write_port(), following.write_port()
        m.d.comb += [
            begin.eq(~open_.bit_select(self.key, 1) | (turn & (next_key == self.key))),
            of_key.addr.eq(self.key),
            of_next.addr.eq(next_key),
            after.addr.eq(at),
            put.addr.eq(self.key),
            put.data.eq(place),
            put.en.eq(push),
            link.addr.eq(of_key.data),
            link.data.eq(place),
            link.en.eq(push & ~begin),
        ]
        with m.If(turn):
            m.d.sync += open_.bit_select(next_key, 1).eq(0)
        with m.If(push):
            m.d.sync += open_.bit_select(self.key, 1).eq(1)
        return after.data, of_next.data

    def _payloads(self, m: Module, place: Signal, push: Signal, ahead: Signal, move: Signal) -> None:
        attrs = BLOCK_RAM if self._depth > DISTRIBUTED_DEPTH else DISTRIBUTED_RAM
        m.submodules.payloads = payloads = memory.Memory(shape=self._width, depth=self._depth, init=[], attrs=attrs)
        write, read = payloads.write_port(), payloads.read_port()
        m.d.comb += [
            write.addr.eq(place),
            write.data.eq(Value.cast(self.i.payload)),
            write.en.eq(push),
            read.addr.eq(ahead),
            read.en.eq(move),
            Value.cast(self.o.payload).eq(read.data),
        ]

    def _ring(self, m: Module, name: str, payload: Value, put: Value, take: Value) -> tuple[Value, Value]:
        """The oldest of what was ``put`` and not taken, and whether there is something to ``take``."""
        m.submodules[name] = store = self._memory(len(payload), self._depth)
        m.submodules[f"{name}_pointers"] = pointers = RingPointers(self._depth)
        write, read = store.write_port(), store.read_port(domain="comb")
        m.d.comb += [
            pointers.write.eq(put),
            pointers.fetch.eq(take),
            write.addr.eq(pointers.write_address),
            write.data.eq(payload),
            write.en.eq(put),
            read.addr.eq(pointers.read_address),
        ]
        return read.data, pointers.available

    @staticmethod
    def _memory(width: int, depth: int) -> Any:
        return memory.Memory(shape=width, depth=depth, init=[], attrs=DISTRIBUTED_RAM)
