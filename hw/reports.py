"""What units report of themselves, beside their streams: signatures of outputs that anything may read, none of which is
refused. A reset of the unit puts all of them back.
"""

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.config.core import Config
from daedal.hw.memory.store.store_layouts import window_layout

ACCESS_STALLS = (
    "stall_token_full", "stall_scalar_full", "stall_store_address_full", "stall_vector_full", "stall_port_busy",
    "stall_load",
)  # fmt: skip
"""Why the access unit waits in a cycle, as in ``Counter``."""

EXECUTE_STALLS = (
    "stall_token_empty", "stall_vector_empty", "stall_scalar_empty", "stall_store_full", "stall_hazard",
)  # fmt: skip
"""Why the execute unit issues nothing in a cycle, as in ``Counter``."""


class LoaderReport(wiring.Signature):
    """Of the loader.

    Members
    -------
    begin : ``Out(1)``
        Strobe before the first configuration word of a launch; combinational.
    side : ``Out(1)``
        Of the launch that the loader is at or was last, from the cycle after ``begin`` on: 0 and 1 in turn, 0 first
        after a reset.
    opened : ``Out(1)``
        Strobe: the launch block was read, and ``record`` is an address that a record can have.
    done : ``Out(1)``
        Strobe at the end of the program.
    record, number, window : ``Out(address_bits)``, ``Out(32)``, ``Out(window_layout(config))``
        From the launch block: address of the completion record, number of the launch, what it may write.
    illegal, word_number : ``Out(1)``, ``Out(16)``
        The program cannot be carried out because of this word; because of its checksum, if that is END. Stays.
    misaligned, program : ``Out(1)``, ``Out(address_bits)``
        Launch block, record or program is not where it can be; the address of the program, if it is known. Stays.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "begin": Out(1),
                "side": Out(1, init=1),
                "opened": Out(1),
                "done": Out(1),
                "record": Out(config.address_bits),
                "number": Out(32),
                "window": Out(window_layout(config)),
                "illegal": Out(1),
                "word_number": Out(16),
                "misaligned": Out(1),
                "program": Out(config.address_bits),
            }
        )


class AccessReport(wiring.Signature):
    """Of the access unit.

    Members
    -------
    begins, side, number : ``Out(1)``, ``Out(1)``, ``Out(8)``
        The launch whose nest the event unit is at, or was last, and that nest's number; streams and strobes are of
        this launch. ``begins``: strobe, that nest starts.
    row, lookup, bundle, token, stall_… : ``Out(1)``
        Strobes for counters.
    replaced : ``Out(range(levels + 1))``
        How many values checks replaced, for counting.
    warning, warned_value : ``Out(1)``, ``Out(64)``
        Strobe, and the value whose check warns; of a launch only the first one counts.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("begins", "side", "row", "lookup", "bundle", "token", "warning", *ACCESS_STALLS)
        super().__init__(
            {
                **{name: Out(1) for name in strobes},
                "number": Out(NEST_BITS),
                "replaced": Out(range(config.levels + 1)),
                "warned_value": Out(64),
            }
        )


class ExecuteReport(wiring.Signature):
    """Of the execute unit; all a cycle late.

    Members
    -------
    lane_beat : ``Out(1)``
        A beat was issued into the lanes; those of a division count once.
    stall_… : ``Out(1)``
        Nothing was issued in a cycle, and why: no token, no row, no scalar, no room for a store; or an
        earlier result, reciprocal or store was waited for (hazard).
    awaits_vector0 : ``Out(1)``
        With ``stall_vector_empty``: the row waits for vector queue 0, and not only for the other one.
    mark_store_data : ``Out(range(store_beats + 1))``
        Most beats held in the store data queue since the launch.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("lane_beat", "awaits_vector0", *EXECUTE_STALLS)
        super().__init__({**{name: Out(1) for name in strobes}, "mark_store_data": Out(range(config.store_beats + 1))})


class FabricReport(wiring.Signature):
    """Of the read fabric.

    Members
    -------
    beat, beat_side : ``Out(1)``
        A line is returned in this cycle, for the launch of this side.
    idle : ``Out(2)``
        For each side: nothing of that launch is queued, in flight or about to be returned.
    error, error_side, error_address : ``Out(1)``, ``Out(1)``, ``Out(address_bits)``
        An error response has come since reset, the first one to the burst at this address, of the launch of that side;
        one of the older launch takes the place of one of the younger.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("beat", "beat_side", "error", "error_side")
        super().__init__(
            {**{name: Out(1) for name in strobes}, "idle": Out(2), "error_address": Out(config.address_bits)}
        )


class StoreReport(wiring.Signature):
    """Of the store unit.

    Members
    -------
    line, bytes : ``Out(1)``, ``Out(range(bus_bytes + 1))``
        A line was written in this cycle, and so many bytes of it.
    acknowledged : ``Out(1)``
        A burst was acknowledged in this cycle.
    idle : ``Out(1)``
        Nothing is held, everything is acknowledged.
    quiet : ``Out(1)``
        No burst is in flight: with ``halt`` on, the unit may be reset.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("line", "acknowledged", "idle", "quiet")
        super().__init__({**{name: Out(1) for name in strobes}, "bytes": Out(range(config.bus_bytes + 1))})
