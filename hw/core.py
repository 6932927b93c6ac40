"""The core: all units, joined."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.hw.access_unit.access_unit import AccessUnit
from daedal.hw.config import ADDRESS_BITS, Config
from daedal.hw.execute_unit.execute_unit import ExecuteUnit
from daedal.hw.host.control_port import ControlPort
from daedal.hw.host.controller import Controller
from daedal.hw.host.loader import Loader
from daedal.hw.host.record_writer import RecordWriter
from daedal.hw.host.statistics import Statistics
from daedal.hw.host.watchdog import Watchdog
from daedal.hw.interfaces import (
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

        self.access = unit("access", AccessUnit(config))
        self.execute = unit("execute", ExecuteUnit(config))
        self.vectors = unit("vectors", VectorQueues(config))
        self.tokens = unit("tokens", Queue(token_layout(), depth=config.token_depth))
        self.scalars = unit("scalars", Queue(scalar_layout(), depth=config.scalar_depth))
        self.addresses = unit("addresses", Queue(store_address_layout(), depth=config.store_address_depth))
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
        access, execute = self.access, self.execute
        connect(m, access.tokens, self.tokens.i)
        connect(m, access.scalars, self.scalars.i)
        connect(m, access.store_addresses, self.addresses.i)
        connect(m, access.reserve, self.vectors.reserve)
        m.d.comb += access.slot.eq(self.vectors.slot)
        connect(m, self.tokens.o, execute.tokens)
        connect(m, self.scalars.o, execute.scalars)
        self._join_rows(m)
        connect(m, self.vectors.stream, self.store.stream_data)
        begin = self.loader.begin
        for queue in (self.tokens, self.scalars, self.addresses, self.vectors):
            m.d.comb += queue.clear.eq(begin)

    def _join_rows(self, m: Module) -> None:
        """Rows to and from the execute unit, whose beats may be narrower than lines."""
        execute, vectors = self.execute, self.vectors
        if self.config.lane_bytes == self.config.bus_bytes:
            connect(m, vectors.vector0, execute.vector0)
            connect(m, vectors.vector1, execute.vector1)
            self._rows_to_store, self._execute_idle = execute.stores, execute.idle
            return
        reset = ResetInserter(self._soft_reset)
        for name in ("vector0", "vector1"):
            cutter = Cutter(self.config)
            m.submodules[f"cut_{name}"] = reset(cutter)
            connect(m, getattr(vectors, name), cutter.i)
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
        for unit in (self.loader, self.access, self.vectors):
            m.d.comb += [
                unit.returns.valid.eq(self.fabric.returns.valid),
                unit.returns.beat.eq(self.fabric.returns.beat),
            ]
        for k in range(self.config.ports):
            connect(m, getattr(self.fabric, f"read{k}"), flipped(getattr(self, f"read{k}")))
        connect(m, self.store.write, flipped(self.write))

    def _join_host(self, m: Module) -> None:
        controller, loader, port = self.controller, self.loader, self.port
        connect(m, flipped(self.control), port.bus)
        connect(m, port.doorbell, self.launches.i)
        drained, empty = Signal(), Signal()
        m.d.comb += [
            empty.eq((self.tokens.level == 0) & (self.scalars.level == 0) & (self.addresses.level == 0)),
            drained.eq(
                empty
                & self.access.done
                & self.vectors.empty
                & self._execute_idle
                & self.store.idle
                & self.fabric.idle
                & ~self.merge.o.valid
            ),
            loader.launch.valid.eq(self.launches.o.valid & ~controller.hold),
            loader.launch.payload.eq(self.launches.o.payload),
            self.launches.o.ready.eq(loader.launch.ready & ~controller.hold),
            loader.cancel.eq(controller.cancel),
            loader.halt.eq(controller.halt),
            loader.nest_done.eq(self.access.done),
            self.access.start.eq(loader.run),
            self.access.halt.eq(controller.halt),
            self.execute.halt.eq(controller.halt),
            self.execute.launch.eq(loader.begin),
            self.store.halt.eq(controller.halt),
            self.store.flush.eq(~controller.running | (empty & self.access.done & self._execute_idle)),
            controller.begin.eq(loader.begin),
            controller.program_done.eq(loader.done),
            controller.drained.eq(drained),
            controller.quiet.eq(self.fabric.idle & self.store.quiet & ~self.merge.o.valid),
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
        for unit in (self.access, self.execute):
            m.d.comb += [
                unit.config_bus.valid.eq(loader.config_bus.valid),
                unit.config_bus.word.eq(loader.config_bus.word),
                unit.config_bus.clear.eq(loader.config_bus.clear),
            ]
        with m.If(controller.ended):
            m.d.sync += port.completed.eq(port.completed + 1)

    def _catch_faults(self, m: Module) -> None:
        """The first fault of a launch is kept; of several in one cycle, the one furthest down the machine."""
        self._fault, self._fault_nest = Signal(fault_layout(self.config)), Signal(8)
        caught, any_fault, found = Signal(), Signal(), Signal(fault_layout(self.config))
        m.d.comb += any_fault.eq(1)
        with m.If(self.store.fault.valid):
            m.d.comb += found.eq(self.store.fault.fault)
        with m.Elif(self.execute.fault.valid):
            m.d.comb += found.eq(self.execute.fault.fault)
        with m.Elif(self.access.fault.valid):
            m.d.comb += found.eq(self.access.fault.fault)
        with m.Elif(self.fabric.error):
            m.d.comb += [found.cause.eq(Cause.MEMORY_ERROR), found.address.eq(self.fabric.error_address)]
        with m.Elif(self.loader.misaligned):
            m.d.comb += [found.cause.eq(Cause.ALIGNMENT), found.address.eq(self.loader.program)]
        with m.Elif(self.loader.illegal):
            m.d.comb += [found.cause.eq(Cause.PROGRAM), found.value.eq(self.loader.word_number)]
        with m.Elif(self.watchdog.hang):
            m.d.comb += [found.cause.eq(Cause.HANG), found.queue.eq(self._blocked_queue())]
        with m.Elif(self.watchdog.silent):
            m.d.comb += found.cause.eq(Cause.MEMORY_SILENT)
        with m.Else():
            m.d.comb += any_fault.eq(0)
        fault_now, record_lost = Signal(), Signal()
        m.d.comb += record_lost.eq(self.controller.record_phase & self.store.fault.valid)
        m.d.comb += self.controller.record_error.eq(record_lost)
        m.d.comb += fault_now.eq(any_fault & (self.controller.running | record_lost) & ~caught)
        warned = Signal()  # VALUE is that of a launch's first warning, until a fault takes its place
        with m.If(self.access.warning & ~warned & ~caught):
            m.d.sync += [warned.eq(1), self._fault.value.eq(self.access.warned_value)]
        with m.If(fault_now):
            m.d.sync += [caught.eq(1), self._fault.eq(found), self._fault_nest.eq(self.loader.nest)]
        with m.If(self.controller.begin | self.controller.clear_fault):
            m.d.sync += [caught.eq(0), warned.eq(0), self._fault.eq(0), self._fault_nest.eq(0)]
            with m.If(self.controller.cancel):  # a cancelled launch's record tells of no fault, but the machine has one
                m.d.sync += [caught.eq(1), self._fault.cause.eq(self._fault.cause)]
        m.d.comb += [self.controller.fault.eq(caught), self.port.cause.eq(self._fault.cause)]
        m.d.comb += [
            self.watchdog.running.eq(self.controller.running),
            self.watchdog.outstanding.eq(~self.fabric.idle | ~self.store.quiet),
            self.watchdog.progress.eq(self._progress()),
        ]

    def _progress(self) -> Value:
        moved = [
            stream_.valid & stream_.ready
            for stream_ in (
                self.tokens.i, self.tokens.o, self.scalars.i, self.scalars.o, self.addresses.i,
                self.addresses.o, self.vectors.vector0, self.vectors.vector1, self.vectors.stream,
                self.merge.o, self._rows_to_store,
            )
        ]  # fmt: skip
        return Cat(
            *moved, self.access.bundle, self.execute.lane_beat, self.fabric.returns.valid,
            self.loader.config_bus.valid, self.store.acknowledged, self.store.line,
        ).any()  # fmt: skip

    def _blocked_queue(self) -> Value:
        """The queue a hang is blamed on: first one that a unit waits for in vain, then one that nobody
        empties.
        """
        execute, vectors = self.execute, self.vectors
        blocked: Value = Value.cast(QueueName.NONE.value)
        waits_for_data = (self.addresses.level != 0) | ~self.store.idle
        candidates = [
            (vectors.occupied[0], QueueName.VECTOR0),
            (vectors.occupied[1], QueueName.VECTOR1),
            (self.scalars.level != 0, QueueName.SCALAR),
            (self._rows_to_store.valid, QueueName.STORE_DATA),
            (vectors.occupied[2], QueueName.STREAM),
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
        record, launch, known = Signal(ADDRESS_BITS), Signal(32), Signal()
        with m.If(self.loader.begin):
            m.d.sync += known.eq(0)
        with m.Elif(self.loader.opened & ~self.fabric.error):
            m.d.sync += known.eq(1)
        with m.If(controller.running | controller.cancelling):
            m.d.sync += [record.eq(self.loader.record), launch.eq(self.loader.number)]
        m.d.comb += [
            writer.start.eq(controller.record_start),
            writer.address.eq(record),
            controller.record_done.eq(writer.done),
            controller.has_record.eq(known),
        ]
        for source, kept, target in (
            (self.addresses.o, writer.store_address, store.addresses),
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
            statistics.rung.eq((port.rung & controller.idle & (self.launches.level == 0)) | controller.ended),
            statistics.begin.eq(self.loader.begin),
            statistics.enable.eq(controller.running),
            statistics.acknowledged.eq(self.write.bvalid & self.write.bready),
            statistics.drained.eq(controller.drained),
        ]
