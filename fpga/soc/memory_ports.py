"""The core's AXI4 masters on ports of LiteDRAM."""

from typing import Any

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from litex.soc.interconnect.axi import RESP_DECERR, RESP_OKAY
from migen import If, Mux, Signal

from daedal.hw.config.core import MAX_BURST
from daedal.hw.memory.address_map import banks_of_port

OUTSTANDING = 2 * MAX_BURST
"""Lines that a read port has asked for and not yet handed on: two bursts of the core."""


class ReadPort(LiteXModule):
    """Bursts of an AXI4 read master as commands of a LiteDRAM port of the same width and clock domain.

    A line is asked for when there is room for it, since LiteDRAM's lines cannot wait. Lines outside of the memory take
    room as well, so ``order`` is never full. One line per cycle; a command comes to LiteDRAM the cycle after it was
    made, and a line goes on the cycle after it came. Every beat of a burst outside of the memory is answered with
    DECERR.

    Parameters
    ----------
    bus
        AXI4 interface, as the master drives it.
    port
        LiteDRAM's native port.
    memory_bytes
        Size of the memory, a power of two; it starts at address 0.
    outstanding
        Lines asked for and not yet handed on, also those outside of the memory.
    """

    def __init__(self, bus: Any, port: Any, *, memory_bytes: int, outstanding: int = OUTSTANDING) -> None:
        self.beats = beats = Beats(bus.ar, port, memory_bytes=memory_bytes)
        self.commands = commands = Commands(port)
        self.order = order = stream.SyncFIFO([("outside", 1), ("final", 1)], outstanding)
        self.lines = lines = stream.SyncFIFO([("data", port.data_width)], outstanding)
        room, has_room = Signal(max=outstanding + 1, reset=outstanding), Signal(reset=1)
        asked, taken = Signal(), Signal()
        self.comb += [
            commands.sink.valid.eq(beats.valid & ~beats.outside & has_room),
            commands.sink.addr.eq(beats.line),
            commands.sink.last.eq(beats.final),
            asked.eq(order.sink.valid),
            beats.ready.eq(has_room & (beats.outside | commands.sink.ready)),
            order.sink.valid.eq(beats.valid & beats.ready),
            order.sink.outside.eq(beats.outside),
            order.sink.final.eq(beats.final),
            lines.sink.valid.eq(port.rdata.valid),
            lines.sink.data.eq(port.rdata.data),
            port.rdata.ready.eq(1),
            bus.r.valid.eq(order.source.valid & (order.source.outside | lines.source.valid)),
            bus.r.data.eq(lines.source.data),
            bus.r.last.eq(order.source.final),
            bus.r.resp.eq(Mux(order.source.outside, RESP_DECERR, RESP_OKAY)),
            taken.eq(bus.r.valid & bus.r.ready),
            order.source.ready.eq(taken),
            lines.source.ready.eq(taken & ~order.source.outside),
        ]
        self.sync += [
            If(asked & ~taken, room.eq(room - 1), has_room.eq(room != 1)),
            If(taken & ~asked, room.eq(room + 1), has_room.eq(1)),
        ]


class WritePort(LiteXModule):
    """Bursts of an AXI4 write master as commands and data of a LiteDRAM port of the same width and clock domain.

    A line waits in a queue until LiteDRAM takes it. It is there two cycles after its command was made, one after that
    was offered to LiteDRAM, and a cycle passes until the port knows that it was taken: so the queue can be near the
    memory's pins, far from the core. A burst is acknowledged when its last line was taken: a read of any port that
    comes later sees it. Bursts outside of the memory are dropped and acknowledged with DECERR. One line per cycle.

    Parameters are those of :class:`ReadPort`; ``outstanding`` is the lines that wait, and the bursts not acknowledged.
    """

    def __init__(self, bus: Any, port: Any, *, memory_bytes: int, outstanding: int = MAX_BURST) -> None:
        self.beats = beats = Beats(bus.aw, port, memory_bytes=memory_bytes)
        self.commands = commands = Commands(port)
        layout = [("data", port.data_width), ("we", port.data_width // 8), ("final", 1)]
        self.lines = lines = stream.SyncFIFO(layout, outstanding)
        self.answers = answers = stream.SyncFIFO([("outside", 1)], outstanding)
        room, space = (Signal(max=outstanding + 1, reset=outstanding) for _ in range(2))  # for bursts, for lines
        has_room, has_space, all_written = (Signal(reset=1) for _ in range(3))
        ready, begun, over = Signal(), Signal(), Signal()
        given, taken, written = Signal(), Signal(), Signal()
        self.comb += [
            ready.eq(beats.valid & bus.w.valid & has_room),
            commands.sink.valid.eq(ready & ~beats.outside & has_space),
            commands.sink.we.eq(1),
            commands.sink.addr.eq(beats.line),
            commands.sink.last.eq(beats.final),
            # A line outside of the memory waits until all before it are written, so that answers keep their order.
            beats.ready.eq(ready & Mux(beats.outside, all_written, commands.sink.ready & has_space)),
            bus.w.ready.eq(beats.ready),
            given.eq(beats.ready & ~beats.outside),
            port.wdata.valid.eq(lines.source.valid),
            port.wdata.data.eq(lines.source.data),
            port.wdata.we.eq(lines.source.we),
            lines.source.ready.eq(port.wdata.ready),
            answers.sink.valid.eq(written | (beats.ready & beats.outside & beats.final)),
            answers.sink.outside.eq(~written),
            bus.b.valid.eq(answers.source.valid),
            bus.b.resp.eq(Mux(answers.source.outside, RESP_DECERR, RESP_OKAY)),
            answers.source.ready.eq(bus.b.ready),
            begun.eq(beats.ready & beats.final),
            over.eq(bus.b.valid & bus.b.ready),
        ]  # fmt: skip
        self.sync += [
            lines.sink.valid.eq(given),
            lines.sink.data.eq(bus.w.data),
            lines.sink.we.eq(bus.w.strb),
            lines.sink.final.eq(beats.final),
            taken.eq(lines.source.valid & port.wdata.ready),
            written.eq(lines.source.valid & port.wdata.ready & lines.source.final),
            If(begun & ~over, room.eq(room - 1), has_room.eq(room != 1)),
            If(over & ~begun, room.eq(room + 1), has_room.eq(1)),
            If(given & ~taken, space.eq(space - 1), has_space.eq(space != 1), all_written.eq(0)),
            If(taken & ~given, space.eq(space + 1), has_space.eq(1), all_written.eq(space == outstanding - 1)),
        ]


class Skid(LiteXModule):
    """Registers in both directions, of which the second has what was not taken: LiteX's, the other way round.

    So what ``source`` says comes from registers, without a choice behind them. One payload per cycle, a cycle late.
    """

    def __init__(self, layout: Any) -> None:
        self.kept, self.given = kept, given = stream.PipeReady(layout), stream.PipeValid(layout)
        self.sink, self.source = kept.sink, given.source
        self.comb += kept.source.connect(given.sink)


class Commands(Skid):
    """Registers between an AXI4 port and the commands of LiteDRAM's port ``port``, in both directions.

    LiteDRAM finds out whether it takes a command from the state of all banks and the other ports. Without registers
    that goes on to the queue of addresses, which makes it the longest path of the memory's clock domain.
    """

    def __init__(self, port: Any) -> None:
        super().__init__(port.cmd.description)
        self.comb += self.source.connect(port.cmd)


class Beats(LiteXModule):
    """The lines of the bursts of an AXI4 address channel, one after the other.

    Members
    -------
    valid, ready
        Handshake of a line.
    line
        Its number in memory.
    outside
        It lies outside of the memory.
    final
        It is the last one of its burst.
    """

    def __init__(self, channel: Any, port: Any, *, memory_bytes: int) -> None:
        self.valid, self.ready, self.outside, self.final = Signal(), Signal(), Signal(), Signal()
        self.line = Signal(port.address_width)
        left = Signal(8)
        low, high = (port.data_width // 8).bit_length() - 1, memory_bytes.bit_length() - 1
        self.comb += [
            self.final.eq(left == 0),
            channel.ready.eq(~self.valid | (self.ready & self.final)),
        ]
        self.sync += [
            If(self.valid & self.ready, left.eq(left - 1), self.line.eq(self.line + 1)),
            If(channel.ready,
                self.valid.eq(channel.valid),
                left.eq(channel.len),
                self.line.eq(channel.addr[low:high]),
                self.outside.eq(channel.addr[high:] != 0),
            ),
        ]  # fmt: skip


class MemoryPorts(LiteXModule):
    """All memory ports of a core, each on a port of its own of LiteDRAM's crossbar.

    Parameters
    ----------
    core
        The DaedalCore.
    crossbar
        LiteDRAM's crossbar. If its ports are narrower than a line, a line takes several commands.
    memory_bytes
        Size of the memory, a power of two.
    small
        For parts with few LUTs and a slow clock: reads have places for one burst only, and registers that only serve
        the clock are left out.

    Members
    -------
    own
        Port of the crossbar -> the banks of the memory whose lines it asks for, which no other read port does. Ports
        that are not in it may ask for any.
    """

    def __init__(self, core: Any, crossbar: Any, *, memory_bytes: int, small: bool = False) -> None:
        self._small = small
        self.own: dict[int, range] = {}
        width, outstanding = 8 * core.config.bus_bytes, MAX_BURST if small else OUTSTANDING
        for k, bus in enumerate(core.reads):
            near = self._near(bus, core.clock_domain, f"read{k}", ("ar",), ("r",))
            port = crossbar.get_port(mode="read", data_width=width)
            self.own[port.id] = banks_of_port(core.config, k)
            self.add_module(f"read{k}", ReadPort(near, port, memory_bytes=memory_bytes, outstanding=outstanding))
        near = self._near(core.write, core.clock_domain, "write", ("aw", "w"), ("b",))
        port = crossbar.get_port(mode="write", data_width=width)
        self.add_module("write", WritePort(near, port, memory_bytes=memory_bytes))

    def _near(self, bus: Any, domain: str, name: str, there: tuple[str, ...], back: tuple[str, ...]) -> Any:
        """The interface ``bus`` of clock domain ``domain`` as one of ``sys``; channels go ``there`` and come ``back``.

        What is written goes through registers in both directions: the port's room for lines would go on to the core's
        queues, or the crossing's memory, in the same cycle. What is read comes from registers: whether a line is there
        would go through the core's fabric to its queues.
        """
        near = type(bus)(data_width=bus.data_width, address_width=bus.address_width, id_width=bus.id_width)
        for channel in there + back:
            source, sink, domains = getattr(bus, channel), getattr(near, channel), (domain, "sys")
            if channel in back:
                source, sink, domains = sink, source, ("sys", domain)
            description = source.description
            if channel == "r" and not self._small:
                self.add_module(f"{name}_r_buffer", late := stream.Buffer(description))
                self.comb += source.connect(late.sink)
                source = late.source
            if domain != "sys":
                crossing = stream.ClockDomainCrossing(description, *domains)
                self.add_module(f"{name}_{channel}_crossing", crossing)
                self.comb += source.connect(crossing.sink)
                source = crossing.source
            if channel in ("aw", "w") and not self._small:
                buffer = Skid(description)
                self.add_module(f"{name}_{channel}_buffer", buffer)
                self.comb += source.connect(buffer.sink)
                source = buffer.source
            self.comb += source.connect(sink)
        return near
