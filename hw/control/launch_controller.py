"""The life of a launch: run, drain, record; and what happens on a fault or a reset."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import WATCHDOG_CYCLES
from daedal.hw.control.launch_ports import CaughtFault, LaunchProgress, LaunchState, RecordStatus
from daedal.hw.isa.launch import State
from daedal.hw.lib.fsm_names import name_states

SETTLE_CYCLES = 80
"""Cycles after the last event until all counters are swept (``CounterBank``: 40 turns) and more."""

QUIET_CYCLES = 8
"""Cycles for which everything must be idle, so that what is on its way between two units is not overlooked.
"""


PHASES = {"open": {"RUN"}, "draining": {"DRAIN"}, "record_phase": {"RECORD", "RECORD_WRITTEN"}}
"""Output -> the states in which it is 1."""


class LaunchController(wiring.Component):
    """Decides when a launch is over, has its record written, and brings the machine back after a fault.

    There is one launch at a time whose end is awaited, the *present* one. The launch at the head of the launch queue
    may have begun already (``ahead``), and stays in the queue until it becomes the present one: so if the present one
    faults it is still there to be cancelled. The execute unit goes on to it when the present launch has nothing left
    for it, while the store unit waits until the present launch's record is written.

    Members
    -------
    launch : ``Out(LaunchState())``, progress : ``In(LaunchProgress())``
        To and from the core.
    fault : ``In(CaughtFault())``
        The present launch stops, gets its record, and all that are queued are cancelled.
    record : ``In(RecordStatus())``
    waiting : ``In(1)``
        Another launch is queued.
    reset_request : ``In(1)``, ``reset_done`` : ``Out(1)``
    forget : ``Out(1)``
        Queued launches are dropped.
    ended : ``Out(1)``
        Strobe: a launch is over.
    faulted : ``Out(1)``
        From a fault until the next reset.
    """

    launch: Out(LaunchState())
    progress: In(LaunchProgress())
    fault: In(CaughtFault())
    record: In(RecordStatus())
    waiting: In(1)
    reset_request: In(1)
    reset_done: Out(1)
    forget: Out(1)
    ended: Out(1)
    faulted: Out(1)

    def __init__(self) -> None:
        super().__init__()
        self._timer = Signal(range(max(WATCHDOG_CYCLES, SETTLE_CYCLES) + 1))
        self._settled = Signal(range(SETTLE_CYCLES + 1))
        """Cycles since something was counted."""
        self._resetting = Signal()
        self._lost = Signal()
        """Memory does not take this launch's record."""

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.sync += [self._timer.eq(self._timer + 1), self.launch.taken.eq(self.launch.take)]
        with m.If(self.progress.line | self.launch.open):
            m.d.sync += self._settled.eq(0)
        with m.Elif(self._settled != SETTLE_CYCLES):
            m.d.sync += self._settled.eq(self._settled + 1)
        with m.If(self.launch.take):
            m.d.sync += [self._timer.eq(0), self._lost.eq(0)]
        with m.FSM() as fsm:
            self._present_states(m)
            with m.State("QUIESCE"):
                self._wait_quiet(m)
            with m.State("RESET_UNITS"):
                self._reset_units(m)
            with m.State("SETTLE"):
                m.d.comb += self.launch.hold.eq(1)
                with m.If(self._timer == SETTLE_CYCLES):
                    self._record(m)
            self._record_states(m)
            self._cancel_states(m)
            with m.State("FAULTED"):
                m.d.comb += self.launch.hold.eq(1)
                with m.If(self.reset_request):
                    self._quiesce(m, resetting=1)
        name_states(fsm, "ControllerState")
        m.d.comb += self.launch.running.eq(self.launch.open | self.launch.draining)
        return m

    def _go(self, m: Module, state: str) -> None:
        """The next state. What many units must know of it is in registers of its own."""
        m.next = state
        m.d.sync += [getattr(self.launch, phase).eq(state in states) for phase, states in PHASES.items()]

    def _present_states(self, m: Module) -> None:
        with m.State("IDLE"):
            m.d.comb += self.launch.idle.eq(1)
            with m.If(self.reset_request):
                self._quiesce(m, resetting=1)
            with m.Elif(self.progress.ahead):
                m.d.comb += self.launch.take.eq(1)
                m.d.sync += self.launch.side.eq(self.progress.loader_side)
                self._go(m, "RUN")
        with m.State("RUN"):
            self._run(m)
        with m.State("DRAIN"):
            with m.If(~self.progress.stored):
                m.d.sync += self._timer.eq(0)
            with m.Elif((self._timer >= QUIET_CYCLES) & (self._settled == SETTLE_CYCLES)):
                self._record(m)
            self._interruptions(m)

    def _quiesce(self, m: Module, *, resetting: int) -> None:
        m.d.sync += [self._resetting.eq(resetting), self._timer.eq(0)]
        self._go(m, "QUIESCE")

    def _interruptions(self, m: Module) -> None:
        """Faults and resets, which end every phase of a launch."""
        with m.If(self.reset_request):
            self._quiesce(m, resetting=1)
        with m.Elif(self.fault.valid):
            m.d.sync += [self.faulted.eq(1), self.launch.state.eq(State.FAULTED)]
            self._quiesce(m, resetting=0)

    def _run(self, m: Module) -> None:
        m.d.sync += self.launch.state.eq(State.DONE)
        with m.If(~self.progress.executed):
            m.d.sync += self._timer.eq(0)
        with m.Elif(self._timer == QUIET_CYCLES):
            m.d.comb += self.launch.flip.eq(~self.fault.valid & ~self.reset_request)
            m.d.sync += [
                self._timer.eq(0),
                self.launch.execute_side.eq(~self.launch.side),
                self.launch.execute_other.eq(self.launch.side),
            ]
            self._go(m, "DRAIN")
        self._interruptions(m)

    def _wait_quiet(self, m: Module) -> None:
        """A reset waits for memory for ever; a fault until memory has answered nothing for ``WATCHDOG_CYCLES``: then no
        record is written.
        """
        m.d.comb += [self.launch.halt.eq(1), self.launch.hold.eq(1)]
        with m.If(self._resetting):
            m.d.comb += self.forget.eq(1)
        with m.If(~self.progress.quiet):
            with m.If(self.progress.answered):
                m.d.sync += self._timer.eq(0)
            with m.Elif(~self._resetting & (self._timer == WATCHDOG_CYCLES)):
                m.d.comb += self.ended.eq(1)
                self._go(m, "FAULTED")
        with m.Elif(self._timer >= QUIET_CYCLES):
            m.d.sync += self._timer.eq(0)
            self._go(m, "RESET_UNITS")

    def _reset_units(self, m: Module) -> None:
        m.d.comb += [self.launch.soft_reset.eq(1), self.launch.halt.eq(1), self.launch.hold.eq(1)]
        with m.If(self._timer == 3):
            m.d.sync += self._timer.eq(0)
            self._go(m, "SETTLE")
            with m.If(self._resetting):
                m.d.comb += [self.reset_done.eq(1), self.launch.clear_fault.eq(1)]
                m.d.sync += [self.faulted.eq(0), self._resetting.eq(0)]
                m.d.sync += [self.launch.execute_side.eq(0), self.launch.execute_other.eq(1)]
                self._go(m, "IDLE")

    def _record(self, m: Module) -> None:
        with m.If(self.record.known & ~self._lost):
            m.d.comb += self.launch.record_start.eq(1)
            self._go(m, "RECORD")
        with m.Else():
            self._end(m)

    def _record_states(self, m: Module) -> None:
        with m.State("RECORD"):
            m.d.comb += self.launch.hold.eq(self.faulted)
            with m.If(self.record.done):
                m.d.sync += self._timer.eq(0)
                self._go(m, "RECORD_WRITTEN")
            self._record_interruptions(m)
        with m.State("RECORD_WRITTEN"):
            m.d.comb += self.launch.hold.eq(self.faulted)
            with m.If(~self.progress.stored):
                m.d.sync += self._timer.eq(0)
            with m.If(self._timer == QUIET_CYCLES):
                self._end(m)
            self._record_interruptions(m)

    def _record_interruptions(self, m: Module) -> None:
        """A reset, or memory that refuses the record: then there is none."""
        with m.If(self.reset_request):
            self._quiesce(m, resetting=1)
        with m.Elif(self.fault.record_lost):
            m.d.sync += [self.faulted.eq(1), self._lost.eq(1)]
            self._quiesce(m, resetting=0)

    def _end(self, m: Module) -> None:
        m.d.comb += self.ended.eq(1)
        self._go(m, "IDLE")
        with m.If(self.faulted):
            self._go(m, "CANCEL")

    def _cancel_states(self, m: Module) -> None:
        """After a fault, queued launches get a record and nothing else."""
        with m.State("CANCEL"):
            m.d.comb += self.launch.cancel.eq(1)
            m.d.sync += self.launch.state.eq(State.CANCELLED)
            with m.If(self.progress.begin):
                m.d.comb += self.launch.take.eq(1)
                self._go(m, "CANCELLING")
            with m.Elif(self.reset_request):
                self._quiesce(m, resetting=1)
            with m.Elif(~self.waiting):
                self._go(m, "FAULTED")
        with m.State("CANCELLING"):
            m.d.comb += [self.launch.cancel.eq(1), self.launch.hold.eq(1), self.launch.cancelling.eq(1)]
            m.d.sync += self.launch.side.eq(self.progress.loader_side)
            with m.If(self.progress.program_done):
                m.d.sync += self._timer.eq(0)
                self._go(m, "SETTLE")
