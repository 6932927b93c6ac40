"""Reads a stretch of memory in order and hands it out as 64-bit words."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.interfaces import Client, ReturnBus, read_request_layout
from daedal.hw.isa.program import WORD_BYTES
from daedal.hw.memory.address_map import burst_mask

BURSTS = 4
"""Bursts in flight; their beats may return in any order between bursts."""


class WordReader(wiring.Component):
    """Streams words from ``address`` on.

    Bursts of up to MAX_BURST lines go out as long as ``lines`` allows and one of four burst buffers is
    free; a burst ends at a multiple of MAX_BURST lines or a granule of the address's mapping class. One word per
    cycle once the lines are there; a class whose granules are shorter than such bursts has one burst in flight.

    Members
    -------
    start : ``In(1)``, ``address`` : ``In(address_bits)``
        Begin anew at ``address``, a multiple of the line; only when ``idle``.
    lines : ``In(16)``
        Lines to read in all; may change while reading, but a burst once cut short by it is not gone on with:
        until the final number is known it must end at the end of a burst.
    words : ``Out(stream.Signature(64))``
    stop : ``In(1)``
        Hand out and ask for nothing more until ``start``; what is in flight is dropped as it comes.
    idle : ``Out(1)``
        Nothing in flight, and no request waits.
    requests, returns : as in the access unit, for ``Client.LOADER``
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "address": In(config.address_bits),
                "lines": In(16),
                "stop": In(1),
                "idle": Out(1),
                "words": Out(stream.Signature(8 * WORD_BYTES)),
                "requests": Out(stream.Signature(read_request_layout(config))),
                "returns": In(ReturnBus(config)),
            }
        )

    @property
    def burst_lines(self) -> int:
        """Lines of a whole burst."""
        return min(MAX_BURST, self._config.page_bytes // self._config.bus_bytes)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        size = self.burst_lines
        m.submodules.buffer = buffer = Memory(shape=8 * self._config.bus_bytes, depth=BURSTS * size, init=[])
        self._filled = [Signal(range(size + 1), name=f"filled{k}") for k in range(BURSTS)]
        """For each burst buffer, where in it the next line goes."""
        self._asked = Signal(16)
        """Lines asked for."""
        self._taken = Signal(range(2 * BURSTS * size))
        """Lines read from the buffer, whose places are free again; as many bits as say how many wait there."""
        self._flying = Signal(range(BURSTS * size + 1))
        """Lines asked for that have not come, without those of a ``_fresh`` request."""
        self._fresh = Signal()
        """The request in the register came there in the cycle before."""
        self._running = Signal()
        self._offset = Signal(range(size))
        """Line of the first burst buffer at which reading starts: bursts are aligned."""
        self._ask(m)
        self._fill(m, buffer.write_port())
        self._hand_out(m, buffer.read_port(domain="sync"))
        m.d.comb += self.idle.eq((self._flying == 0) & ~self._fresh)
        with m.If(self.stop):
            m.d.sync += self._running.eq(0)
        with m.If(self.start):
            line = exact_log2(self._config.bus_bytes)
            m.d.sync += [
                self._running.eq(1),
                self._asked.eq(0),
                self._taken.eq(0),
                self._offset.eq(self.address[line : line + exact_log2(size)]),
                # Only the very first burst starts in the middle of its buffer.
                self._filled[0].eq(self.address[line : line + exact_log2(size)]),
                *(filled.eq(0) for filled in self._filled[1:]),
            ]
        return m

    def _position(self, line: Signal) -> Signal:
        """Place of the ``line``-th line in the buffer: {burst buffer, line in it}."""
        width = exact_log2(BURSTS * self.burst_lines)
        return (line + self._offset)[:width]

    def _ask(self, m: Module) -> None:
        size, request = self.burst_lines, self.requests.payload
        left, room, position = Signal(signed(17)), Signal(range(size + 1)), Signal(range(BURSTS * size))
        beats, whole = Signal(range(size + 1)), exact_log2(size)
        self._base, mask = Signal(self._config.address_bits), Signal(exact_log2(size))
        with m.If(self.start):
            m.d.sync += self._base.eq(self.address)
            m.d.sync += mask.eq(burst_mask(self.address[self._config.place_bits :], self._config, size))
        place, ask, free = position[: exact_log2(size)], Signal(), Signal()
        m.d.comb += [
            left.eq(self.lines - self._asked),
            position.eq(self._position(self._asked)),
            room.eq((~place & mask) + 1),
            beats.eq(Mux(left[whole:].any() | (left[:whole] >= room), room, left[:whole])),
            free.eq(~self.requests.valid | self.requests.ready),
            request.tag.client.eq(Client.LOADER),
            request.tag.last_bytes.eq(self._config.bus_bytes),
        ]
        # A burst buffer is free again once its lines are taken: at most BURSTS - 1 whole bursts ahead.
        # Beats in one buffer come in order only if its bursts go out one after the other.
        ahead, alone = Signal.like(self._taken), Signal()
        m.d.comb += [
            ahead.eq(self._asked - self._taken),
            alone.eq((place == 0) | self.idle),
            ask.eq(self._running & (left > 0) & (ahead <= (BURSTS - 2) * size) & alone & free),
        ]
        m.d.sync += self._fresh.eq(ask)
        with m.If(ask):
            m.d.sync += self._asked.eq(self._asked + beats)
        with m.If(free):
            m.d.sync += [
                self.requests.valid.eq(ask),
                request.address.eq(self._base + (self._asked << exact_log2(self._config.bus_bytes))),
                request.beats.eq(beats),
                request.tag.slot.eq(position[exact_log2(size) :]),
            ]

    def _fill(self, m: Module, port: Any) -> None:
        size, beat = self.burst_lines, self.returns.beat
        mine = Signal()
        number = beat.slot[: exact_log2(BURSTS)]
        filled = Signal(range(size + 1))
        m.d.comb += [
            mine.eq(self.returns.valid & (beat.client == Client.LOADER)),
            port.en.eq(mine),
            port.data.eq(beat.data),
        ]
        m.d.sync += self._flying.eq(self._flying + Mux(self._fresh, self.requests.payload.beats, 0) - mine)
        with m.Switch(number):
            for k in range(BURSTS):
                with m.Case(k):
                    m.d.comb += filled.eq(self._filled[k])
                    with m.If(mine):
                        m.d.sync += self._filled[k].eq(self._filled[k] + 1)
        m.d.comb += port.addr.eq(Cat(filled[:-1], number))

    def _hand_out(self, m: Module, port: Any) -> None:
        """From the buffer's output to a register each for the line that follows and the present one, word by word."""
        size, words = self.burst_lines, exact_log2(self._config.bus_bytes // WORD_BYTES)
        position, there, filled = Signal(range(BURSTS * size)), Signal(), Signal(range(size + 1))
        lane, full = Signal(max(words, 1)), Signal(3)
        to_present, to_following, fetch, pop = Signal(), Signal(), Signal(), Signal()
        following, present = (Signal(8 * self._config.bus_bytes, name=name) for name in ("following", "present"))
        number = position[exact_log2(size) :]
        with m.Switch(number):
            for k in range(BURSTS):
                with m.Case(k):
                    m.d.comb += filled.eq(self._filled[k])
        m.d.comb += [
            # The position is never behind what is filled; all bits of that are 0 but the top one if it is the end.
            there.eq(self._running & (filled[-1] | (filled[:-1] != position[: exact_log2(size)]))),
            self.words.valid.eq(full[0] & self._running & ~self.stop),
            self.words.payload.eq(present.word_select(lane if words else 0, 8 * WORD_BYTES)),
            pop.eq(self.words.valid & self.words.ready & ((lane == (1 << words) - 1) if words else 1)),
            to_present.eq(~full[0] | pop),
            # The place behind is filled in the cycle after it was left, so that ``ready`` does not reach the buffer.
            # That is as quick, unless each line is one word.
            to_following.eq(~full[:2].all() if words else ~full[1] | to_present),
            fetch.eq(~full[2] | to_following),
            port.en.eq(fetch),
            port.addr.eq(position),
        ]
        if words:
            with m.If(self.words.valid & self.words.ready):
                m.d.sync += lane.eq(lane + 1)
        with m.If(to_present):
            m.d.sync += [present.eq(following), full[0].eq(full[1]), full[1].eq(0)]
        with m.If(to_following):
            m.d.sync += [following.eq(port.data), full[1].eq(full[2])]
        with m.If(fetch):
            m.d.sync += full[2].eq(there)
        # A buffer is empty a cycle after its last line was read: the lines of its next burst come later than that.
        left, left_number = Signal(), Signal.like(number)
        m.d.sync += [left.eq(0), left_number.eq(number)]
        with m.If(left):
            with m.Switch(left_number):
                for k in range(BURSTS):
                    with m.Case(k):
                        m.d.sync += self._filled[k].eq(0)
        with m.If(fetch & there):
            m.d.sync += [self._taken.eq(self._taken + 1), position.eq(position + 1)]
            m.d.sync += left.eq(position[: exact_log2(size)] == size - 1)
        with m.If(self.start):
            m.d.sync += [full.eq(0), lane.eq(0), left.eq(0)]
            line = exact_log2(self._config.bus_bytes)
            m.d.sync += position.eq(self.address[line : line + exact_log2(size)])
