"""The execute unit."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Member, Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.float_format import register
from daedal.hw.execute_unit.fpu.iterative_unit import IterativeUnit
from daedal.hw.execute_unit.frontend.dispatch import Dispatch
from daedal.hw.execute_unit.frontend.dispatch_queue import DispatchQueue
from daedal.hw.execute_unit.frontend.frontend import Frontend
from daedal.hw.execute_unit.stage_layouts import elements
from daedal.hw.execute_unit.vector.beat_issue import BeatIssue
from daedal.hw.execute_unit.vector.narrow_rows import NarrowRows, WidenRows
from daedal.hw.execute_unit.vector.reduction_tree import ReductionTree
from daedal.hw.execute_unit.vector.row_store import RowStore
from daedal.hw.execute_unit.vector.store_port import StorePort
from daedal.hw.execute_unit.vector.unpack_rows import UnpackRows
from daedal.hw.execute_unit.vector.vector_path import VectorPath
from daedal.hw.interfaces import ConfigBus, FaultPort, lane_beat_stream, scalar_layout, token_layout
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.reports import ExecuteReport


def execute_ports(config: Config) -> dict[str, Member]:
    """The members of an execute unit, and of what stands in its place in a machine without one."""
    return {
        "config_bus": In(ConfigBus()),
        "side": In(1),
        "launch": In(1),
        "tokens": In(stream.Signature(token_layout())),
        "scalars": In(stream.Signature(scalar_layout(config))),
        "vector0": In(lane_beat_stream(config)),
        "vector1": In(lane_beat_stream(config)),
        "stores": Out(lane_beat_stream(config)),
        "streaming": In(1),
        "idle": Out(1),
        "halt": In(1),
        "fault": Out(FaultPort(config)),
        "report": Out(ExecuteReport(config)),
    }


class ExecuteUnit(wiring.Component):
    """Runs a callback for each token: temporal-vector instructions on binary32 rows, ``lanes`` elements a
    cycle.

    An instruction on a row of n beats takes n issue cycles, and the next one follows at once, in the same
    callback or the next, whose first instruction may come with every cycle. A register can be accumulated
    into ``loop`` cycles after it was last (from the start of a row to the start of the next), and be
    read as another operand after ``read_after_write``; if it was issued in fewer cycles the next row
    waits. A STORE takes no issue cycle. A division takes the row once, by a count that is not in the table of
    ``Reciprocal`` twice; rows behind one whose quotient is stored go on until its dividend is there. AFFINE without
    pre-adders takes it twice, the second time ``loop`` cycles after the first or later.

    Instructions on scalars go the same way, as rows of one element. Those for the iterative unit leave the way to
    others until their result comes: only what names its register waits, and the next of them. A reduction accumulates
    a beat per cycle, but ``PARTIAL_SUMS`` elements in no less than ``loop`` cycles. The at most four steps of its tree
    are ``read_after_write`` cycles apart; their beats take cycles from the instructions behind it, which go on
    otherwise: only what names its scalar register waits, or writes the register of its partial results.

    Members
    -------
    config_bus : ``In(ConfigBus())``
        Words of the units LENGTH, CALLBACK and INSTRUCTION; there are two of each table, one for each side.
    side : ``In(1)``
        Of the launch whose callbacks run; changes only while idle.
    launch : ``In(1)``
        All vector registers become empty; only while idle.
    tokens, scalars
        Queues from the access unit.
    vector0, vector1 : ``In(lane_beat_stream(config))``
        Rows.
    stores : ``Out(lane_beat_stream(config))``
        Rows to store, from the store data queue.
    streaming : ``In(1)``
        A row of the store stream is still to be stored, maybe behind one from here: nothing that pops a row may go
        before a row to store, since its own row may be fetched behind that of the store stream.
    idle : ``Out(1)``
        Every token taken has had its effect, all stores have left.
    halt : ``In(1)``
        Take and issue nothing more.
    fault : ``Out(FaultPort(config))``
        FRAMING with the queue (none for a row that was kept) and the length expected; PROGRAM with the token (queue
        TOKEN), the address of the instruction, the length that is none, the elements of the row that there is no room
        to keep, or the index of an element that is none. The unit stops.
    report : ``Out(ExecuteReport(config))``
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(execute_ports(config))

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.front = self._front = front = Frontend(self.config)
        m.submodules.dispatch = self._dispatch = dispatch = Dispatch(self.config)
        m.submodules.issue = self._issue = issue = BeatIssue(self.config)
        m.submodules.path = self._path = path = VectorPath(self.config)
        m.submodules.store = self._store = store = StorePort(self.config)
        self._stop, self._misframed = stop, misframed = Signal(), Signal()
        connect(m, flipped(self.config_bus), front.config_bus)
        connect(m, flipped(self.tokens), front.tokens)
        connect(m, front.o, dispatch.i)
        connect(m, flipped(self.scalars), dispatch.scalars)
        m.submodules.hand_over = self._hand_over = hand_over = DispatchQueue(self.config)
        connect(m, dispatch.o, hand_over.i)
        connect(m, hand_over.issue, issue.i)
        connect(m, hand_over.store, store.i)
        self._join_rows(m)
        self._combining = Signal()
        if self.config.scalars:
            self._reduce(m)
            m.submodules.iterative = iterative = IterativeUnit()
            connect(m, iterative.o, dispatch.result)
            m.d.comb += [iterative.i.payload.eq(path.request), iterative.i.valid.eq(path.request_valid)]
        m.d.comb += issue.fits.eq(1)
        if self.config.kept_beats:
            self._keep(m)
        m.d.comb += [
            stop.eq(self.halt | self.fault.valid | misframed),
            front.side.eq(self.side), front.launch.eq(self.launch), store.clear.eq(self.launch),
            front.halt.eq(stop), issue.halt.eq(stop), store.halt.eq(stop),
            store.issuing.eq(issue.busy), store.apart.eq(hand_over.apart),
            hand_over.held.eq(store.held), hand_over.held_register.eq(store.register),
            hand_over.stored.eq(store.stored), hand_over.held_context.eq(store.context),
            hand_over.pending.eq(store.pending), hand_over.reading.eq(store.reading),
            store.reduced.eq(hand_over.reduced),
            hand_over.long.eq(store.long), hand_over.read_long.eq(store.read_long),
            hand_over.read_register.eq(store.read_register), hand_over.streaming.eq(self.streaming),
            self.report.mark_store_data.eq(store.mark),
            self.idle.eq(
                front.empty & hand_over.empty & ~issue.active & ~path.flying & store.idle & ~dispatch.pending
                & ~dispatch.reducing
            ),
        ]  # fmt: skip
        self._join_path(m)
        self._catch_faults(m)
        self._count(m)
        return m

    def _join_rows(self, m: Module) -> None:
        """Rows from the vector queues and to the store unit: as they are, or through what converts them."""
        issue, store = self._issue, self._store
        self._rows: list[wiring.PureInterface] = []
        if not self.config.length_fields[1:]:
            self._rows = [self.vector0, self.vector1]
            connect(m, flipped(self.vector0), issue.vector0)
            connect(m, flipped(self.vector1), issue.vector1)
            connect(m, store.o, flipped(self.stores))
            return
        m.submodules.widen = widen = UnpackRows(self.config) if self.config.quantised else WidenRows(self.config)
        if isinstance(widen, UnpackRows):
            m.d.comb += [
                widen.head.eq(issue.present.head), widen.last.eq(issue.last),
                widen.tail_bytes.eq(issue.present.row.tail_bytes), widen.clear.eq(self.launch),
            ]  # fmt: skip
        if self.config.has_affine:
            whole: Value = issue.present.affine
            if self.config.two_pass:
                whole |= issue.biases
                m.d.comb += widen.bias.eq(issue.biases)
            m.d.comb += [widen.whole.eq(whole), self._path.head.eq(widen.numbers)]
        connect(m, flipped(self.vector0), widen.i)
        connect(m, widen.o, issue.vector0)
        m.d.comb += widen.kind.eq(issue.present.row.kind)
        # A second one would be as large, for rows of which the compiler can take one after the other.
        connect(m, flipped(self.vector1), issue.vector1)
        self._rows = [widen.o, self.vector1]
        if not self.config.rounds:
            beat = store.o.payload
            m.d.comb += [
                self.stores.payload.data.eq(beat.data), self.stores.payload.bytes.eq(beat.bytes),
                self.stores.payload.last.eq(beat.last),
                self.stores.valid.eq(store.o.valid), store.o.ready.eq(self.stores.ready),
            ]  # fmt: skip
            return
        m.submodules.narrow = narrow = NarrowRows(self.config)
        connect(m, store.o, narrow.i)
        connect(m, narrow.o, flipped(self.stores))

    def _join_path(self, m: Module) -> None:
        issue, path, store = self._issue, self._path, self._store
        m.d.comb += [
            path.fire.eq(issue.fire), path.row.eq(issue.present), path.beat.eq(issue.beat), path.last.eq(issue.last),
            issue.combining.eq(self._combining),
            issue.flying.eq(path.flying), issue.element.eq(path.element),
            path.vector0.eq(self._rows[0].payload.data), path.vector1.eq(self._rows[1].payload.data),
            path.begins.eq(issue.begins), path.factor.eq(issue.held_factor),
            issue.factor.eq(self._hand_over.factor), self._hand_over.issuing.eq(issue.busy),
            path.store_address.eq(store.read_address), store.read_data.eq(path.store_data),
        ]  # fmt: skip

    def _keep(self, m: Module) -> None:
        """Rows that are kept leave the path as they come from the queue, a cycle after their issue."""
        m.submodules.kept = kept = RowStore(self.config)
        issue, path = self._issue, self._path
        connect(m, kept.o, issue.kept)
        tail = Mux(issue.last, issue.present.row.tail_bytes, self.config.lane_bytes)
        m.d.comb += [
            kept.clear.eq(self.launch),
            kept.free.eq(~issue.busy), kept.comes.eq(issue.i.valid), kept.taken.eq(issue.active),
            kept.keeps.eq(issue.i.payload.keeps), kept.drops.eq(issue.i.payload.kept),
            kept.last_beat.eq(issue.i.payload.row.last_beat),
            kept.i.payload.data.eq(path.popped),
            issue.fits.eq(kept.fits), path.kept.eq(kept.o.payload.data),
        ]  # fmt: skip
        m.d.sync += [
            kept.i.valid.eq(issue.fire & issue.present.keeps),
            kept.i.payload.last.eq(issue.last), kept.i.payload.bytes.eq(tail),
        ]  # fmt: skip

    def _reduce(self, m: Module) -> None:
        """The trees of reductions, whose beats take the place of those of rows."""
        m.submodules.tree = tree = ReductionTree(self.config)
        issue, dispatch, row = self._issue, self._dispatch, self._issue.present
        m.d.comb += [
            tree.start.eq(issue.fire & issue.last & row.reduces), tree.op.eq(row.op), tree.area.eq(row.area),
            tree.target.eq(row.target), tree.last_beat.eq(row.row.last_beat),
            tree.register.eq(dispatch.partial_register), tree.wait.eq(issue.flows & ~dispatch.awaits),
            self._combining.eq(tree.due), self._path.combining.eq(tree.here), self._path.combine.eq(tree.o),
            dispatch.finished.eq(tree.finished), dispatch.finished_area.eq(tree.finished_area),
            dispatch.target.eq(tree.o.target), self._hand_over.finished.eq(tree.finished),
            self._hand_over.target.eq(tree.o.target), issue.finished.eq(tree.finished), issue.target.eq(tree.o.target),
        ]  # fmt: skip
        if self.config.octets:
            m.d.comb += tree.octets.eq(row.octets)

    def _catch_faults(self, m: Module) -> None:
        """Keep the first fault. An instruction waits for earlier ones, which may still find a row wrong.

        That a row is wrong comes late in its cycle: the unit stops in the next one, and says why.
        """
        issue, front, fault, late = self._issue, self._front, self.fault.fault, Signal(3)
        # Nothing is issued in a cycle with ``stop``.
        m.d.sync += late.eq(Cat(issue.misframed0, issue.misframed1, issue.misframed_kept))
        m.d.sync += self._misframed.eq(issue.misframed)
        length: Value = elements(self.config, issue.present.row)
        length = Mux(self._misframed, register(m, length, "length_before"), length)
        others = issue.bad_index | issue.no_room | (front.faulty & self._hand_over.empty & ~issue.active)
        queue = late[0] | late[1]
        misframed = queue | late[2]
        with m.If(~self.halt & ~self.fault.valid & (misframed | others)):
            m.d.sync += [
                self.fault.valid.eq(1),
                fault.cause.eq(Mux(misframed, Cause.FRAMING, Cause.PROGRAM)),
                fault.queue.eq(Mux(late[0], Queue.VECTOR0, Mux(misframed, Queue.VECTOR1, front.queue))),
                fault.value.eq(Mux(misframed | issue.no_room, length, front.value)),
            ]
            with m.If((late[2] & ~queue) | (issue.no_room & ~misframed)):
                m.d.sync += fault.queue.eq(Queue.NONE)
            with m.If(issue.bad_index):
                m.d.sync += [fault.queue.eq(Queue.NONE), fault.value.eq(issue.element)]

    def _count(self, m: Module) -> None:
        """Strobes, a cycle late. Dispatch counts as stalled only if the lanes have nothing left to do."""
        issue, dispatch, store, hand_over = self._issue, self._dispatch, self._store, self._hand_over
        runs, sends = Signal(), Signal()
        m.d.comb += [runs.eq(~self._stop & ~issue.active & ~self._combining), sends.eq(runs & hand_over.empty)]
        full = hand_over.waits & store.full
        beat = issue.fire & ~issue.present.partial
        if self.config.two_pass:
            beat &= ~issue.biases
        m.d.sync += [
            self.report.lane_beat.eq(beat),
            self.report.stall_token_empty.eq(
                ~self._stop & self._front.empty & hand_over.empty & ~issue.active & ~self.tokens.valid
            ),
            self.report.stall_vector_empty.eq(issue.starved),
            self.report.awaits_vector0.eq(issue.starved0),
            self.report.stall_scalar_empty.eq(sends & dispatch.no_scalar),
            self.report.stall_store_full.eq(runs & full),
            self.report.stall_hazard.eq(
                (issue.hazard & ~self._stop) | (runs & hand_over.waits & ~full) | (sends & dispatch.no_result)
            ),
        ]
