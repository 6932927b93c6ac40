"""How far the launches are that a core is at."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.control.launch_ports import LaunchProgress, LaunchState
from daedal.hw.reports import FabricReport, LoaderReport, StoreReport


class LaunchTracker(wiring.Component):
    """Follows which launches the loader has begun and ended, and what is left to do for the present one.

    Members
    -------
    launch : ``In(LaunchState())``
    reset : ``In(1)``
        Units are reset: no launch has begun. After a fault nothing is ``executed`` before that.
    loader, fabric, store : ``In`` of the unit's report
    open, pending : ``In(2)``
        As in ``AccessUnit``.
    left : ``In(1)``
        Something of the present launch waits in a queue.
    execute_idle : ``In(1)``
        The execute unit has no work, and holds no row.
    asking, asking_side : ``In(1)``
        A burst waits to be asked for, for the launch of this side.
    taking : ``In(1)``
        As in ``StoreUnit``.
    progress : ``Out(LaunchProgress())``
    all_sent : ``Out(1)``
        All of the present launch was sent and executed.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("reset", "left", "execute_idle", "asking", "asking_side", "taking")
        super().__init__(
            {
                "launch": In(LaunchState()),
                "loader": In(LoaderReport(config)),
                "fabric": In(FabricReport(config)),
                "store": In(StoreReport(config)),
                "open": In(2),
                "pending": In(2),
                **{name: In(1) for name in strobes},
                "progress": Out(LaunchProgress()),
                "all_sent": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        launch, loader, fabric, store, progress = self.launch, self.loader, self.fabric, self.store, self.progress
        present = launch.side
        program_over, pending = Signal(2), Signal.like(self.pending)
        m.d.sync += pending.eq(self.pending)
        with m.If(launch.take | self.reset):
            m.d.sync += progress.ahead.eq(0)
        with m.Elif(loader.begin & ~launch.cancel):
            m.d.sync += progress.ahead.eq(1)
        for side in range(2):
            with m.If((loader.begin & (loader.side != side)) | self.reset):
                m.d.sync += program_over[side].eq(0)
            with m.Elif(loader.done & (loader.side == side)):
                m.d.sync += program_over[side].eq(1)
        m.d.comb += [
            self.all_sent.eq(
                program_over.bit_select(present, 1) & ~self.open.bit_select(present, 1) & ~self.left & self.execute_idle
            ),
            progress.loader_side.eq(loader.side),
            progress.program_done.eq(loader.done),
            progress.line.eq(store.line),
            progress.answered.eq(fabric.beat | store.acknowledged),
        ]
        m.d.sync += [
            progress.begin.eq(loader.begin),
            progress.executed.eq(
                self.all_sent
                & ~pending.bit_select(present, 1)
                & ~(self.asking & (self.asking_side == present))
                & fabric.idle.bit_select(present, 1)
                & ~self.taking
            ),
            progress.stored.eq(store.idle),
            progress.quiet.eq(fabric.idle.all() & store.quiet & ~self.asking),
        ]
        return m
