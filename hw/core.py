"""The core: all units, joined. What gives it launches is outside of it."""

from amaranth import Cat, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.hdl import ClockDomain, DomainRenamer, Elaboratable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.access_unit import AccessUnit
from daedal.hw.config.core import Config
from daedal.hw.control.faults.activity import TAILS, Activity
from daedal.hw.control.faults.faults import Faults
from daedal.hw.control.launch_ports import LaunchPort
from daedal.hw.control.launch_tracker import LaunchTracker
from daedal.hw.control.loader import Loader
from daedal.hw.control.records.records import Records
from daedal.hw.execute_unit.execute_unit import ExecuteUnit
from daedal.hw.execute_unit.no_execute_unit import NoExecuteUnit
from daedal.hw.interfaces import (
    beat_stream,
    read_request_layout,
    scalar_layout,
    store_address_layout,
    token_layout,
)
from daedal.hw.memory.axi import ReadMaster, WriteMaster
from daedal.hw.memory.fabric.fabric import ReadFabric
from daedal.hw.memory.store.store_unit import StoreUnit
from daedal.hw.queues.arbiter import CombinationalArbiter
from daedal.hw.queues.beats_to_line import BeatsToLine, LinesToBeats
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.line_to_beats import LineToBeats
from daedal.hw.queues.reorder_buffer import ReorderBuffers
from daedal.hw.queues.skid_buffer import optional_skid
from daedal.hw.queues.up_down_counter import up_down

resettable = DomainRenamer("units")
"""Puts a component among those that a soft reset resets: one register is the reset of all of them."""


def _launch_queue(layout: data.StructLayout, depth: int) -> Fifo:
    """A queue whose entries remember the side of the launch that they belong to."""
    return Fifo(data.StructLayout({"entry": layout, "side": 1}), depth=depth)


class Core(wiring.Component):
    """All that runs launches, one at a time, while the next one begins: what a second core would have again.

    Members
    -------
    control : ``In(LaunchPort(config))``
        Launch control. A fault of any unit is caught and told there; units go on until ``halt``, and memory is in order
        when the core is ``quiet``.
    read0, read1, … : ``Out(ReadMaster(config))``
    write : ``Out(WriteMaster(config))``
        AXI4 masters.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._access = AccessUnit(config)
        self._execute = ExecuteUnit(config) if config.executes else NoExecuteUnit(config)
        self._vectors = ReorderBuffers(config)
        self._tokens = _launch_queue(token_layout(), config.token_depth)
        self._scalars = _launch_queue(scalar_layout(config), config.scalar_depth)
        self._addresses = _launch_queue(store_address_layout(config), config.store_address_depth)
        self._store = StoreUnit(config)
        self._fabric = ReadFabric(config)
        self._loader = Loader(config)
        self._merge = CombinationalArbiter(read_request_layout(config))
        self._tracker = LaunchTracker(config)
        self._activity = Activity(config)
        self._faults = Faults(config)
        self._records = Records(config)
        super().__init__(
            {
                "control": In(LaunchPort(config)),
                **{f"read{k}": Out(ReadMaster(config)) for k in range(config.ports)},
                "write": Out(WriteMaster(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        launch = self.control.launch
        # A cycle late, from registers: they reach all units. So does the machine's reset.
        soft_reset, halt, hold = Signal(init=1), Signal(), Signal()
        m.d.sync += [
            soft_reset.eq(launch.soft_reset), halt.eq(launch.halt), hold.eq(launch.hold | launch.soft_reset),
        ]  # fmt: skip
        m.domains.units = ClockDomain("units", local=True)
        m.d.comb += [ClockSignal("units").eq(ClockSignal()), ResetSignal("units").eq(soft_reset)]
        for name in ("access", "execute", "vectors", "tokens", "scalars", "addresses", "store", "fabric", "loader"):
            m.submodules[name] = resettable(getattr(self, f"_{name}"))
        for name in ("merge", "tracker", "activity", "faults", "records"):
            m.submodules[name] = getattr(self, f"_{name}")
        for watcher in (self._tracker, self._faults, self._records):
            m.d.comb += watcher.reset.eq(soft_reset)
        left = [*self._join_queues(m), *self._join_rows(m)]
        self._join_memory(m)
        self._join_loader(m, halt, hold)
        self._join_watchers(m, Cat(left).any())
        return m

    def _join_queues(self, m: Module) -> list[Value]:
        """What belongs to the launch after the present one waits in the queues until its turn comes.

        Returns for each queue whether something of the present launch is in it.
        """
        access, execute, launch, config = self._access, self._execute, self.control.launch, self._config
        connect(m, access.reserve, self._vectors.reserve)
        m.d.comb += [access.slot.eq(self._vectors.slot), self._vectors.clear.eq(launch.flip)]
        token, scalar, address = (stream.Signature(layout).create(path=(name,)) for name, layout in (
            ("token", token_layout()), ("scalar", scalar_layout(config)), ("address", store_address_layout(config))
        ))  # fmt: skip
        left: list[Value] = []
        for source, queue, target, open_, side in (
            (access.tokens, self._tokens, token, 1, launch.execute_side),
            (access.scalars, self._scalars, scalar, 1, launch.execute_side),
            (access.store_addresses, self._addresses, address, launch.open, launch.side),
        ):
            mine = open_ & (queue.o.payload.side == side)
            m.d.comb += [
                queue.i.valid.eq(source.valid),
                queue.i.payload.entry.eq(source.payload),
                queue.i.payload.side.eq(access.report.side),
                source.ready.eq(queue.i.ready),
                target.valid.eq(queue.o.valid & mine),
                target.payload.eq(queue.o.payload.entry),
                queue.o.ready.eq(target.ready & mine),
                queue.clear.eq(launch.flip),
            ]
            left.append(queue.o.valid & (queue.o.payload.side == launch.side))
        connect(m, token, execute.tokens)
        # That a scalar is taken is known late.
        m.submodules.next_scalar = resettable(following := optional_skid(config, scalar_layout(config)))
        connect(m, scalar, following.i)
        connect(m, following.o, execute.scalars)
        connect(m, address, self._records.addresses)
        ends = self._activity.ends
        for end, seen in ((ends.token, token), (ends.scalar, following.o), (ends.address, address)):
            m.d.comb += [end.valid.eq(seen.valid), end.ready.eq(seen.ready)]
        left.append(~following.empty & (launch.execute_side == launch.side))
        return left

    def _join_rows(self, m: Module) -> list[Value]:
        """Rows to and from the execute unit, whose beats may be narrower than lines.

        Returns as :meth:`_join_queues`.
        """
        execute, vectors, launch = self._execute, self._vectors, self.control.launch
        rows, left = [], []
        for n, source in enumerate((vectors.vector0, vectors.vector1, vectors.stream)):
            row = beat_stream(self._config).create(path=(f"row{n}",))
            mine = vectors.sides[n] != launch.execute_other
            m.d.comb += [
                row.valid.eq(source.valid & mine), row.payload.eq(source.payload), source.ready.eq(row.ready & mine)
            ]  # fmt: skip
            left.append(source.valid & (vectors.sides[n] == launch.side))
            rows.append(row)
        connect(m, rows[2], self._store.stream_data)
        if self._config.executes:
            self._count_streams(m, rows[2])
        to_store = beat_stream(self._config).create(path=("to_store",))
        execute_idle = self._tracker.execute_idle
        held: list[Value] = []
        if self._config.executes:
            held = self._join_beats(m, rows, to_store, execute_idle)
        else:
            m.d.comb += execute_idle.eq(execute.idle)
        connect(m, to_store, self._records.data)
        ends = self._activity.ends
        for end, seen in zip((ends.row0, ends.row1, ends.row2, ends.to_store), (*rows, to_store), strict=True):
            m.d.comb += [end.valid.eq(seen.valid), end.ready.eq(seen.ready)]
        for end, seen, some in zip((ends.row0, ends.row1), rows, held, strict=False):
            m.d.comb += [end.valid.eq(seen.valid | some), end.ready.eq(seen.valid & seen.ready)]
            left.append(some & (launch.execute_side == launch.side))
        return left

    def _count_streams(self, m: Module, row: stream.Interface) -> None:
        """Tell the execute unit of rows of the store stream whose address is known, and that are not stored yet."""
        address = self._access.store_addresses
        # Those in the queue, in the store unit and in the skid buffers between.
        streams = Signal(range(self._config.store_address_depth + 8))
        m.submodules.streams = DomainRenamer("units")(counting := Module())
        up_down(
            counting,
            streams,
            up=address.valid & address.ready & address.payload.stream,
            down=row.valid & row.ready & row.payload.last,
        )
        m.d.comb += self._execute.streaming.eq(streams.any())

    def _join_beats(
        self, m: Module, rows: list[wiring.PureInterface], to_store: wiring.PureInterface, idle: Value
    ) -> list[Value]:
        """Lines of two rows to the execute unit's beats, and back; ``idle``: no row is on its way, nothing to do.

        Returns for each queue whether lines of it are held here, if some can be.
        """
        execute = self._execute
        if self._config.lane_bytes == self._config.bus_bytes:
            connect(m, rows[0], execute.vector0)
            connect(m, rows[1], execute.vector1)
            connect(m, execute.stores, flipped(to_store))
            m.d.comb += idle.eq(execute.idle)
            return []
        if self._config.lane_bytes > self._config.bus_bytes:
            return self._join_narrow_lines(m, rows, to_store, idle)
        for row, name in zip(rows, ("vector0", "vector1"), strict=False):
            cutter = LineToBeats(self._config)
            m.submodules[f"cut_{name}"] = resettable(cutter)
            connect(m, row, cutter.i)
            connect(m, cutter.o, getattr(execute, name))
        packer = BeatsToLine(self._config)
        m.submodules.pack = resettable(packer)
        connect(m, execute.stores, packer.i)
        connect(m, packer.o, flipped(to_store))
        m.d.comb += idle.eq(execute.idle & packer.empty)
        return []

    def _join_narrow_lines(
        self, m: Module, rows: list[wiring.PureInterface], to_store: wiring.PureInterface, idle: Value
    ) -> list[Value]:
        """The same where a beat of the execute unit has several lines.

        Beats of the first row last for several cycles if their elements are narrow, so the next one is packed
        meanwhile; those of the second row are of binary32.
        """
        execute = self._execute
        m.submodules.pack_vector0 = resettable(first := LinesToBeats(self._config))
        m.submodules.pack_vector1 = resettable(second := BeatsToLine(self._config))
        m.submodules.cut = resettable(cutter := LineToBeats(self._config))
        for row, packer, target in ((rows[0], first, execute.vector0), (rows[1], second, execute.vector1)):
            connect(m, row, packer.i)
            connect(m, packer.o, target)
        connect(m, execute.stores, cutter.i)
        connect(m, cutter.o, flipped(to_store))
        m.d.comb += idle.eq(execute.idle)
        return [~first.empty, ~second.empty]

    def _join_memory(self, m: Module) -> None:
        fabric, store, merge = self._fabric, self._store, self._merge
        connect(m, self._loader.requests, merge.first)
        connect(m, self._access.requests, merge.second)
        connect(m, merge.o, fabric.requests)
        connect(m, fabric.returns, self._loader.returns, self._access.returns, self._vectors.returns)
        connect(m, self._records.store_addresses, store.addresses)
        connect(m, self._records.store_data, store.data)
        m.d.comb += [
            fabric.older.eq(self.control.launch.side),
            store.window.eq(self._records.window),
            store.guard.eq(self._records.guard),
            store.early.eq(self._vectors.plenty | fabric.report.idle.all()),
            store.mixed.eq(self.control.mixed),
        ]
        # A cycle late: it decides late what all ports do, and a burst more or less makes no difference.
        m.d.sync += [
            fabric.hold.eq(store.hold), store.flush.eq(~self.control.launch.open | self._tracker.all_sent),
        ]  # fmt: skip
        for k in range(self._config.ports):
            connect(m, getattr(fabric, f"read{k}"), flipped(getattr(self, f"read{k}")))
        connect(m, store.write, flipped(self.write))

    def _join_loader(self, m: Module, halt: Value, hold: Value) -> None:
        """Launches to the loader, programs to the units."""
        access, execute, loader, launch, block = (
            self._access, self._execute, self._loader, self.control.launch, self.control.block
        )  # fmt: skip
        ahead = self._tracker.progress.ahead
        connect(m, loader.config_bus, access.config_bus, execute.config_bus)
        m.d.comb += [
            # A launch leaves its queue a cycle late: that it is taken comes late.
            loader.launch.valid.eq(block.valid & ~launch.taken & ~hold & ~ahead),
            loader.launch.payload.eq(block.payload),
            block.ready.eq(launch.taken),
            loader.room.eq(access.room),
            loader.wait.eq(ahead),
            access.start.eq(loader.run),
            access.nest.eq(loader.nest),
            execute.side.eq(launch.execute_side),
            execute.launch.eq(launch.flip),
            *(unit.halt.eq(halt) for unit in (loader, access, execute, self._store)),
        ]
        m.d.sync += [loader.cancel.eq(launch.cancel), loader.nests_done.eq(access.done)]

    def _join_watchers(self, m: Module, left: Value) -> None:
        """What follows launches, catches faults and writes records."""
        tracker, activity, faults, records = self._tracker, self._activity, self._faults, self._records
        access, execute, fabric, store, loader = self._access, self._execute, self._fabric, self._store, self._loader
        connect(m, flipped(self.control.launch), *(w.launch for w in (tracker, activity, faults, records)))
        connect(m, loader.report, *(w.loader for w in (tracker, activity, faults, records)))
        connect(m, fabric.report, *(w.fabric for w in (tracker, activity, faults, records)))
        connect(m, store.report, *(w.store for w in (tracker, activity, records)))
        connect(m, access.report, *(w.access for w in (activity, faults, records)))
        connect(m, execute.report, *(w.execute for w in (activity, records)))
        connect(m, store.fault, faults.store_fault)
        connect(m, execute.fault, faults.execute_fault)
        connect(m, access.fault, faults.access_fault)
        connect(m, activity.o, faults.activity)
        connect(m, faults.kept, records.fault)
        connect(m, tracker.progress, flipped(self.control.progress))
        connect(m, faults.caught, flipped(self.control.fault))
        connect(m, records.status, flipped(self.control.record))
        request, ends, marks = self._merge.o, activity.ends, records.marks
        for name in TAILS:
            queue, end = getattr(self, f"_{name}"), getattr(ends, name)
            m.d.comb += [end.valid.eq(queue.i.valid), end.ready.eq(queue.i.ready)]
        m.d.comb += [
            ends.asked.eq(request.valid & request.ready),
            ends.asked_side.eq(request.payload.tag.side),
            ends.configured.eq(loader.config_bus.valid),
            ends.swept.eq(self._vectors.swept),
            marks.token.eq(self._tokens.mark),
            marks.scalar.eq(self._scalars.mark),
            marks.store_address.eq(self._addresses.mark),
            marks.vector0.eq(self._vectors.mark0),
            marks.vector1.eq(self._vectors.mark1),
            marks.stream.eq(self._vectors.mark2),
            tracker.open.eq(access.open),
            tracker.pending.eq(access.pending),
            tracker.left.eq(left),
            tracker.asking.eq(request.valid),
            tracker.asking_side.eq(request.payload.tag.side),
            tracker.taking.eq(store.taking),
            faults.ahead.eq(tracker.progress.ahead),
            records.ahead.eq(tracker.progress.ahead),
            records.rung.eq(self.control.rung),
        ]
