"""The order of requests in which those to one DRAM row follow each other."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from daedal.hw.lib.ram_style import DISTRIBUTED_RAM
from daedal.hw.queues.ring_pointers import RingPointers


class RowGroups(wiring.Component):
    """Gathers what has the same key while it waits; such a group leaves as a whole.

    It says in which of ``depth`` places something is to be put and from which to take the next one; the user has the
    memory. Groups leave in the order of their first ones, and a group's own in the order in which they came. A group
    takes no more once its turn has come: what comes then begins a new group behind the others. So nothing waits for
    ever: there are fewer than ``depth`` groups before it, of at most ``depth`` each.

    Puts and takes one per cycle at every occupancy. What is put can be taken in the next cycle. There is no room in the
    first cycles after a reset, as many as there are places and keys (the next power of two), while memories are swept.

    A group is a list of places, linked by ``following``. A ring has the key and the first place of each group
    that waits; ``newest`` has the last place of each key's group. A key has an open group, one that takes more, if the
    bit beside ``newest`` is not the key's bit in ``closed``: the one is written by what is put, the other when a
    group's turn has come.

    Parameters
    ----------
    depth
        How many it can hold, at least 2.
    keys
        Number of keys, a power of two, at least 2.

    Members
    -------
    put : ``In(1)``, key : ``In(range(keys))``
        Something with this key is put into ``place``; only if there is ``room``.
    place : ``Out(range(depth))``, room : ``Out(1)``
    available : ``Out(1)``, next_place : ``Out(range(depth))``
        Something waits; that in this place is the next one.
    take : ``In(1)``
        It is taken, if there is one.
    free : ``In(1)``
        The place that was taken last may be used again.

    Raises
    ------
    ValueError
        If ``depth`` is not an integer of at least 2, or ``keys`` is no power of two of at least 2.
    """

    def __init__(self, *, depth: int, keys: int) -> None:
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"RowGroups depth must be an integer of at least 2, not {depth!r}")
        if not isinstance(keys, int) or keys < 2 or keys & (keys - 1):
            raise ValueError(f"RowGroups keys must be a power of two of at least 2, not {keys!r}")
        super().__init__(
            {
                "put": In(1),
                "key": In(range(keys)),
                "place": Out(range(depth)),
                "room": Out(1),
                "available": Out(1),
                "next_place": Out(range(depth)),
                "take": In(1),
                "free": In(1),
            }
        )
        self._depth, self._keys = depth, keys

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        first, at, end = (Signal(range(self._depth), name=n) for n in ("first", "at", "end"))
        turn, begin, inside = Signal(), Signal(), Signal()
        self._sweep = Signal(max(ceil_log2(self._depth), exact_log2(self._keys)) + 1)
        self._swept = self._sweep[-1]
        m.d.sync += self._sweep.eq(self._sweep + ~self._swept)
        next_key, waiting = self._groups(m, first, self.put & begin, turn)
        self._places(m, at)
        following, last = self._lists(m, at, begin, next_key, turn)
        m.d.comb += [
            inside.eq(at != end),
            self.available.eq(inside | waiting),
            turn.eq(self.take & waiting & ~inside),
            self.next_place.eq(Mux(inside, following, first)),
        ]
        with m.If(turn):
            m.d.sync += end.eq(last)
        with m.If(turn | (self.take & inside)):
            m.d.sync += at.eq(self.next_place)
        return m

    def _places(self, m: Module, at: Signal) -> None:
        """A free place for what comes: the one that has been free for longest. The sweep makes all of them free."""
        new = ~self._swept & (self._sweep < self._depth)
        place, free = self._ring(m, "freed", Mux(self._swept, at, self._sweep)[: len(at)], self._depth,
                                 put=self.free | new, take=self.put)  # fmt: skip
        m.d.comb += [self.place.eq(place), self.room.eq(free & self._swept)]

    def _groups(self, m: Module, first: Signal, begin: Value, turn: Signal) -> tuple[Value, Value]:
        """The groups that wait: key of the one whose turn is next, its ``first`` place, and whether there is one.

        No more than one for each key: it takes what comes until its turn.
        """
        entry, waiting = self._ring(m, "order", Cat(self.place, self.key), min(self._depth, self._keys),
                                    put=begin, take=turn)  # fmt: skip
        m.d.comb += first.eq(entry[: len(first)])
        return entry[len(first) :], waiting

    def _lists(self, m: Module, at: Signal, begin: Signal, next_key: Value, turn: Signal) -> tuple[Value, Value]:
        """Links what is put to its group, or has it ``begin`` one.

        Returns the place that follows ``at``, and the last one of the group whose turn is next.
        """
        width = len(self.place)
        m.submodules.newest = newest = self._memory(width + 1, self._keys)
        m.submodules.closed = closed = self._memory(1, self._keys)
        m.submodules.following = following = self._memory(width, self._depth)
        of_key, of_next, after = (m_.read_port(domain="comb") for m_ in (newest, newest, following))
        closed_key = closed.read_port(domain="comb")
        put, close, link = (m_.write_port() for m_ in (newest, closed, following))
        ends, turning = Signal(), Signal.like(self.key)
        m.d.comb += [
            ends.eq(turn & (next_key == self.key)),
            begin.eq((of_key.data[width] == closed_key.data) | ends),
            turning.eq(Mux(self._swept, next_key, self._sweep)),
            of_key.addr.eq(self.key),
            closed_key.addr.eq(self.key),
            of_next.addr.eq(turning),
            after.addr.eq(at),
            put.addr.eq(self.key),
            put.data.eq(Cat(self.place, closed_key.data ^ ~ends)),  # what ``closed`` is not from the next cycle on
            put.en.eq(self.put),
            close.addr.eq(turning),
            close.data.eq(of_next.data[width]),
            close.en.eq(turn | ~self._swept),
            link.addr.eq(of_key.data),
            link.data.eq(self.place),
            link.en.eq(self.put & ~begin),
        ]
        return after.data, of_next.data[:width]

    def _ring(self, m: Module, name: str, payload: Value, depth: int, *, put: Value,
              take: Value) -> tuple[Value, Value]:  # fmt: skip
        """The oldest of what was ``put`` and not taken, and whether there is something to ``take``."""
        m.submodules[name] = store = self._memory(len(payload), depth)
        m.submodules[f"{name}_pointers"] = pointers = RingPointers(depth)
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
