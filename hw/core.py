"""The core: all units, joined."""

from amaranth import Cat, ClockSignal, Module, ResetInserter, ResetSignal, Signal, Value
from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.hw.access_unit.access_unit import AccessUnit
from daedal.hw.config.core import Config
from daedal.hw.control.core_faults import catch_faults
from daedal.hw.control.core_records import join_statistics, write_records
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.control.fault_words import FaultWords
from daedal.hw.control.launch_controller import LaunchController
from daedal.hw.control.loader import Loader
from daedal.hw.control.record_writer import RecordWriter
from daedal.hw.control.statistics import Statistics
from daedal.hw.control.watchdog import Watchdog
from daedal.hw.execute_unit.execute_unit import ExecuteUnit
from daedal.hw.execute_unit.no_execute_unit import NoExecuteUnit
from daedal.hw.interfaces import (
    beat_stream,
    read_request_layout,
    scalar_layout,
    store_address_layout,
    token_layout,
)
from daedal.hw.memory.axi import Described, LiteSlave, ReadMaster, WriteMaster
from daedal.hw.memory.fabric.fabric import ReadFabric
from daedal.hw.memory.store.store_unit import StoreUnit
from daedal.hw.queues.arbiter import CombinationalArbiter
from daedal.hw.queues.beats_to_line import BeatsToLine
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.line_to_beats import LineToBeats
from daedal.hw.queues.reorder_buffer import ReorderBuffers
from daedal.hw.queues.skid_buffer import optional_skid

resettable = DomainRenamer("units")
"""Puts a component among those that a soft reset resets: one register is the reset of all of them."""


def queue_side(queue: Fifo) -> Value:
    """The side of the launch that the entry at the queue's head belongs to."""
    return queue.o.payload.side


class CorePorts(Described):
    """The ports of a core; a host with AXI4 memory needs nothing else."""

    def __init__(self, config: Config) -> None:
        reads = {
            f"read{k}": (Out(ReadMaster(config)), f"AXI4 read master {k} of {config.ports}")
            for k in range(config.ports)
        }
        super().__init__(
            {
                "control": (Out(LiteSlave()), "AXI4-Lite slave with the registers"),
                **reads,
                "write": (Out(WriteMaster(config)), "AXI4 write master"),
                "interrupt": (Out(1), "high while a launch has ended and INTERRUPT is not cleared, if enabled"),
            }
        )


class Core(wiring.Component):
    """A whole Daedal machine; its members are those of :class:`CorePorts`."""

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(CorePorts(config))

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        # A cycle late, from registers: they reach all units. So does the machine's reset.
        self.soft_reset, self.halt, self.hold = Signal(init=1), Signal(), Signal()
        m.domains.units = ClockDomain("units", local=True)
        m.d.comb += [ClockSignal("units").eq(ClockSignal()), ResetSignal("units").eq(self.soft_reset)]
        self._make_units(m)
        self.taken = Signal()
        """A launch was taken in the cycle before: that comes late. It leaves its queue only now."""
        m.d.sync += self.taken.eq(self.controller.take)
        self._join_queues(m)
        self._join_memory(m)
        self._join_host(m)
        catch_faults(m, self)
        write_records(m, self)
        join_statistics(m, self)
        return m

    def _make_units(self, m: Module) -> None:
        config = self.config

        def unit(name: str, component: wiring.Component) -> wiring.Component:
            m.submodules[name] = resettable(component)
            return component

        def queue(name: str, layout: data.StructLayout, depth: int) -> wiring.Component:
            """Entries remember the side of the launch that they belong to."""
            return unit(name, Fifo(data.StructLayout({"entry": layout, "side": 1}), depth=depth))

        self.access = unit("access", AccessUnit(config))
        self.execute = unit("execute", ExecuteUnit(config) if config.executes else NoExecuteUnit(config))
        self.vectors = unit("vectors", ReorderBuffers(config))
        self.tokens = queue("tokens", token_layout(), config.token_depth)
        self.scalars = queue("scalars", scalar_layout(config), config.scalar_depth)
        self.addresses = queue("addresses", store_address_layout(config), config.store_address_depth)
        self.store = unit("store", StoreUnit(config))
        self.fabric = unit("fabric", ReadFabric(config))
        self.loader = unit("loader", Loader(config))
        self.writer = unit("writer", RecordWriter(config))
        m.submodules.merge = self.merge = CombinationalArbiter(read_request_layout(config))
        m.submodules.port = self.port = ControlRegisters(config)
        m.submodules.controller = self.controller = LaunchController(config)
        m.submodules.watchdog = self.watchdog = Watchdog(config)
        m.submodules.words = self.words = FaultWords(config)
        m.submodules.statistics = self.statistics = Statistics(config)
        m.submodules.launches = ResetInserter(self.controller.forget)(
            launches := Fifo(config.address_bits, depth=config.launches)
        )
        self.launches = launches

    def _join_queues(self, m: Module) -> None:
        """What belongs to the launch after the present one waits in the queues until its turn comes."""
        access, execute, controller = self.access, self.execute, self.controller
        connect(m, access.reserve, self.vectors.reserve)
        m.d.comb += access.slot.eq(self.vectors.slot)
        self.left: list[Value] = []
        """For each queue: something of the present launch is at its head."""
        config = self.config
        token, scalar, self.address = (stream.Signature(layout).create(path=(name,)) for name, layout in (
            ("token", token_layout()), ("scalar", scalar_layout(config)), ("address", store_address_layout(config))
        ))  # fmt: skip
        here = controller.execute_side
        for source, queue, target, mine in (
            (access.tokens, self.tokens, token, queue_side(self.tokens) == here),
            (access.scalars, self.scalars, scalar, queue_side(self.scalars) == here),
            (access.store_addresses, self.addresses, self.address,
             controller.open & (queue_side(self.addresses) == controller.side)),
        ):  # fmt: skip
            m.d.comb += [
                queue.i.valid.eq(source.valid),
                queue.i.payload.entry.eq(source.payload),
                queue.i.payload.side.eq(access.side),
                source.ready.eq(queue.i.ready),
                target.valid.eq(queue.o.valid & mine),
                target.payload.eq(queue.o.payload.entry),
                queue.o.ready.eq(target.ready & mine),
                queue.clear.eq(controller.flip),
            ]
            self.left.append(queue.o.valid & (queue_side(queue) == controller.side))
        connect(m, token, execute.tokens)
        # That a scalar is taken is known late.
        m.submodules.next_scalar = resettable(following := optional_skid(config, scalar_layout(config)))
        connect(m, scalar, following.i)
        connect(m, following.o, execute.scalars)
        self.left.append(~following.empty & (here == controller.side))
        self.token, self.scalar = token, following.o
        m.d.comb += self.vectors.clear.eq(controller.flip)
        self._join_rows(m)

    def _join_rows(self, m: Module) -> None:
        """Rows to and from the execute unit, whose beats may be narrower than lines."""
        execute, vectors, controller = self.execute, self.vectors, self.controller
        rows = []
        for n, source in enumerate((vectors.vector0, vectors.vector1, vectors.stream)):
            row = beat_stream(self.config).create(path=(f"row{n}",))
            mine = vectors.sides[n] != controller.execute_other
            m.d.comb += [
                row.valid.eq(source.valid & mine), row.payload.eq(source.payload), source.ready.eq(row.ready & mine)
            ]  # fmt: skip
            self.left.append(source.valid & (vectors.sides[n] == controller.side))
            rows.append(row)
        self.rows = rows
        connect(m, rows[2], self.store.stream_data)
        if not self.config.executes:
            self.rows_to_store, self.execute_idle = beat_stream(self.config).create(path=("to_store",)), execute.idle
            return
        if self.config.lane_bytes == self.config.bus_bytes:
            connect(m, rows[0], execute.vector0)
            connect(m, rows[1], execute.vector1)
            self.rows_to_store, self.execute_idle = execute.stores, execute.idle
            return
        for row, name in zip(rows, ("vector0", "vector1"), strict=False):
            cutter = LineToBeats(self.config)
            m.submodules[f"cut_{name}"] = resettable(cutter)
            connect(m, row, cutter.i)
            connect(m, cutter.o, getattr(execute, name))
        packer = BeatsToLine(self.config)
        m.submodules.pack = resettable(packer)
        connect(m, execute.stores, packer.i)
        self.rows_to_store, self.execute_idle = packer.o, Signal()
        m.d.comb += self.execute_idle.eq(execute.idle & packer.empty)

    def _join_memory(self, m: Module) -> None:
        connect(m, self.loader.requests, self.merge.first)
        connect(m, self.access.requests, self.merge.second)
        connect(m, self.merge.o, self.fabric.requests)
        m.d.comb += self.fabric.older.eq(self.controller.side)
        # A cycle late: it decides late what all ports do, and a burst more or less makes no difference.
        m.d.sync += self.fabric.hold.eq(self.store.hold)
        for unit in (self.loader, self.access, self.vectors):
            m.d.comb += [
                unit.returns.valid.eq(self.fabric.returns.valid),
                unit.returns.beat.eq(self.fabric.returns.beat),
            ]
        for k in range(self.config.ports):
            connect(m, getattr(self.fabric, f"read{k}"), flipped(getattr(self, f"read{k}")))
        connect(m, self.store.write, flipped(self.write))

    def _join_host(self, m: Module) -> None:
        controller, loader, port, access = self.controller, self.loader, self.port, self.access
        connect(m, flipped(self.control), port.bus)
        connect(m, port.doorbell, self.launches.i)
        self._follow_launches(m)
        m.d.comb += [
            loader.launch.valid.eq(self.launches.o.valid & ~self.taken & ~self.hold & ~self.ahead),
            loader.launch.payload.eq(self.launches.o.payload),
            self.launches.o.ready.eq(self.taken),
            loader.halt.eq(self.halt),
            loader.room.eq(access.room),
            loader.wait.eq(self.ahead),
            access.start.eq(loader.run),
            access.nest.eq(loader.nest),
            access.halt.eq(self.halt),
            self.execute.halt.eq(self.halt),
            self.execute.side.eq(controller.execute_side),
            self.execute.launch.eq(controller.flip),
            self.store.halt.eq(self.halt),
            self.store.mixed.eq(port.mixed),
            controller.loader_side.eq(loader.side),
            controller.ahead.eq(self.ahead),
            controller.program_done.eq(loader.done),
            controller.line.eq(self.store.line),
            controller.answered.eq(self.fabric.beat | self.store.acknowledged),
            controller.waiting.eq(self.launches.o.valid | (self.launches.level != 0)),
            controller.reset_request.eq(port.reset_request),
            port.reset_done.eq(controller.reset_done),
            port.busy.eq(~controller.idle | (self.launches.level != 0)),
            port.faulted.eq(controller.faulted),
            port.queued.eq(self.launches.level),
            port.ended.eq(controller.ended),
            self.interrupt.eq(port.interrupt),
        ]
        m.d.sync += [
            self.halt.eq(controller.halt),
            self.soft_reset.eq(controller.soft_reset),
            self.hold.eq(controller.hold | controller.soft_reset),
            loader.cancel.eq(controller.cancel),
            controller.begin.eq(loader.begin),
            loader.nests_done.eq(access.done),
            self.store.flush.eq(~controller.open | self.all_sent),
            controller.stored.eq(self.store.idle),
            controller.quiet.eq(self.fabric.idle.all() & self.store.quiet & ~self.merge.o.valid),
        ]
        for unit in (access, self.execute):
            connect(m, loader.config_bus, unit.config_bus)
        with m.If(controller.ended):
            m.d.sync += port.completed.eq(port.completed + 1)

    def _follow_launches(self, m: Module) -> None:
        """Which launches the loader has begun and ended, and what is left to do for the present one."""
        controller, loader, access = self.controller, self.loader, self.access
        present = controller.side
        self.ahead, self.all_sent = Signal(), Signal()
        """The loader is at a launch that is not the present one; all of the present one was sent and executed."""
        program_over, pending = Signal(2), Signal.like(access.pending)
        m.d.sync += pending.eq(access.pending)
        with m.If(controller.take | self.soft_reset):
            m.d.sync += self.ahead.eq(0)
        with m.Elif(loader.begin & ~controller.cancel):
            m.d.sync += self.ahead.eq(1)
        for side in range(2):
            with m.If((loader.begin & (loader.side != side)) | self.soft_reset):
                m.d.sync += program_over[side].eq(0)
            with m.Elif(loader.done & (loader.side == side)):
                m.d.sync += program_over[side].eq(1)
        waits = self.merge.o.valid & (self.merge.o.payload.tag.side == present)
        m.d.comb += [
            self.all_sent.eq(
                program_over.bit_select(present, 1)
                & ~access.open.bit_select(present, 1)
                & ~Cat(*self.left).any()
                & self.execute_idle
            ),
        ]
        m.d.sync += controller.executed.eq(
            self.all_sent
            & ~pending.bit_select(present, 1)
            & ~waits
            & self.fabric.idle.bit_select(present, 1)
            & ~self.store.taking
        )
