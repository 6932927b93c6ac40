"""The sequential loads of a level."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import LoadReturns, assign, load_request_layout
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined.iteration_bus import TURN_FIELDS, IterationBus
from daedal.hw.access_unit.levels.pipelined.iteration_skid import IterationSkid
from daedal.hw.access_unit.loads.element_shift import WORD_BYTES, word_of
from daedal.hw.access_unit.loads.line_buffer import LineBuffer
from daedal.hw.access_unit.loads.line_prefetcher import LinePrefetcher
from daedal.hw.config.core import Config
from daedal.hw.isa.words import Source


class SequentialLoads(wiring.Component):
    """Looks the words with an iteration's elements up in the buffers of all slots; waits until all are there.

    One iteration per cycle while the lines are there; latency 2 cycles. Slots 2k and 2k+1 share the lines
    they read if they read the same array (constant bases less than a line apart, the lower one first; equal limit
    and size): then each line is read from memory once.

    Members
    -------
    words : ``In(LevelWords(config, level))``
    running : ``In(1)``
        A nest runs.
    i, addresses : ``In(TurnBus(config, level))``, ``In(address_bits).array(slots)``
        Iterations and the addresses of their elements; or a hint, which has its lines read, and goes no further.
    ready : ``Out(1)``
        ``i`` is taken; depends on registers only.
    free : ``In(1)``
        The stages that follow can take an iteration.
    take : ``Out(1)``
        An iteration enters these stages: its elements are there.
    o : ``Out(TurnBus(config, level))``
        Iterations.
    found, offsets : ``Out(64).array(slots)``, ``Out(3).array(slots)``
        The word that each element is in, and its byte there.
    requests : ``Out(stream of load_request_layout).array(slots)``
    returns : ``In(LoadReturns(config))``
    busy : ``Out(1)``
        Lines are on their way.
    """

    def __init__(self, config: Config, level: int, first_unit: int) -> None:
        slots = config.sequential_loads[level]
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "running": In(1),
                "i": In(IterationBus(config, level)),
                "addresses": In(config.address_bits).array(slots),
                "ready": Out(1),
                "free": In(1),
                "take": Out(1),
                "o": Out(IterationBus(config, level)),
                "found": Out(8 * WORD_BYTES).array(slots),
                "offsets": Out(exact_log2(WORD_BYTES)).array(slots),
                "requests": Out(stream.Signature(load_request_layout(config))).array(slots),
                "returns": In(LoadReturns(config)),
                "busy": Out(1),
            }
        )
        self._config, self._level, self._slots, self._first_unit = config, level, slots, first_unit

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        readers = [LineBuffer(self._config) for _ in range(self._slots)]
        fetchers = [LinePrefetcher(self._config, self._first_unit + k) for k in range(self._slots)]
        ready, leaves = Signal(), Signal()
        waiting = IterationBus(self._config, self._level).create(path=("waiting",))
        m.d.comb += [
            leaves.eq(waiting.valid & (self.free | waiting.hint) & Cat(*(reader.hit for reader in readers)).all()),
            self.take.eq(leaves & ~waiting.hint),
            ready.eq(~waiting.valid | leaves),
        ]
        bus = self._spare(m, ready) if self._slots else self._straight(m, ready)
        with m.If(ready):
            m.d.sync += waiting.valid.eq(bus.valid)
            with m.If(bus.valid):
                m.d.sync += assign(waiting, bus, TURN_FIELDS)
        m.d.sync += self.o.valid.eq(self.take)
        with m.If(self.take):
            m.d.sync += assign(self.o, waiting, TURN_FIELDS)
        for slot, (reader, fetcher) in enumerate(zip(readers, fetchers, strict=True)):
            m.submodules[f"reader{slot}"], m.submodules[f"fetcher{slot}"] = reader, fetcher
            m.d.comb += [reader.ready.eq(ready), reader.take.eq(leaves)]
            self._attach(m, slot, bus, reader, fetcher)
            self._extract(m, slot, reader, bus.addresses[slot])
            if slot % 2 == 0:
                self._join(m, slot, readers, fetchers)
        m.d.comb += self.busy.eq(Cat(*(fetcher.busy for fetcher in fetchers)).any())
        return m

    def _spare(self, m: Module, ready: Signal) -> Any:
        """Iterations and their addresses, taken by ``ready``, which comes late."""
        m.submodules.spare = spare = IterationSkid(self._config, self._level)
        m.d.comb += [
            spare.i.valid.eq(self.i.valid),
            *assign(spare.i, self.i, TURN_FIELDS),
            *assign(spare.i, self, ("addresses",)),
            self.ready.eq(spare.ready),
            spare.take.eq(ready),
        ]
        return spare.o

    def _straight(self, m: Module, ready: Signal) -> Any:
        """Iterations without loads: nothing about them is known late."""
        m.d.comb += self.ready.eq(ready)
        return self.i

    def _attach(self, m: Module, slot: int, bus: Any, reader: LineBuffer, fetcher: LinePrefetcher) -> None:
        """What does not depend on the other slots; iterations come on ``bus``."""
        load, begins = getattr(self.words, f"load{slot}"), Signal(name=f"begins{slot}")
        base, limit = (getattr(self.words, f"load{slot}_{name}") for name in ("base", "limit"))
        # A program whose lower bound is not 0 may have a base that is before its array, and not in memory: then it is
        # behind the limit, or in the mapping class before. What begins elsewhere than at its base may be no array.
        place, lower = self._config.place_bits, self.words.control.lower
        m.d.sync += begins.eq(
            (load.base == Source.CONST)
            & ((lower != Source.CONST) | (self.words.lower == 0))
            & (base[:place] < limit[:place])
            & (base[place:] == limit[place:])
        )
        connect(m, fetcher.request, flipped(self.requests[slot]))
        connect(m, flipped(self.returns), fetcher.returns)
        m.d.comb += [
            reader.running.eq(self.running),
            reader.entering.eq(bus.valid & load.enable & (bus.work | (bus.hint & begins))),
            reader.target.eq(bus.addresses[slot][exact_log2(self._config.bus_bytes) :]),
            reader.data.eq(self.returns.data),
            fetcher.running.eq(self.running),
            fetcher.limit.eq(getattr(self.words, f"load{slot}_limit")),
        ]

    def _join(self, m: Module, slot: int, readers: list[LineBuffer], fetchers: list[LinePrefetcher]) -> None:
        """Restarts of slots ``slot`` and, if there is one, ``slot + 1``, and which fetcher fills which buffer."""
        reader, fetcher = readers[slot], fetchers[slot]
        shared, restart = Signal(name=f"shared{slot}"), Signal(name=f"restart{slot}")
        m.d.comb += [
            fetcher.both.eq(shared),
            fetcher.read_line.eq(reader.read_line),
            *assign(reader.progress, fetcher.progress, fetcher.progress.signature.members),
        ]
        for part in (reader, fetcher):
            m.d.comb += part.restart.eq(restart)
        m.d.comb += [restart.eq(reader.miss), reader.start.eq(reader.wanted), fetcher.target.eq(reader.wanted)]
        if slot + 1 == self._slots:
            return
        other, other_fetcher = readers[slot + 1], fetchers[slot + 1]
        # That the other one cannot go on is said a cycle late: nothing is taken meanwhile.
        other_missed = Signal(name=f"missed{slot + 1}")
        m.d.sync += [shared.eq(self._same_array(slot)), other_missed.eq(shared & other.miss & ~restart)]
        m.d.comb += [
            restart.eq(reader.miss | other_missed),
            other.restart.eq(Mux(shared, restart, other.miss)),
            other.start.eq(Mux(shared, reader.wanted, other.wanted)),
            other_fetcher.restart.eq(other.miss & ~shared),
            other_fetcher.target.eq(other.wanted),
            other_fetcher.read_line.eq(other.read_line),
        ]
        for name in other.progress.signature.members:
            own, first = (getattr(f.progress, name) for f in (other_fetcher, fetcher))
            m.d.comb += Value.cast(getattr(other.progress, name)).eq(Mux(shared, first, own))

    def _same_array(self, slot: int) -> Value:
        words = self.words
        first, second = getattr(words, f"load{slot}"), getattr(words, f"load{slot + 1}")
        apart = (getattr(words, f"load{slot + 1}_base") - getattr(words, f"load{slot}_base"))[
            : self._config.address_bits
        ]
        return (
            (first.enable & second.enable)
            & (first.size == second.size)
            & (first.base == Source.CONST)
            & (second.base == Source.CONST)
            & (getattr(words, f"load{slot}_limit") == getattr(words, f"load{slot + 1}_limit"))
            & (apart[exact_log2(self._config.bus_bytes) :] == 0)
        )

    def _extract(self, m: Module, slot: int, reader: LineBuffer, address: Value) -> None:
        """The word, a cycle after the iteration was taken: then its line is the reader's present one."""
        bits = exact_log2(self._config.bus_bytes)
        offset, taken = Signal(bits, name=f"offset{slot}"), Signal(bits, name=f"taken_offset{slot}")
        with m.If(reader.ready & reader.entering):
            m.d.sync += offset.eq(address)
        m.d.sync += taken.eq(offset)
        m.d.comb += [self.found[slot].eq(word_of(reader.present, taken)), self.offsets[slot].eq(taken)]
