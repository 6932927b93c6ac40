"""The memory ports of a core as one AXI master, which reads with an identifier for each of them."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.memory.axi import Burst, JoinedMaster, ReadMaster, WriteMaster, beat_size
from daedal.hw.queues.skid_buffer import SkidBuffer


class PortJoiner(wiring.Component):
    """Joins read ports and write port.

    Addresses of read ports are taken in turn, one per cycle, and are on the bus a cycle later. A beat is offered to its
    port a cycle later, and so is the next one if it is for another port: a core chooses a cycle ahead from which port
    it takes a beat (``ReadFabric``), one in each cycle. Beats never wait for what a port asks for, so all of them get
    through. Writes go through as they are.

    Members
    -------
    read0, read1, … : ``In(ReadMaster(config))``
    write : ``In(WriteMaster(config))``
        The core's. At most one port is ready for a beat at a time. What is offered to a port is right in the cycle in
        which it is taken: before that, ``rdata`` may be another port's.
    bus : ``Out(JoinedMaster(config, is_axi3=is_axi3))``
    """

    def __init__(self, config: Config, *, is_axi3: bool = False) -> None:
        self._write, self._size = WriteMaster(config), beat_size(config)
        super().__init__(
            {
                **{f"read{k}": In(ReadMaster(config)) for k in range(config.ports)},
                "write": In(self._write),
                "bus": Out(JoinedMaster(config, is_axi3=is_axi3)),
            }
        )
        self._ports = [getattr(self, f"read{k}") for k in range(config.ports)]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._join_addresses(m)
        self._part_beats(m)
        for name, member in self._write.members.items():
            ours, theirs = getattr(self.bus, name), getattr(self.write, name)
            m.d.comb += ours.eq(theirs) if member.flow == Out else theirs.eq(ours)
        return m

    def _join_addresses(self, m: Module) -> None:
        bus, count = self.bus, len(self._ports)
        address = data.StructLayout({"id": bus.arid.shape(), "addr": bus.araddr.shape(), "len": bus.arlen.shape()})
        m.submodules.addresses = addresses = SkidBuffer(address)
        wanted, behind, later, chosen = (Signal(count, name=name) for name in ("wanted", "behind", "later", "chosen"))
        candidates = Mux(later.any(), later, wanted)
        m.d.comb += [
            wanted.eq(Cat(port.arvalid for port in self._ports)),
            later.eq(wanted & behind),
            chosen.eq(candidates & -candidates),
            addresses.i.valid.eq(wanted.any()),
        ]
        for number, port in enumerate(self._ports):
            m.d.comb += port.arready.eq(chosen[number] & addresses.i.ready)
            with m.If(chosen[number]):
                given = addresses.i.payload
                m.d.comb += [given.id.eq(number), given.addr.eq(port.araddr), given.len.eq(port.arlen)]
        with m.If(addresses.i.valid & addresses.i.ready):
            m.d.sync += behind.eq(~(chosen | (chosen - 1)))
        taken = addresses.o.payload
        m.d.comb += [
            bus.arvalid.eq(addresses.o.valid),
            addresses.o.ready.eq(bus.arready),
            bus.arid.eq(taken.id),
            bus.araddr.eq(taken.addr),
            bus.arlen.eq(taken.len),
            bus.arsize.eq(self._size),
            bus.arburst.eq(Burst.INCR),
        ]

    def _part_beats(self, m: Module) -> None:
        bus = self.bus
        beat = data.StructLayout({"id": bus.rid.shape(), "data": bus.rdata.shape(), "resp": 2, "last": 1})
        m.submodules.beats = beats = SkidBuffer(beat)
        given, next_, first, held = beats.i.payload, beats.o.payload, Signal(beat), Signal()
        first_goes, next_goes = Signal(), Signal()
        m.d.comb += [
            beats.i.valid.eq(bus.rvalid),
            bus.rready.eq(beats.i.ready),
            given.id.eq(bus.rid),
            given.data.eq(bus.rdata),
            given.resp.eq(bus.rresp),
            given.last.eq(bus.rlast),
            first_goes.eq(held & self._is_ready(first.id)),
            next_goes.eq(beats.o.valid & ~(held & (next_.id == first.id)) & self._is_ready(next_.id)),
            beats.o.ready.eq(~held | first_goes | next_goes),
        ]
        with m.If(~held | first_goes):
            m.d.sync += [first.eq(next_), held.eq(beats.o.valid & ~next_goes)]
        shown = Signal(beat)
        m.d.comb += shown.eq(Mux(first_goes, first, next_))
        for number, port in enumerate(self._ports):
            m.d.comb += [
                port.rvalid.eq((held & (first.id == number)) | (beats.o.valid & (next_.id == number))),
                port.rdata.eq(shown.data),
                port.rresp.eq(shown.resp),
                port.rlast.eq(shown.last),
            ]

    def _is_ready(self, number: Value) -> Value:
        """Whether the port of this number takes a beat."""
        return Cat((number == n) & port.rready for n, port in enumerate(self._ports)).any()
