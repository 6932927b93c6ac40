"""Every unit with streams, and how its proof is done."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.asserts import AnyConst
from amaranth.hdl import Assume, Value
from amaranth.lib import data, wiring

from daedal.hw.access_unit.events.row_fetch import RowFetch, RowSplit
from daedal.hw.access_unit.events.step_issue import StepIssue
from daedal.hw.access_unit.events.step_sequencer import StepSequencer
from daedal.hw.access_unit.interleaving.interleaver import Interleaver
from daedal.hw.access_unit.levels.pipelined.activation import Activation
from daedal.hw.access_unit.levels.serial.line_cache import LineCache
from daedal.hw.access_unit.levels.serial.serial_level import SerialLevel
from daedal.hw.access_unit.loads.line_prefetcher import LinePrefetcher
from daedal.hw.access_unit.loads.load_port import LoadPort
from daedal.hw.access_unit.loads.random_load import RandomLoad
from daedal.hw.access_unit.loads.sequential_loads import SequentialLoads
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.control.records.record_writer import RecordWriter
from daedal.hw.control.records.records import Records
from daedal.hw.control.word_reader import WordReader
from daedal.hw.execute_unit.execute_unit import ExecuteUnit
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.fpu.float_reciprocal import Reciprocal
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.frontend.dispatch import Dispatch
from daedal.hw.execute_unit.frontend.dispatch_queue import DispatchQueue
from daedal.hw.execute_unit.frontend.fetch import Fetch
from daedal.hw.execute_unit.frontend.frontend import Frontend
from daedal.hw.execute_unit.frontend.quotients import Quotients
from daedal.hw.execute_unit.stage_layouts import Kind, issue_layout
from daedal.hw.execute_unit.vector import beat_issue as lanes
from daedal.hw.execute_unit.vector.store_port import StorePort
from daedal.hw.isa.instructions import OperandKind
from daedal.hw.memory.fabric.fabric import ReadFabric
from daedal.hw.memory.fabric.read_port import ReadPort
from daedal.hw.memory.port_joiner import PortJoiner
from daedal.hw.memory.store.row_reader import RowReader
from daedal.hw.memory.store.store_unit import StoreUnit
from daedal.hw.memory.store.write_batcher import WriteBatcher
from daedal.hw.memory.store.write_port import WritePort
from daedal.hw.queues.arbiter import CombinationalArbiter, RegisteredArbiter
from daedal.hw.queues.beats_to_line import BeatsToLine
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.line_to_beats import LineToBeats
from daedal.hw.queues.reorder_buffer import ReorderBuffers
from daedal.hw.queues.skid_buffer import Single, SkidBuffer
from tests.formal.narrow import GROUPED, IN_TURN, TINY, narrow
from tests.formal.streams import Watch


@dataclass(frozen=True)
class Case:
    """A unit whose streams are proved.

    ``depth``: cycles in which traffic must be able to pass, and of the proof unless ``induction`` says over how many
    cycles an induction closes. ``options``: as of ``Watch``. ``abstract``: what a memory gives is arbitrary in each
    cycle, which is quicker to prove, but not true of a memory whose output is a stream's payload.
    """

    name: str
    make: Callable[[], wiring.Component]
    depth: int
    induction: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    abstract: bool = True

    def watch(self) -> Watch:
        """The specification, anew."""
        return Watch(self.make(), **self.options)


def _changes(m: Module, value: Value) -> Value:
    """Whether ``value`` is another one than in the cycle before."""
    before = Signal.like(Value.cast(value))
    m.d.sync += before.eq(value)
    return before != value


def _halts(m: Module, unit: Any) -> Value:
    return unit.halt


def _restarts(m: Module, unit: Any) -> Value:
    return unit.restart


def _stops(m: Module, unit: Any) -> Value:
    return unit.stop | unit.start


def _division_returns(m: Module, unit: Any) -> Value:
    """One that waited goes before the row that was offered; it is offered until it is taken."""
    row = unit.issue.payload
    return (row.divides | ((row.op == LaneOp.MOVE) & ~row.partial)) & ~register(m, row.divides, "divided")


def _asked_for(m: Module, unit: Any) -> None:
    """Lines come only when some were asked for."""
    m.d.comb += Assume(~unit.returns.valid | ~unit.idle)


def _one_takes(m: Module, unit: Any) -> None:
    """A core takes a beat of one port at a time. What waits is another port's: ``test_port_joiner_proof.py``."""
    m.d.comb += Assume(~(unit.read0.rready & unit.read1.rready))


def _first_comes(m: Module, unit: Any) -> Value:
    return unit.first.valid


def _words_before_bundles(m: Module, unit: Any) -> None:
    """A nest's words have come when its bundles do."""
    bus = unit.config_bus
    m.d.comb += Assume(~unit.i.valid | ~(bus.valid | bus.clear))


def _same_address(m: Module, unit: Any) -> None:
    m.d.comb += Assume(unit.address == AnyConst(len(unit.address)))


def _record_after_launch(m: Module, unit: Any) -> None:
    """Where a record goes does not change while it is written."""
    launch = unit.launch
    m.d.comb += Assume(~(launch.record_phase | launch.record_start) | ~(launch.running | launch.cancelling))
    m.d.comb += Assume(~launch.record_start | launch.record_phase)


def _hands_over(m: Module, unit: Any) -> Value:
    """The store unit goes from the units to the record writer or back, or the writer is reset."""
    return _changes(m, unit.launch.record_phase) | unit.reset


def _uses_scalar(row: Any) -> Value:
    return (row.a.kind == OperandKind.SCALAR) | (row.b.kind == OperandKind.SCALAR)


def _without_unused_scalar(payload: Value) -> Value:
    """A row that uses no scalar carries whatever is on the queue's output."""
    row = data.View(issue_layout(TINY), payload)
    used = _uses_scalar(row) | row.divides
    return Cat(*(Value.cast(row[name]) for name, _ in issue_layout(TINY) if name != "scalar"), Mux(used, row.scalar, 0))


def _without_unused_sent_scalar(payload: Value) -> Value:
    """The same with the bit behind it."""
    return Cat(_without_unused_scalar(payload[:-1]), payload[-1])


def _decoded(m: Module, unit: Any) -> None:
    """What the decoder says agrees with itself."""
    code = unit.i.payload
    m.d.comb += Assume(code.needs_scalar == (_uses_scalar(code.issue) | code.issue.divides))
    m.d.comb += Assume(~code.issue.divides | (code.kind == Kind.LANES))


def _sent_to_store(m: Module, unit: Any) -> None:
    """A row or scalar can only begin to wait for its store in the cycle after it was sent there."""
    store = unit.store
    sent, sent_scalar, before = Signal(), Signal.like(unit.stored), Signal(4)
    stored_before = Signal.like(unit.stored)
    same, same_read, of_sent = Signal(), Signal(), Signal()
    last, held = Signal.like(Cat(unit.held_register, unit.held_context)), Signal.like(unit.held_register)
    m.d.sync += [
        sent.eq(store.valid & store.ready),
        sent_scalar.eq(Mux(store.valid & store.ready & store.payload.scalar, 1 << store.payload.register, 0)),
        before.eq(Cat(unit.held, unit.reading, unit.long, unit.pending)),
        held.eq(unit.held_register),
        stored_before.eq(unit.stored),
        last.eq(Cat(store.payload.register, store.payload.context)),
    ]
    m.d.comb += [
        same.eq(~_changes(m, Cat(unit.held_register, unit.held_context))),
        same_read.eq(~_changes(m, Cat(unit.read_register, unit.read_long))),
    ]
    m.d.comb += of_sent.eq(last == Cat(unit.held_register, unit.held_context))
    m.d.comb += [
        Assume(~unit.held | (sent & of_sent) | (~sent & before[0] & same)),
        Assume(~unit.pending | (sent & of_sent) | (~sent & before[3] & same)),
        Assume(~unit.reading | (before[1] & same_read) | (before[3] & (unit.read_register == held))),
        Assume(~unit.long | sent | (before[2] & same)),
        Assume(~unit.read_long | sent | same_read | before[2]),
        Assume((unit.stored & ~stored_before & ~sent_scalar) == 0),
    ]


SERIAL = narrow(**{**vars(TINY), "serial": (True, True)})
"""The same with serial levels."""

KEEPS = narrow(**{**vars(TINY), "kept_beats": 3})
"""The same with room to keep rows."""

CASES = (
    Case("queue-distributed", lambda: Fifo(2, depth=3), 8, 6),
    Case("queue-shortest", lambda: Fifo(2, depth=2), 8, 6),
    Case("queue-block", lambda: Fifo(2, depth=40), 8, 6),
    Case("skid", lambda: SkidBuffer(2), 12),
    Case("single-register", lambda: Single(2), 8),
    Case("merge", lambda: RegisteredArbiter(2), 8, 3),
    Case("choice", lambda: CombinationalArbiter(2), 8, 3, {"excused": {"o": _first_comes}}),
    Case("vector-queues", lambda: ReorderBuffers(TINY), 14, 4),
    Case("cutter", lambda: LineToBeats(TINY), 8, 3),
    Case("packer", lambda: BeatsToLine(TINY), 8, 3),
    Case("row-split", lambda: RowSplit(TINY), 10, 3),
    Case("row-fetch", lambda: RowFetch(TINY), 12, 0, {"excused": {"reserve": _halts}}),
    Case("sequencer", lambda: StepSequencer(TINY), 12, 3),
    Case("issue", lambda: StepIssue(TINY), 10, 3),
    Case("activation", lambda: Activation(TINY, 0), 8, 3),
    Case("line-fetcher", lambda: LinePrefetcher(TINY, 0), 12, 3, {"excused": {"request": _restarts}}),
    # A load that restarts takes back the request that it no longer needs.
    Case("sequential-loads", lambda: SequentialLoads(TINY, 0, 0), 12, 3, {"free": ("requests0",)}),
    Case("random-load", lambda: RandomLoad(TINY, 1, 1, 0), 12, 3),
    Case("contexts", lambda: Interleaver(IN_TURN, 0, 0), 14, 3),
    Case("line-cache", lambda: LineCache(TINY, 0, 2), 12, 3),
    Case("serial-level", lambda: SerialLevel(SERIAL, 1), 21, 0, {"surroundings": _words_before_bundles}),
    Case("load-port", lambda: LoadPort(TINY, 3), 10, 3, {"free": ("units0", "units1", "units2")}),
    Case("read-port", lambda: ReadPort(TINY, 0), 10),
    Case("read-port-groups", lambda: ReadPort(GROUPED, 0), 10, abstract=False),
    Case("joined-ports", lambda: PortJoiner(TINY), 10, 3,
         {"surroundings": _one_takes, "relevant": {f"read{n}_r": lambda whole: whole[:0] for n in range(2)}}),
    Case("fabric", lambda: ReadFabric(TINY), 12),
    Case("row-reader", lambda: RowReader(TINY), 10, 3),
    Case("write-port", lambda: WritePort(TINY), 10, 3),
    Case("write-batcher", lambda: WriteBatcher(TINY), 14, 3),
    Case("store-unit", lambda: StoreUnit(TINY), 18, 3),
    Case("fetch", lambda: Fetch(TINY), 12, 3),
    Case("front", lambda: Frontend(TINY), 14, 3),
    Case("dispatch", lambda: Dispatch(TINY), 10, 0,
         {"surroundings": _decoded, "unused": ("result",), "relevant": {"o": _without_unused_sent_scalar}}),
    Case("hand-over", lambda: DispatchQueue(TINY), 10, 0,
         {"surroundings": _sent_to_store, "excused": {"issue": _division_returns}}),
    Case("quotients", lambda: Quotients(TINY), 24, 0, {"passed": 1}),
    Case("reciprocal", lambda: Reciprocal(), 8, 3, abstract=False),
    Case("lanes-issue", lambda: lanes.BeatIssue(TINY), 10, 3),
    Case("dispatch-keeps", lambda: Dispatch(KEEPS), 10, 0,
         {"surroundings": _decoded, "unused": ("result",), "relevant": {"o": _without_unused_sent_scalar}}),
    Case("lanes-issue-keeps", lambda: lanes.BeatIssue(KEEPS), 10, 3),
    Case("execute-unit-keeps", lambda: ExecuteUnit(KEEPS), 26, 3, {"passed": 1}),
    Case("store-port", lambda: StorePort(TINY), 22, 3),
    Case("execute-unit", lambda: ExecuteUnit(TINY), 26, 3, {"passed": 1}),
    Case("line-reader", lambda: WordReader(TINY), 16, 3,
         {"surroundings": _asked_for, "excused": {"words": _stops}}),
    Case("record-writer", lambda: RecordWriter(TINY), 12, 3, {"surroundings": _same_address, "passed": 1}),
    Case("records", lambda: Records(TINY), 10, 3,
         {"surroundings": _record_after_launch,
          "excused": {"store_addresses": _hands_over, "store_data": _hands_over}}),
    # A doorbell that finds no room is dropped, and the host is told.
    Case("control-port", lambda: ControlRegisters(TINY), 10, 3, {"free": ("doorbell",)}),
)  # fmt: skip
