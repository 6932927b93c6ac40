"""Writes a completion record through the store unit."""

from amaranth import Module, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import Config
from daedal.hw.interfaces import beat_layout, store_address_layout
from daedal.hw.isa.launch import RECORD_WORDS
from daedal.hw.isa.program import WORD_BYTES
from daedal.hw.lib.fsm_names import name_states


class RecordWriter(wiring.Component):
    """Sends one row of RECORD_WORDS words to the store unit; one word every third cycle.

    Members
    -------
    start : ``In(1)``, ``address`` : ``In(address_bits)``
    ask : ``Out(1)``, number : ``Out``
        The word wanted now; ``word`` must hold it two cycles later.
    word : ``In(64)``
    done : ``Out(1)``
        Strobe when the store unit has taken the last beat.
    store_address, store_data : streams to the store unit
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "address": In(config.address_bits),
                "ask": Out(1),
                "number": Out(range(RECORD_WORDS + 1)),
                "word": In(8 * WORD_BYTES),
                "done": Out(1),
                "stop": In(1),
                "store_address": Out(stream.Signature(store_address_layout(config))),
                "store_data": Out(stream.Signature(beat_layout(config))),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        per_beat = self._config.bus_bytes // WORD_BYTES
        beat = Signal(8 * self._config.bus_bytes)
        data, address = self.store_data, self.store_address
        m.d.comb += [
            address.payload.address.eq(self.address),
            address.payload.size.eq(RECORD_WORDS * WORD_BYTES),
            data.payload.data.eq(beat),
            data.payload.bytes.eq(self._config.bus_bytes),
            data.payload.last.eq(self.number == RECORD_WORDS),
        ]
        lane: Value = self.number[: exact_log2(per_beat)]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += self.number.eq(0)
                with m.If(self.start):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.d.comb += address.valid.eq(1)
                with m.If(address.ready):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += self.ask.eq(1)
                m.next = "WAIT"
            with m.State("WAIT"):
                m.next = "TAKE"
            with m.State("TAKE"):
                m.d.sync += [
                    beat.eq((beat >> (8 * WORD_BYTES)) | (self.word << (8 * (self._config.bus_bytes - WORD_BYTES)))),
                    self.number.eq(self.number + 1),
                ]
                m.next = "ASK"
                with m.If(lane == per_beat - 1):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += data.valid.eq(1)
                with m.If(data.ready):
                    m.next = "ASK"
                    with m.If(self.number == RECORD_WORDS):
                        m.d.comb += self.done.eq(1)
                        m.next = "IDLE"
        name_states(fsm, "RecordWriterState")
        return m
