"""The core: all units, joined."""

from amaranth import Array, Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.hw.access_unit.access_unit import AccessUnit
from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.config import ADDRESS_BITS, Config
from daedal.hw.execute_unit.execute_unit import ExecuteUnit
from daedal.hw.host.control_port import ControlPort
from daedal.hw.host.controller import Controller
from daedal.hw.host.loader import Loader
from daedal.hw.host.record_writer import RecordWriter
from daedal.hw.host.statistics import Statistics
from daedal.hw.host.watchdog import Watchdog
from daedal.hw.interfaces import (
    beat_stream,
    fault_layout,
    read_request_layout,
    scalar_layout,
    store_address_layout,
    token_layout,
)
from daedal.hw.isa.launch import Cause, Counter, RecordHead, RecordWord, State
from daedal.hw.isa.launch import Queue as QueueName
from daedal.hw.memory.axi import Described, LiteSlave, ReadMaster, WriteMaster
from daedal.hw.memory.fabric import ReadFabric
from daedal.hw.memory.store_unit import StoreUnit
from daedal.hw.queues.cutter import Cutter
from daedal.hw.queues.merge import Merge
from daedal.hw.queues.packer import Packer
from daedal.hw.queues.queue import Queue
from daedal.hw.queues.vector_queues import VectorQueues

ACCESS_STALLS = (
    Counter.STALL_TOKEN_FULL,
    Counter.STALL_SCALAR_FULL,
    Counter.STALL_STORE_ADDRESS_FULL,
    Counter.STALL_VECTOR_FULL,
    Counter.STALL_PORT_BUSY,
    Counter.STALL_LOAD,
)
EXECUTE_STALLS = (
    Counter.STALL_TOKEN_EMPTY,
    Counter.STALL_VECTOR_EMPTY,
    Counter.STALL_SCALAR_EMPTY,
    Counter.STALL_STORE_FULL,
    Counter.STALL_HAZARD,
)


def queue_side(queue: Queue) -> Value:
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
        self._soft_reset = Signal()
        self._make_units(m)
        self._join_queues(m)
        self._join_memory(m)
        self._join_host(m)
        self._catch_faults(m)
        self._write_records(m)
        self._join_statistics(m)
        return m

    def _make_units(self, m: Module) -> None:
        config = self.config

        def unit(name: str, component: wiring.Component) -> wiring.Component:
            m.submodules[name] = ResetInserter(self._soft_reset)(component)
            return component

        def queue(name: str, layout: data.StructLayout, depth: int) -> wiring.Component:
            """Entries remember the side of the launch that they belong to."""
            return unit(name, Queue(data.StructLayout({"entry": layout, "side": 1}), depth=depth))

        self.access = unit("access", AccessUnit(config))
        self.execute = unit("execute", ExecuteUnit(config))
        self.vectors = unit("vectors", VectorQueues(config))
        self.tokens = queue("tokens", token_layout(), config.token_depth)
        self.scalars = queue("scalars", scalar_layout(), config.scalar_depth)
        self.addresses = queue("addresses", store_address_layout(), config.store_address_depth)
        self.store = unit("store", StoreUnit(config))
        self.fabric = unit("fabric", ReadFabric(config))
        self.loader = unit("loader", Loader(config))
        self.writer = unit("writer", RecordWriter(config))
        self.merge = unit("merge", Merge(read_request_layout(config)))
        m.submodules.port = self.port = ControlPort(config)
        m.submodules.controller = self.controller = Controller(config)
        m.submodules.watchdog = self.watchdog = Watchdog(config)
        m.submodules.statistics = self.statistics = Statistics(config)
        m.submodules.launches = ResetInserter(self.controller.forget)(
            launches := Queue(ADDRESS_BITS, depth=config.launches)
        )
        self.launches = launches

    def _join_queues(self, m: Module) -> None:
        """What belongs to the launch after the present one waits in the queues until its turn comes."""
        access, execute, controller = self.access, self.execute, self.controller
        connect(m, access.reserve, self.vectors.reserve)
        m.d.comb += access.slot.eq(self.vectors.slot)
        self._left: list[Value] = []
        """For each queue: something of the present launch is at its head."""
        token, scalar, self._address = (stream.Signature(layout()).create(path=(name,)) for name, layout in (
            ("token", token_layout), ("scalar", scalar_layout), ("address", store_address_layout)
        ))  # fmt: skip
        here = controller.execute_side
        for source, queue, target, mine in (
            (access.tokens, self.tokens, token, queue_side(self.tokens) == here),
            (access.scalars, self.scalars, scalar, queue_side(self.scalars) == here),
            (access.store_addresses, self.addresses, self._address,
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
            self._left.append(queue.o.valid & (queue_side(queue) == controller.side))
        connect(m, token, execute.tokens)
        connect(m, scalar, execute.scalars)
        self._token, self._scalar = token, scalar
        m.d.comb += self.vectors.clear.eq(controller.flip)
        self._join_rows(m)

    def _join_rows(self, m: Module) -> None:
        """Rows to and from the execute unit, whose beats may be narrower than lines."""
        execute, vectors, controller = self.execute, self.vectors, self.controller
        rows = []
        for n, source in enumerate((vectors.vector0, vectors.vector1, vectors.stream)):
            row = beat_stream(self.config).create(path=(f"row{n}",))
            mine = vectors.sides[n] == controller.execute_side
            m.d.comb += [
                row.valid.eq(source.valid & mine), row.payload.eq(source.payload), source.ready.eq(row.ready & mine)
            ]  # fmt: skip
            self._left.append(source.valid & (vectors.sides[n] == controller.side))
            rows.append(row)
        self._rows = rows
        connect(m, rows[2], self.store.stream_data)
        if self.config.lane_bytes == self.config.bus_bytes:
            connect(m, rows[0], execute.vector0)
            connect(m, rows[1], execute.vector1)
            self._rows_to_store, self._execute_idle = execute.stores, execute.idle
            return
        reset = ResetInserter(self._soft_reset)
        for row, name in zip(rows, ("vector0", "vector1"), strict=False):
            cutter = Cutter(self.config)
            m.submodules[f"cut_{name}"] = reset(cutter)
            connect(m, row, cutter.i)
            connect(m, cutter.o, getattr(execute, name))
        packer = Packer(self.config)
        m.submodules.pack = reset(packer)
        connect(m, execute.stores, packer.i)
        self._rows_to_store, self._execute_idle = packer.o, Signal()
        m.d.comb += self._execute_idle.eq(execute.idle & packer.empty)

    def _join_memory(self, m: Module) -> None:
        connect(m, self.loader.requests, self.merge.first)
        connect(m, self.access.requests, self.merge.second)
        connect(m, self.merge.o, self.fabric.requests)
        m.d.comb += self.fabric.older.eq(self.controller.side)
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
            loader.launch.valid.eq(self.launches.o.valid & ~controller.hold & ~self._ahead),
            loader.launch.payload.eq(self.launches.o.payload),
            self.launches.o.ready.eq(controller.take),
            loader.cancel.eq(controller.cancel),
            loader.halt.eq(controller.halt),
            loader.room.eq(access.room),
            loader.nests_done.eq(access.done),
            loader.wait.eq(self._ahead),
            access.start.eq(loader.run),
            access.nest.eq(loader.nest),
            access.halt.eq(controller.halt),
            self.execute.halt.eq(controller.halt),
            self.execute.side.eq(controller.execute_side),
            self.execute.launch.eq(controller.flip),
            self.store.halt.eq(controller.halt),
            self.store.flush.eq(~controller.open | self._all_sent),
            controller.begin.eq(loader.begin),
            controller.loader_side.eq(loader.side),
            controller.ahead.eq(self._ahead),
            controller.program_done.eq(loader.done),
            controller.stored.eq(self.store.idle),
            controller.line.eq(self.store.line),
            controller.quiet.eq(self.fabric.idle.all() & self.store.quiet & ~self.merge.o.valid),
            controller.waiting.eq(self.launches.o.valid | (self.launches.level != 0)),
            controller.reset_request.eq(port.reset_request),
            self._soft_reset.eq(controller.soft_reset),
            port.reset_done.eq(controller.reset_done),
            port.busy.eq(~controller.idle | (self.launches.level != 0)),
            port.faulted.eq(controller.faulted),
            port.queued.eq(self.launches.level),
            port.ended.eq(controller.ended),
            self.interrupt.eq(port.interrupt),
        ]
        for unit in (access, self.execute):
            connect(m, loader.config_bus, unit.config_bus)
        with m.If(controller.ended):
            m.d.sync += port.completed.eq(port.completed + 1)

    def _follow_launches(self, m: Module) -> None:
        """Which launches the loader has begun and ended, and what is left to do for the present one."""
        controller, loader, access = self.controller, self.loader, self.access
        present = controller.side
        self._ahead, self._all_sent = Signal(), Signal()
        """The loader is at a launch that is not the present one; all of the present one was sent and executed."""
        program_over = Signal(2)
        with m.If(controller.take | controller.soft_reset):
            m.d.sync += self._ahead.eq(0)
        with m.Elif(loader.begin & ~controller.cancel):
            m.d.sync += self._ahead.eq(1)
        for side in range(2):
            with m.If((loader.begin & (loader.side != side)) | controller.soft_reset):
                m.d.sync += program_over[side].eq(0)
            with m.Elif(loader.done & (loader.side == side)):
                m.d.sync += program_over[side].eq(1)
        waits = self.merge.o.valid & (self.merge.o.payload.tag.side == present)
        m.d.comb += [
            self._all_sent.eq(
                program_over.bit_select(present, 1)
                & ~access.open.bit_select(present, 1)
                & ~Cat(*self._left).any()
                & self._execute_idle
            ),
            controller.executed.eq(
                self._all_sent
                & ~access.pending.bit_select(present, 1)
                & ~waits
                & self.fabric.idle.bit_select(present, 1)
                & ~self.store.taking
            ),
        ]

    def _catch_faults(self, m: Module) -> None:
        """The first fault of a launch is kept; of several in one cycle, the one furthest down the machine.

        A fault of the launch that is ahead waits until that is the present one; which unit had one first is known.
        """
        controller, loader = self.controller, self.loader
        self._fault, self._fault_nest = Signal(fault_layout(self.config)), Signal(NEST_BITS)
        caught, any_fault, found = Signal(), Signal(), Signal(fault_layout(self.config))
        early, faults = Signal(4), Signal(4)
        sides = (controller.execute_side, self.access.side, self.fabric.error_side, loader.side)
        reports = (self.execute.fault.valid, self.access.fault.valid, self.fabric.error,
                   loader.misaligned | loader.illegal)  # fmt: skip
        for k, (report, side) in enumerate(zip(reports, sides, strict=True)):
            allowed = ~early.any() | early[k]
            m.d.comb += faults[k].eq(report & (side == controller.side) & ~(self._ahead & (k == 3)) & allowed)
            with m.If(report & ~early.any() & ~controller.soft_reset):
                first = Cat(reports[:k]).any() if k else 0
                m.d.sync += early[k].eq((side != controller.side) & ~first)
        with m.If(controller.soft_reset):
            m.d.sync += early.eq(0)
        m.d.comb += any_fault.eq(1)
        with m.If(self.store.fault.valid):
            m.d.comb += found.eq(self.store.fault.fault)
        with m.Elif(faults[0]):
            m.d.comb += found.eq(self.execute.fault.fault)
        with m.Elif(faults[1]):
            m.d.comb += found.eq(self.access.fault.fault)
        with m.Elif(faults[2]):
            m.d.comb += [found.cause.eq(Cause.MEMORY_ERROR), found.address.eq(self.fabric.error_address)]
        with m.Elif(faults[3] & loader.misaligned):
            m.d.comb += [found.cause.eq(Cause.ALIGNMENT), found.address.eq(loader.program)]
        with m.Elif(faults[3]):
            m.d.comb += [found.cause.eq(Cause.PROGRAM), found.value.eq(loader.word_number)]
        with m.Elif(self.watchdog.hang):
            m.d.comb += [found.cause.eq(Cause.HANG), found.queue.eq(self._blocked_queue())]
        with m.Elif(self.watchdog.silent):
            m.d.comb += found.cause.eq(Cause.MEMORY_SILENT)
        with m.Else():
            m.d.comb += any_fault.eq(0)
        fault_now, record_lost = Signal(), Signal()
        m.d.comb += record_lost.eq(controller.record_phase & self.store.fault.valid)
        m.d.comb += controller.record_error.eq(record_lost)
        m.d.comb += fault_now.eq(any_fault & (controller.running | record_lost) & ~caught)
        self._keep_fault(m, fault_now, found, caught)
        m.d.comb += [controller.fault.eq(caught), self.port.cause.eq(self._fault.cause)]
        present = controller.side
        m.d.comb += [
            self.watchdog.running.eq(controller.running),
            self.watchdog.outstanding.eq(~self.fabric.idle.bit_select(present, 1) | ~self.store.quiet),
            self.watchdog.progress.eq(self._progress()),
        ]

    def _keep_fault(self, m: Module, fault_now: Value, found: Signal, caught: Signal) -> None:
        """Keep it, with the nest; and the first warning, whose value is the record's unless there is a fault."""
        controller, access = self.controller, self.access
        nests = Array(Signal(NEST_BITS, name=f"nest{side}") for side in range(2))
        warned = [Signal(name=f"warned{side}") for side in range(2)]
        early_value = Signal(64)
        with m.If(access.begins):
            m.d.sync += nests[access.side].eq(access.number)
        with m.If(access.warning & ~Array(warned)[access.side]):
            m.d.sync += Array(warned)[access.side].eq(1)
            with m.If(access.side != controller.side):
                m.d.sync += early_value.eq(access.warned_value)
            with m.Elif(~caught):
                m.d.sync += self._fault.value.eq(access.warned_value)
        for side in range(2):
            with m.If(self.loader.begin & (self.loader.side != side)):
                m.d.sync += [nests[side].eq(0), warned[side].eq(0)]
                with m.If(side != controller.side):
                    m.d.sync += early_value.eq(0)
        with m.If(fault_now):
            m.d.sync += [caught.eq(1), self._fault.eq(found), self._fault_nest.eq(nests[controller.side])]
        with m.If(controller.take | controller.clear_fault):
            m.d.sync += [caught.eq(0), self._fault.eq(0), self._fault_nest.eq(0)]
            with m.If(controller.cancel):  # a cancelled launch's record tells of no fault, but the machine has one
                m.d.sync += [caught.eq(1), self._fault.cause.eq(self._fault.cause)]
            with m.Elif(controller.take):
                m.d.sync += self._fault.value.eq(early_value)

    def _progress(self) -> Value:
        """Something of the present launch moved."""
        controller, access = self.controller, self.access
        present = controller.side
        moved = [
            stream_.valid & stream_.ready
            for stream_ in (self._token, self._scalar, self._address, *self._rows, self._rows_to_store)
        ]
        sent = [access.bundle, *(q.i.valid & q.i.ready for q in (self.tokens, self.scalars, self.addresses))]
        asked = self.merge.o.valid & self.merge.o.ready & (self.merge.o.payload.tag.side == present)
        returned = self.fabric.returns.valid & (self.fabric.returns.beat.side == present)
        return (
            Cat(asked, returned, self.store.acknowledged, self.store.line).any()
            | ((controller.execute_side == present) & Cat(*moved, self.execute.lane_beat).any())
            | ((access.side == present) & Cat(*sent).any())
            | ((self.loader.side == present) & self.loader.config_bus.valid)
        )

    def _blocked_queue(self) -> Value:
        """The queue a hang is blamed on: first one that a unit waits for in vain, then one that nobody
        empties.
        """
        execute = self.execute
        blocked: Value = Value.cast(QueueName.NONE.value)
        waits_for_data = self._address.valid | ~self.store.idle
        candidates = [
            (self._rows[0].valid, QueueName.VECTOR0),
            (self._rows[1].valid, QueueName.VECTOR1),
            (self._scalar.valid, QueueName.SCALAR),
            (self._rows_to_store.valid, QueueName.STORE_DATA),
            (self._rows[2].valid, QueueName.STREAM),
            (waits_for_data, QueueName.STORE_DATA),
            (execute.stall_scalar_empty, QueueName.SCALAR),
            (
                execute.stall_vector_empty,
                Mux(execute.awaits_vector0, QueueName.VECTOR0.value, QueueName.VECTOR1.value),
            ),
        ]
        for condition, name in candidates:
            blocked = Mux(condition, name if isinstance(name, Value) else name.value, blocked)
        return blocked

    def _write_records(self, m: Module) -> None:
        writer, controller, store, statistics = self.writer, self.controller, self.store, self.statistics
        # The loader is reset after a fault; where the record goes must be known all the same.
        record, launch, known, opened = Signal(ADDRESS_BITS), Signal(32), Signal(), Signal()
        read = ~(self.fabric.error & (self.fabric.error_side == self.loader.side))
        with m.If(self.loader.begin | controller.soft_reset):
            m.d.sync += opened.eq(0)
        with m.Elif(self.loader.opened & read):
            m.d.sync += opened.eq(1)
        with m.If(controller.take | (controller.running & ~self._ahead) | controller.cancelling):
            m.d.sync += [
                record.eq(self.loader.record), launch.eq(self.loader.number),
                known.eq(opened | (self.loader.opened & read)),
            ]  # fmt: skip
        m.d.comb += [
            writer.start.eq(controller.record_start),
            writer.address.eq(record),
            controller.record_done.eq(writer.done),
            controller.has_record.eq(known),
        ]
        for source, kept, target in (
            (self._address, writer.store_address, store.addresses),
            (self._rows_to_store, writer.store_data, store.data),
        ):
            m.d.comb += [
                target.valid.eq(Mux(controller.record_phase, kept.valid, source.valid)),
                target.payload.eq(Mux(controller.record_phase, kept.payload.as_value(), source.payload.as_value())),
                kept.ready.eq(target.ready & controller.record_phase),
                source.ready.eq(target.ready & ~controller.record_phase),
            ]
        head = Signal(RecordHead)
        cancelled = controller.state == State.CANCELLED
        m.d.comb += [
            head.state.eq(controller.state),
            head.cause.eq(Mux(cancelled, Cause.NONE, self._fault.cause)),
            head.nest.eq(self._fault_nest),
            head.level.eq(self._fault.level),
            head.queue.eq(self._fault.queue),
            head.launch.eq(launch),
        ]
        number = writer.number
        m.d.comb += statistics.number.eq(number - RecordWord.COUNTERS.value)
        late = Signal(64)
        with m.Switch(number):
            with m.Case(RecordWord.HEAD.value):
                m.d.sync += late.eq(head)
            with m.Case(RecordWord.VALUE.value):
                m.d.sync += late.eq(self._fault.value)
            with m.Case(RecordWord.ADDRESS.value):
                m.d.sync += late.eq(self._fault.address)
            for k in range(self.config.registers):
                with m.Case(RecordWord.REGISTER0.value + k):
                    m.d.sync += late.eq(self._fault.registers[k])
            with m.Default():
                m.d.sync += late.eq(Mux(number >= RecordWord.COUNTERS.value, statistics.value, 0))
        m.d.comb += writer.word.eq(late)

    def _join_statistics(self, m: Module) -> None:
        statistics, access, execute, store = self.statistics, self.access, self.execute, self.store
        counted = {
            Counter.ROWS: access.row,
            Counter.LOOKUPS: access.lookup,
            Counter.BUNDLES: access.bundle,
            Counter.TOKENS: access.token,
            Counter.LINES_READ: self.fabric.beat,
            Counter.LINES_WRITTEN: store.line,
            Counter.BYTES_WRITTEN: store.bytes,
            Counter.LANE_BEATS: execute.lane_beat,
            Counter.BOUNDS_WARNINGS: access.replaced,
            **{c: getattr(access, c.name.lower()) for c in ACCESS_STALLS},
            **{c: getattr(execute, c.name.lower()) for c in EXECUTE_STALLS},
        }
        marks = {
            Counter.MARK_TOKEN: self.tokens.mark,
            Counter.MARK_SCALAR: self.scalars.mark,
            Counter.MARK_VECTOR0: self.vectors.mark0,
            Counter.MARK_VECTOR1: self.vectors.mark1,
            Counter.MARK_STREAM: self.vectors.mark2,
            Counter.MARK_STORE_ADDRESS: self.addresses.mark,
            Counter.MARK_STORE_DATA: execute.mark_store_data,
        }
        for counter, strobe in counted.items():
            m.d.comb += getattr(statistics, f"count_{counter.name.lower()}").eq(strobe)
        for counter, mark in marks.items():
            m.d.comb += getattr(statistics, counter.name.lower()).eq(mark)
        controller, port = self.controller, self.port
        m.d.comb += [
            statistics.rung.eq(port.rung & (self.launches.level == 0)),
            statistics.begin.eq(self.loader.begin),
            statistics.begin_side.eq(~self.loader.side),
            statistics.cancel.eq(controller.cancel),
            statistics.take.eq(controller.take),
            statistics.side.eq(controller.side),
            statistics.stop.eq(~controller.running & ~controller.idle),
            statistics.flip.eq(controller.flip),
            statistics.forget.eq(controller.soft_reset),
            statistics.acknowledged.eq(controller.running & self.write.bvalid & self.write.bready),
            statistics.drained.eq(controller.draining & self.store.idle),
            statistics.side_read.eq(self.fabric.returns.beat.side),
            statistics.side_access.eq(access.side),
            statistics.side_execute.eq(controller.execute_side),
            statistics.side_store.eq(controller.side),
        ]
