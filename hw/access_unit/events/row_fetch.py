"""Splits rows into reads and reserves the slots for their beats."""

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.levels.bundles import line_bits
from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.interfaces import Client, read_request_layout, slot_bits
from daedal.hw.isa.words import SIZE_BITS, FetchQueue
from daedal.hw.memory.address_map import burst_mask, line_class
from daedal.hw.queues.reorder_buffer import reserve_layout
from daedal.hw.queues.skid_buffer import SkidBuffer, optional_skid


def row_layout(config: Config) -> data.StructLayout:
    """A row to fetch; its alignment has been checked."""
    return data.StructLayout({"queue": FetchQueue, "address": config.address_bits, "size": SIZE_BITS})


def chunk_layout(config: Config) -> data.StructLayout:
    """Part of a row that one request reads."""
    return data.StructLayout(
        {
            "queue": FetchQueue,
            "line": line_bits(config),
            "beats": range(MAX_BURST + 1),
            "shift": exact_log2(config.bus_bytes),
            "last_bytes": range(config.bus_bytes + 1),
            "row_first": 1,
            "row_last": 1,
        }
    )


class RowSplit(wiring.Component):
    """Splits rows into chunks of at most MAX_BURST lines that do not cross a granule of the row's mapping class.

    Chunks end at multiples of their longest length, so they do not cross 4 KiB either.

    One chunk per cycle, without a pause between rows. Members: ``i``, rows; ``o``, chunks; ``empty``.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(row_layout(config))),
                "o": Out(stream.Signature(chunk_layout(config))),
                "empty": Out(1),
            }
        )
        self._config = config
        self._bus_bits = exact_log2(config.bus_bytes)
        self._most = min(MAX_BURST, config.page_bytes // config.bus_bytes)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        active, last, move = Signal(), Signal(), Signal()
        row, left = Signal(chunk_layout(self._config)), Signal(SIZE_BITS - self._bus_bits + 1)
        beats, mask = Signal(range(MAX_BURST + 1)), Signal(exact_log2(self._most))
        # Lines of the next chunk at most: up to the end of a block of `mask + 1` lines, where all but the first begin.
        room = Signal(range(MAX_BURST + 1))
        m.d.comb += [last.eq(left <= room), beats.eq(Mux(last, left, room))]
        # That a row ends is known late, and would go on to the queue of rows.
        m.submodules.next = self._next = following = optional_skid(self._config, row_layout(self._config))
        connect(m, flipped(self.i), following.i)
        m.d.comb += [
            move.eq(~self.o.valid | self.o.ready),
            following.o.ready.eq(~active | (move & last)),
            self.empty.eq(~active & ~self.o.valid & ~self.i.valid & following.empty),
        ]
        with m.If(move):
            m.d.sync += [
                self.o.valid.eq(active),
                self.o.payload.eq(row),
                self.o.payload.beats.eq(beats),
                self.o.payload.row_last.eq(last),
                self.o.payload.last_bytes.eq(Mux(last, row.last_bytes, self._config.bus_bytes)),
                # If that is not the row's last one.
                row.row_first.eq(0),
                row.line.eq(row.line + room),
                left.eq(left - room),
                room.eq(mask + 1),
            ]
        with m.If(following.o.ready):
            m.d.sync += [active.eq(following.o.valid), *self._load(row, left, mask, room)]
        return m

    def _load(self, row: data.View, left: Signal, mask: Signal, room: Signal) -> list[object]:
        new = self._next.o.payload
        below, line = (new.size - 1)[: self._bus_bits], new.address[self._bus_bits :]
        block = burst_mask(line_class(line, self._config), self._config, self._most)
        return [
            row.queue.eq(new.queue),
            row.line.eq(line),
            row.shift.eq(new.address[: self._bus_bits]),
            row.last_bytes.eq(below + 1),
            row.row_first.eq(1),
            left.eq((new.size + self._config.bus_bytes - 1) >> self._bus_bits),
            mask.eq(block),
            room.eq((~line[: len(mask)] & block) + 1),
        ]


class RowFetch(wiring.Component):
    """Issues row fetches: reserves slots for each chunk, then asks for its lines.

    One chunk per cycle when nothing blocks; the first one is asked for 5 cycles after its row came. Chunks wait
    in a skid for their slots: whether there are enough is known late, and would decide at once if a row is taken.

    Members
    -------
    rows : ``In(stream.Signature(row_layout(config)))``
    reserve, slot : ``Out(stream.Signature(reserve_layout()))``, ``In(slot_bits(config))``
        As in ``VectorQueues``.
    requests : ``Out(stream.Signature(read_request_layout(config)))``
    halt : ``In(1)``
        Reserve nothing more.
    empty : ``Out(1)``
        Nothing inside.
    no_slot, no_port : ``Out(1)``
        A chunk waits for slots, or for the memory ports.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "rows": In(stream.Signature(row_layout(config))),
                "reserve": Out(stream.Signature(reserve_layout())),
                "slot": In(slot_bits(config)),
                "requests": Out(stream.Signature(read_request_layout(config))),
                "halt": In(1),
                "empty": Out(1),
                "no_slot": Out(1),
                "no_port": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.split = split = RowSplit(self._config)
        m.submodules.chunks = chunks = SkidBuffer(chunk_layout(self._config))
        m.submodules.out = out = SkidBuffer(read_request_layout(self._config))
        connect(m, flipped(self.rows), split.i)
        connect(m, split.o, chunks.i)
        connect(m, out.o, flipped(self.requests))
        chunk, request = chunks.o.payload, out.i.payload
        m.d.comb += [
            self.reserve.valid.eq(chunks.o.valid & out.i.ready & ~self.halt),
            self.reserve.payload.queue.eq(chunk.queue),
            self.reserve.payload.beats.eq(chunk.beats),
            out.i.valid.eq(self.reserve.valid & self.reserve.ready),
            chunks.o.ready.eq(out.i.valid),
            request.address.eq(Cat(Const(0, exact_log2(self._config.bus_bytes)), chunk.line)),
            request.beats.eq(chunk.beats),
            request.tag.slot.eq(self.slot),
            request.tag.shift.eq(chunk.shift),
            request.tag.last_bytes.eq(chunk.last_bytes),
            request.tag.row_first.eq(chunk.row_first),
            request.tag.row_last.eq(chunk.row_last),
            self.no_port.eq(chunks.o.valid & ~out.i.ready),
            self.no_slot.eq(chunks.o.valid & out.i.ready & ~self.reserve.ready),
            self.empty.eq(split.empty & chunks.empty & out.empty),
        ]
        client_of_chunk = Signal(Client)
        m.d.comb += request.tag.client.eq(client_of_chunk)
        clients = {FetchQueue.VECTOR0: Client.VECTOR0, FetchQueue.VECTOR1: Client.VECTOR1}
        with m.Switch(chunk.queue):
            for fetch_queue, client in clients.items():
                with m.Case(fetch_queue):
                    m.d.comb += client_of_chunk.eq(client)
            with m.Default():
                m.d.comb += client_of_chunk.eq(Client.STREAM)
        return m
