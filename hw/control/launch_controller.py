"""The life of a launch: run, drain, record; and what happens on a fault or a reset."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
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
    begin, program_done : ``In(1)``
        Strobes of the loader.
    loader_side : ``In(1)``
        Of the launch that the loader is at.
    ahead : ``In(1)``
        The launch at the head of the queue has begun.
    take : ``Out(1)``
        Strobe: the launch at the head of the queue becomes the present one.
    side : ``Out(1)``
        Of the present launch.
    execute_side : ``Out(1)``, flip : ``Out(1)``
        Of the launch that the execute unit is at; the strobe says that it goes on to the next one.
    execute_other : ``Out(1)``
        The other side, from a register of its own, for the rows: their way through the execute unit is long.
    executed : ``In(1)``
        All that the present launch is to write has been taken by the store unit, and nothing else of it is left; as it
        was a cycle ago.
    stored : ``In(1)``
        The store unit is idle: all is acknowledged; as it was a cycle ago.
    line : ``In(1)``
        A line is being written: the counters are not yet swept.
    quiet : ``In(1)``
        No memory transaction is in flight: units can be reset; as it was a cycle ago.
    answered : ``In(1)``
        Memory gave a line or acknowledged a burst in this cycle.
    fault : ``In(1)``
        Some unit reports a fault of the present launch.
    waiting : ``In(1)``
        Another launch is queued.
    reset_request : ``In(1)``, ``reset_done`` : ``Out(1)``
    running : ``Out(1)``
        The present launch runs or drains.
    open : ``Out(1)``
        The store unit may take what the present launch stores.
    draining : ``Out(1)``
        It has taken all.
    halt : ``Out(1)``
        Units must not begin anything new.
    soft_reset : ``Out(1)``
        Resets all units but the host side; only while ``quiet``.
    cancel : ``Out(1)``
        The loader reads headers only.
    hold : ``Out(1)``
        The loader must not begin a launch.
    forget : ``Out(1)``
        Queued launches are dropped.
    has_record : ``In(1)``
        It is known where the completion record goes; else none is written.
    record_start : ``Out(1)``, ``record_done`` : ``In(1)``
    record_error : ``In(1)``
        The store unit has a fault: the record is lost.
    record_phase : ``Out(1)``
        The store unit belongs to the record writer.
    state : ``Out(State)``
        For the record.
    ended : ``Out(1)``
        Strobe: a launch is over.
    faulted : ``Out(1)``, clear_fault : ``Out(1)``
        From a fault until the next reset, which ends with the strobe.
    cancelling : ``Out(1)``
        The loader reads the header of a launch that is cancelled.
    idle : ``Out(1)``
        There is no present launch.
    """

    begin: In(1)
    program_done: In(1)
    loader_side: In(1)
    ahead: In(1)
    take: Out(1)
    side: Out(1)
    execute_side: Out(1)
    execute_other: Out(1, init=1)
    flip: Out(1)
    executed: In(1)
    stored: In(1)
    line: In(1)
    quiet: In(1)
    answered: In(1)
    fault: In(1)
    waiting: In(1)
    reset_request: In(1)
    reset_done: Out(1)
    running: Out(1)
    open: Out(1)
    draining: Out(1)
    halt: Out(1)
    soft_reset: Out(1)
    cancel: Out(1)
    hold: Out(1)
    forget: Out(1)
    has_record: In(1)
    record_start: Out(1)
    record_done: In(1)
    record_error: In(1)
    record_phase: Out(1)
    state: Out(State)
    ended: Out(1)
    faulted: Out(1)
    clear_fault: Out(1)
    cancelling: Out(1)
    idle: Out(1)

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._timer = Signal(range(max(self._config.watchdog, SETTLE_CYCLES) + 1))
        self._settled = Signal(range(SETTLE_CYCLES + 1))
        """Cycles since something was counted."""
        self._resetting = Signal()
        self._lost = Signal()
        """Memory does not take this launch's record."""
        m.d.sync += self._timer.eq(self._timer + 1)
        with m.If(self.line | self.open):
            m.d.sync += self._settled.eq(0)
        with m.Elif(self._settled != SETTLE_CYCLES):
            m.d.sync += self._settled.eq(self._settled + 1)
        with m.If(self.take):
            m.d.sync += [self._timer.eq(0), self._lost.eq(0)]
        with m.FSM() as fsm:
            self._present_states(m)
            with m.State("QUIESCE"):
                self._wait_quiet(m)
            with m.State("RESET_UNITS"):
                self._reset_units(m)
            with m.State("SETTLE"):
                m.d.comb += self.hold.eq(1)
                with m.If(self._timer == SETTLE_CYCLES):
                    self._record(m)
            self._record_states(m)
            self._cancel_states(m)
            with m.State("FAULTED"):
                m.d.comb += self.hold.eq(1)
                with m.If(self.reset_request):
                    self._quiesce(m, resetting=1)
        name_states(fsm, "ControllerState")
        m.d.comb += self.running.eq(self.open | self.draining)
        return m

    def _go(self, m: Module, state: str) -> None:
        """The next state. What many units must know of it is in registers of its own."""
        m.next = state
        m.d.sync += [getattr(self, phase).eq(state in states) for phase, states in PHASES.items()]

    def _present_states(self, m: Module) -> None:
        with m.State("IDLE"):
            m.d.comb += self.idle.eq(1)
            with m.If(self.reset_request):
                self._quiesce(m, resetting=1)
            with m.Elif(self.ahead):
                m.d.comb += self.take.eq(1)
                m.d.sync += self.side.eq(self.loader_side)
                self._go(m, "RUN")
        with m.State("RUN"):
            self._run(m)
        with m.State("DRAIN"):
            with m.If(~self.stored):
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
        with m.Elif(self.fault):
            m.d.sync += [self.faulted.eq(1), self.state.eq(State.FAULTED)]
            self._quiesce(m, resetting=0)

    def _run(self, m: Module) -> None:
        m.d.sync += self.state.eq(State.DONE)
        with m.If(~self.executed):
            m.d.sync += self._timer.eq(0)
        with m.Elif(self._timer == QUIET_CYCLES):
            m.d.comb += self.flip.eq(~self.fault & ~self.reset_request)
            m.d.sync += [self._timer.eq(0), self.execute_side.eq(~self.side), self.execute_other.eq(self.side)]
            self._go(m, "DRAIN")
        self._interruptions(m)

    def _wait_quiet(self, m: Module) -> None:
        """A reset waits for memory for ever; a fault until memory has answered nothing for ``watchdog`` cycles: then no
        record is written.
        """
        m.d.comb += [self.halt.eq(1), self.hold.eq(1)]
        with m.If(self._resetting):
            m.d.comb += self.forget.eq(1)
        with m.If(~self.quiet):
            with m.If(self.answered):
                m.d.sync += self._timer.eq(0)
            with m.Elif(~self._resetting & (self._timer == self._config.watchdog)):
                m.d.comb += self.ended.eq(1)
                self._go(m, "FAULTED")
        with m.Elif(self._timer >= QUIET_CYCLES):
            m.d.sync += self._timer.eq(0)
            self._go(m, "RESET_UNITS")

    def _reset_units(self, m: Module) -> None:
        m.d.comb += [self.soft_reset.eq(1), self.halt.eq(1), self.hold.eq(1)]
        with m.If(self._timer == 3):
            m.d.sync += self._timer.eq(0)
            self._go(m, "SETTLE")
            with m.If(self._resetting):
                m.d.comb += [self.reset_done.eq(1), self.clear_fault.eq(1)]
                m.d.sync += [self.faulted.eq(0), self._resetting.eq(0)]
                m.d.sync += [self.execute_side.eq(0), self.execute_other.eq(1)]
                self._go(m, "IDLE")

    def _record(self, m: Module) -> None:
        with m.If(self.has_record & ~self._lost):
            m.d.comb += self.record_start.eq(1)
            self._go(m, "RECORD")
        with m.Else():
            self._end(m)

    def _record_states(self, m: Module) -> None:
        with m.State("RECORD"):
            m.d.comb += self.hold.eq(self.faulted)
            with m.If(self.record_done):
                m.d.sync += self._timer.eq(0)
                self._go(m, "RECORD_WRITTEN")
            self._record_interruptions(m)
        with m.State("RECORD_WRITTEN"):
            m.d.comb += self.hold.eq(self.faulted)
            with m.If(~self.stored):
                m.d.sync += self._timer.eq(0)
            with m.If(self._timer == QUIET_CYCLES):
                self._end(m)
            self._record_interruptions(m)

    def _record_interruptions(self, m: Module) -> None:
        """A reset, or memory that refuses the record: then there is none."""
        with m.If(self.reset_request):
            self._quiesce(m, resetting=1)
        with m.Elif(self.record_error):
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
            m.d.comb += self.cancel.eq(1)
            m.d.sync += self.state.eq(State.CANCELLED)
            with m.If(self.begin):
                m.d.comb += self.take.eq(1)
                self._go(m, "CANCELLING")
            with m.Elif(self.reset_request):
                self._quiesce(m, resetting=1)
            with m.Elif(~self.waiting):
                self._go(m, "FAULTED")
        with m.State("CANCELLING"):
            m.d.comb += [self.cancel.eq(1), self.hold.eq(1), self.cancelling.eq(1)]
            m.d.sync += self.side.eq(self.loader_side)
            with m.If(self.program_done):
                m.d.sync += self._timer.eq(0)
                self._go(m, "SETTLE")
