"""The front of the store unit: pairs store addresses with the beats of their rows."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.interfaces import beat_stream, store_address_layout
from daedal.hw.isa.elements import ROW_GRANULE, STORE_STEP
from daedal.hw.isa.words import SIZE_BITS
from daedal.hw.memory.store.store_layouts import line_bits, piece_layout
from daedal.hw.queues.skid_buffer import optional_skid


class RowReader(wiring.Component):
    """Takes a store address, then the beats of that row, and says where each beat goes.

    One beat per cycle; the next row follows without a bubble, but a row whose first beat goes into two lines takes
    a cycle more. A beat comes out in the cycle after it was taken.

    Members
    -------
    addresses : ``In(stream.Signature(store_address_layout(config)))``
        Where rows go.
    data, stream_data : ``In(beat_stream(config))``
        Rows from the execute unit and from the store stream.
    go : ``In(1)``
        Rows may be begun and beats be taken.
    piece : ``Out(piece_layout(config))``, valid : ``Out(1)``
        A beat to store in this cycle.
    active : ``Out(1)``
        A row is not complete, or its address was taken.
    misframed : ``Out(1)``
        A beat taken in the cycle before is not the one that the size calls for. It is not passed on.
    misframed_stream : ``Out(1)``, misframed_size, misframed_address
        Of that row: whether it comes from the store stream, and its bytes; of that beat: its address.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "addresses": In(stream.Signature(store_address_layout(config))),
                "data": In(beat_stream(config)),
                "stream_data": In(beat_stream(config)),
                "go": In(1),
                "piece": Out(piece_layout(config)),
                "valid": Out(1),
                "active": Out(1),
                "misframed": Out(1),
                "misframed_stream": Out(1),
                "misframed_size": Out(SIZE_BITS),
                "misframed_address": Out(config.address_bits),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self._config
        m.submodules.row = row = _Row(config)
        # That a row ends is known late, and would go on to the queue of addresses.
        m.submodules.next = following = optional_skid(config, store_address_layout(config))
        connect(m, flipped(self.addresses), following.i)
        take, pause, fits = Signal(), Signal(), Signal()
        beat = Signal.like(self.data.payload)
        valid = Mux(row.stream, self.stream_data.valid, self.data.valid)
        ready = row.active & self.go & ~pause
        m.d.comb += [
            beat.eq(Mux(row.direct, self.data.payload, self.stream_data.payload)),
            self.data.ready.eq(ready & ~row.stream),
            self.stream_data.ready.eq(ready & row.stream),
            take.eq(ready & valid),
            fits.eq((beat.last == row.final) & (beat.bytes == row.beat_size)),
            row.load.eq(following.o.valid & following.o.ready),
            row.address.eq(following.o.payload),
            row.step.eq(take),
            following.o.ready.eq(self.go & (~row.active | (take & row.final))),
            self.active.eq(row.active | ~following.empty),
        ]
        steps = (row.beat_bytes >> exact_log2(STORE_STEP))[: len(self.piece.steps)]
        m.d.sync += [
            # Such a beat may make two lines at once: that of the row before and its own first one.
            pause.eq(take & row.first & (row.offset + steps > config.line_steps)),
            self.valid.eq(take & fits),
            self.misframed.eq(take & ~fits),
            self.misframed_stream.eq(row.stream),
            self.misframed_size.eq(row.size),
            self.misframed_address.eq(self.piece_address(row)),
            self.piece.data.eq(beat.data),
            self.piece.line.eq(row.line),
            self.piece.offset.eq(row.offset),
            self.piece.steps.eq(steps),
        ]
        return m

    def piece_address(self, row: "_Row") -> Value:
        """Byte address of the next beat."""
        return (row.line << exact_log2(self._config.bus_bytes)) + (row.offset << exact_log2(STORE_STEP))


class _Row(wiring.Component):
    """The row being taken.

    Members: ``load`` starts the row at ``address``; ``step`` goes on to its next beat, which goes to ``line`` from
    step ``offset`` on, has ``beat_bytes`` bytes to store and is the ``first``, the ``final`` one. A beat of the store
    stream has ``beat_size`` bytes, whole granules of which the last may be stored in part. ``size`` of the row.
    ``direct`` is the opposite of ``stream``, in a register of its own: one for the data, one for all that moves them.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "load": In(1),
                "address": In(store_address_layout(config)),
                "step": In(1),
                "active": Out(1),
                "stream": Out(1),
                "direct": Out(1, init=1),
                "line": Out(line_bits(config)),
                "offset": Out(range(config.line_steps)),
                "beat_bytes": Out(range(config.bus_bytes + 1)),
                "beat_size": Out(range(config.bus_bytes + 1)),
                "first": Out(1),
                "final": Out(1),
                "size": Out(SIZE_BITS),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        bus, log = self._config.bus_bytes, exact_log2(self._config.bus_bytes)
        more, last_bytes, last_size = Signal(SIZE_BITS), Signal(range(bus + 1)), Signal(range(bus + 1))
        rest = Signal(SIZE_BITS)
        m.d.comb += [
            rest.eq(self.address.size - 1),
            self.beat_bytes.eq(Mux(self.final, last_bytes, bus)),
            self.beat_size.eq(Mux(self.final, last_size, bus)),
        ]
        with m.If(self.step):
            m.d.sync += [self.line.eq(self.line + 1), more.eq(more - 1), self.first.eq(0)]
            m.d.sync += [self.final.eq(more == 1), self.active.eq(~self.final)]
        with m.If(self.load):
            m.d.sync += [
                self.active.eq(1),
                self.stream.eq(self.address.stream),
                self.direct.eq(~self.address.stream),
                self.line.eq(self.address.address >> log),
                self.offset.eq(self.address.address[exact_log2(STORE_STEP) : log]),
                self.size.eq(self.address.size),
                self.first.eq(1),
                more.eq(rest >> log),
                self.final.eq(rest[log:] == 0),
                last_bytes.eq(rest[:log] + 1),
                last_size.eq((rest[:log] | Mux(self.address.stream, ROW_GRANULE - 1, 0)) + 1),
            ]
        return m
