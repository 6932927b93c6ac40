"""Whether the present launch goes on, and what holds it up if it does not."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.control.launch_ports import LaunchState
from daedal.hw.isa.launch import Queue
from daedal.hw.reports import AccessReport, ExecuteReport, FabricReport, LoaderReport, StoreReport

HEADS = ("token", "scalar", "address", "row0", "row1", "row2", "to_store")
"""What the execute unit and the store unit take, and what the store unit is given."""

TAILS = ("tokens", "scalars", "addresses")
"""What the access unit fills, besides vector queues."""


class QueueEnd(wiring.Signature):
    """An end of a queue as somebody sees it who takes no part: ``valid`` and ``ready`` of its stream."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "ready": Out(1)})


class QueueEnds(wiring.Signature):
    """Ends of the queues: one of HEADS shows what is there of the launch that may take it, one of TAILS what comes.

    ``asked``, ``asked_side``: a burst was asked for in this cycle, for the launch of this side. ``configured``: the
    loader sends a word. ``swept``: the vector queues can be used, as they can some time after a reset.
    """

    def __init__(self) -> None:
        strobes = ("asked", "asked_side", "configured", "swept")
        super().__init__({**{name: Out(QueueEnd()) for name in HEADS + TAILS}, **{name: Out(1) for name in strobes}})


class LaunchActivity(wiring.Signature):
    """Whether the present launch goes on.

    Members
    -------
    progress : ``Out(1)``
        Something of it moved, or something that it may wait for; as it was a cycle ago.
    outstanding : ``Out(1)``
        Memory owes it an answer.
    blocked : ``Out(Queue)``
        The queue a hang is blamed on: first one that a unit waits for in vain, then one that nobody empties; NONE if
        there is none. As it was a cycle ago.
    """

    def __init__(self) -> None:
        super().__init__({"progress": Out(1), "outstanding": Out(1), "blocked": Out(Queue)})


class Activity(wiring.Component):
    """Watches the ends of all queues.

    What a launch may wait for is: lines of the next one, whose look-ahead goes before the present one's rows and is
    bounded, and the sweep of the vector queues after a reset.

    Members
    -------
    launch : ``In(LaunchState())``
    ends : ``In(QueueEnds())``
    loader, access, execute, fabric, store : ``In`` of the unit's report
    o : ``Out(LaunchActivity())``
        After a fault nothing moves; nobody asks then.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "launch": In(LaunchState()),
                "ends": In(QueueEnds()),
                "loader": In(LoaderReport(config)),
                "access": In(AccessReport(config)),
                "execute": In(ExecuteReport(config)),
                "fabric": In(FabricReport(config)),
                "store": In(StoreReport(config)),
                "o": Out(LaunchActivity()),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        ends, launch, store = self.ends, self.launch, self.store
        present = launch.side
        moved, sent = (Cat(_moves(getattr(ends, name)) for name in names) for names in (HEADS, TAILS))
        # As it was a cycle ago: that something is taken or sent is known late in a cycle.
        late_moved, late_sent = Signal(len(HEADS)), Signal(1 + len(TAILS))
        m.d.sync += [late_moved.eq(moved), late_sent.eq(Cat(self.access.bundle, sent))]
        asked = ends.asked & (ends.asked_side == present)
        returned, sweeping = self.fabric.beat, ~ends.swept
        m.d.sync += [
            self.o.progress.eq(
                Cat(asked, returned, sweeping, store.acknowledged, store.line).any()
                | ((launch.execute_side == present) & Cat(late_moved, self.execute.lane_beat).any())
                | ((self.access.side == present) & late_sent.any())
                | ((self.loader.side == present) & ends.configured)
            ),
            self.o.blocked.eq(self._blocked()),
        ]
        m.d.comb += self.o.outstanding.eq(~self.fabric.idle.bit_select(present, 1) | ~store.quiet)
        return m

    def _blocked(self) -> Value:
        ends, execute = self.ends, self.execute
        blocked: Value = Value.cast(Queue.NONE.value)
        waits_for_data = ends.address.valid | ~self.store.idle
        starved = Mux(execute.awaits_vector0, Queue.VECTOR0.value, Queue.VECTOR1.value)
        for condition, name in (
            (ends.row0.valid, Queue.VECTOR0.value),
            (ends.row1.valid, Queue.VECTOR1.value),
            (ends.scalar.valid, Queue.SCALAR.value),
            (ends.to_store.valid, Queue.STORE_DATA.value),
            (ends.row2.valid, Queue.STREAM.value),
            (waits_for_data, Queue.STORE_DATA.value),
            (execute.stall_scalar_empty, Queue.SCALAR.value),
            (execute.stall_vector_empty, starved),
        ):
            blocked = Mux(condition, name, blocked)
        return blocked


def _moves(end: wiring.PureInterface) -> Value:
    moves: Value = end.valid & end.ready
    return moves
