"""What launch control and a core tell each other: signatures, as launch control sees them."""

from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause, State


class LaunchState(wiring.Signature):
    """What the launch controller says of the present launch, the one whose end is awaited. Nothing of it is refused.

    Members
    -------
    take : ``Out(1)``, taken : ``Out(1)``
        Strobe: the launch at the head of the queue becomes the present one; the same a cycle later, from a register.
    side : ``Out(1)``
        Of the present launch, from the cycle after ``take`` on.
    execute_side : ``Out(1)``, flip : ``Out(1)``
        Of the launch that the execute unit is at; the strobe says that it goes on to the next one.
    execute_other : ``Out(1)``
        The other side, from a register of its own, for the rows: their way through the execute unit is long.
    running : ``Out(1)``
        The present launch runs or drains.
    open : ``Out(1)``
        The store unit may take what the present launch stores.
    draining : ``Out(1)``
        It has taken all.
    idle : ``Out(1)``
        There is no present launch.
    halt : ``Out(1)``
        Units must not begin anything new: from a fault or the request of a reset until the units are reset.
    soft_reset : ``Out(1)``
        Resets all units; only while the core is ``quiet``.
    hold : ``Out(1)``
        The loader must not begin a launch.
    cancel : ``Out(1)``
        The loader reads headers only.
    cancelling : ``Out(1)``
        The loader reads the header of a launch that is cancelled.
    clear_fault : ``Out(1)``
        Strobe at the end of a reset: there has been no fault.
    record_start : ``Out(1)``
        Strobe: write the completion record.
    record_phase : ``Out(1)``
        The store unit belongs to the record writer.
    state : ``Out(State)``
        For the record.
    """

    def __init__(self) -> None:
        strobes = (
            "take", "taken", "side", "execute_side", "flip", "running", "open", "draining", "idle", "halt",
            "soft_reset", "hold", "cancel", "cancelling", "clear_fault", "record_start", "record_phase",
        )  # fmt: skip
        super().__init__({**{name: Out(1) for name in strobes}, "execute_other": Out(1, init=1), "state": Out(State)})


class LaunchProgress(wiring.Signature):
    """How far a core is. A fault stops the launch without ``executed``; ``quiet`` comes all the same, unless memory
    does not answer.

    Members
    -------
    begin, program_done : ``Out(1)``
        Strobes: the loader has begun a launch (a cycle late), and is at the end of its program.
    loader_side : ``Out(1)``
        Of the launch that the loader is at.
    ahead : ``Out(1)``
        The launch at the head of the queue has begun and is not the present one yet.
    executed : ``Out(1)``
        All that the present launch is to write has been taken by the store unit, and nothing else of it is left; as it
        was a cycle ago.
    stored : ``Out(1)``
        The store unit is idle: all is acknowledged; as it was a cycle ago.
    line : ``Out(1)``
        A line is being written: the counters are not yet swept.
    quiet : ``Out(1)``
        No memory transaction is in flight: units can be reset; as it was a cycle ago.
    answered : ``Out(1)``
        Memory gave a line or acknowledged a burst in this cycle.
    """

    def __init__(self) -> None:
        strobes = ("begin", "program_done", "loader_side", "ahead", "executed", "stored", "line", "quiet", "answered")
        super().__init__({name: Out(1) for name in strobes})


class CaughtFault(wiring.Signature):
    """The fault of the present launch.

    Members
    -------
    valid : ``Out(1)``
        There is one: two cycles after a unit has reported it, until the next launch or ``clear_fault``.
    cause : ``Out(Cause)``
        Its cause, else NONE.
    record_lost : ``Out(1)``
        The store unit has a fault while the record is written; in the same cycle.
    """

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "cause": Out(Cause), "record_lost": Out(1)})


class RecordStatus(wiring.Signature):
    """Of the present launch's completion record.

    Members
    -------
    known : ``Out(1)``
        It is known where it goes; else none is written.
    done : ``Out(1)``
        Strobe: the store unit has taken all of it, a cycle ago.
    """

    def __init__(self) -> None:
        super().__init__({"known": Out(1), "done": Out(1)})


class LaunchPort(wiring.Signature):
    """All that is between launch control and the core that it works with.

    Members
    -------
    block : ``Out(stream.Signature(address_bits))``
        Address of the launch block at the head of the queue. The core may begin it at once, and takes it off the queue
        when it becomes the present launch: if the one before faults it is still there, to be cancelled.
    rung : ``Out(1)``
        Strobe: the doorbell is rung for a launch that finds the queue empty.
    mixed : ``Out(1)``
        Memory loses no time between reads and writes.
    launch : ``Out(LaunchState())``
    progress : ``In(LaunchProgress())``
    fault : ``In(CaughtFault())``
    record : ``In(RecordStatus())``
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "block": Out(stream.Signature(config.address_bits)),
                "rung": Out(1),
                "mixed": Out(1),
                "launch": Out(LaunchState()),
                "progress": In(LaunchProgress()),
                "fault": In(CaughtFault()),
                "record": In(RecordStatus()),
            }
        )
