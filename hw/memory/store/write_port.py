"""Drives the AXI write port of the store unit."""

from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.isa.elements import STORE_STEP
from daedal.hw.lib.replicate import replicate
from daedal.hw.memory.axi import Burst, WriteMaster, beat_size, is_error
from daedal.hw.memory.store.store_layouts import burst_layout, line_bits
from daedal.hw.queues.fifo import Fifo

OUTSTANDING = 128
"""Write bursts in flight, which may be of a line each: as many as memory takes until it acknowledges the first."""


class WritePort(wiring.Component):
    """Issues bursts whose lines are all there. A burst and a line per cycle.

    Members
    -------
    bursts : ``In(stream.Signature(burst_layout(config)))``
        Bursts to start; the mapping class, above the memory address, comes back in ``error_address``. One that is
        ``outside`` is not started, nor is any behind it.
    lines : ``In(stream of {data, mask})``
        Their lines.
    write : ``Out(WriteMaster(config))``
        The memory port.
    quiet : ``Out(1)``
        No burst is in flight.
    sending : ``Out(1)``
        A burst is not yet on its way to memory with all of its lines.
    acknowledged : ``Out(1)``
        A burst has been acknowledged in this cycle.
    written : ``Out(1)``
        A line has been written in this cycle.
    error, refused : ``Out(1)``, error_address : ``Out(address_bits)``
        In this cycle the burst at this address has been acknowledged with an error, or there is one that is not started
        and all before it are acknowledged.
    """

    def __init__(self, config: Config) -> None:
        words = data.StructLayout({"data": 8 * config.bus_bytes, "mask": config.line_steps})
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(config))),
                "lines": In(stream.Signature(words)),
                "write": Out(WriteMaster(config)),
                "quiet": Out(1),
                "sending": Out(1),
                "acknowledged": Out(1),
                "written": Out(1),
                "error": Out(1),
                "refused": Out(1),
                "error_address": Out(config.address_bits),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.flying = flying = Fifo(line_bits(self._config), depth=OUTSTANDING, in_block=True)
        m.submodules.lengths = lengths = Fifo(range(MAX_BURST), depth=4)
        write, burst, start, refusing = self.write, self.bursts.payload, Signal(), Signal()
        m.d.comb += [
            self.bursts.ready.eq((~write.awvalid | write.awready) & flying.i.ready & lengths.i.ready & ~refusing),
            start.eq(self.bursts.valid & self.bursts.ready),
            flying.i.valid.eq(start),
            flying.i.payload.eq(burst.line),
            lengths.i.valid.eq(start & ~burst.outside),
            # It is the last of those in flight.
            self.refused.eq(refusing & flying.o.valid & (flying.level == 1)),
            lengths.i.payload.eq(burst.beats - 1),
            self.sending.eq(write.awvalid | (lengths.level != 0)),
            write.awsize.eq(beat_size(self._config)),
            write.awburst.eq(Burst.INCR),
        ]
        with m.If(start):
            m.d.sync += [
                refusing.eq(burst.outside),
                write.awvalid.eq(~burst.outside),
                write.awaddr.eq((burst.line << exact_log2(self._config.bus_bytes))[: self._config.place_bits]),
                write.awlen.eq(burst.beats - 1),
            ]
        with m.Elif(write.awready):
            m.d.sync += write.awvalid.eq(0)
        self._lines(m, lengths)
        self._acknowledge(m, flying)
        return m

    def _lines(self, m: Module, lengths: Fifo) -> None:
        write, beat = self.write, Signal(range(MAX_BURST))
        m.d.comb += [
            write.wdata.eq(self.lines.payload.data),
            write.wstrb.eq(Cat(replicate(bit, STORE_STEP) for bit in self.lines.payload.mask)),
            write.wlast.eq(beat == lengths.o.payload),
            write.wvalid.eq(self.lines.valid & lengths.o.valid),
            self.written.eq(write.wvalid & write.wready),
            self.lines.ready.eq(write.wready & lengths.o.valid),
            lengths.o.ready.eq(self.written & write.wlast),
        ]
        with m.If(self.written):
            m.d.sync += beat.eq(beat + 1)
            with m.If(write.wlast):
                m.d.sync += beat.eq(0)

    def _acknowledge(self, m: Module, flying: Fifo) -> None:
        write = self.write
        m.d.comb += [
            write.bready.eq(flying.o.valid & ~self.refused),
            self.acknowledged.eq(write.bvalid & write.bready),
            flying.o.ready.eq(write.bvalid | self.refused),
            self.error.eq(self.acknowledged & is_error(write.bresp)),
            self.error_address.eq(flying.o.payload << exact_log2(self._config.bus_bytes)),
            self.quiet.eq(flying.level == 0),
        ]
