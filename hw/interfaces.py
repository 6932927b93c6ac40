"""Payloads of the streams and buses between the units, as functions of the configuration; each is made once."""

from functools import cache

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import ceil_log2, exact_log2

from daedal.hw.config.core import CONTEXT_BITS, MAX_BURST, Config
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.words import SIZE_BITS, VALUE_BITS, Unit


class ConfigWord(data.Struct):
    """A program word with its argument already added: what the loader writes into a unit."""

    value: VALUE_BITS
    unit: Unit
    index: 6
    field: 8


class ConfigBus(wiring.Signature):
    """One configuration word per cycle, without back-pressure.

    ``valid``: ``word`` is to be taken. ``clear``: all levels and events become disabled (before a launch and
    after every nest); it never comes with ``valid``. ``begin``: a launch begins, it has no lengths, callbacks and
    instructions yet. ``side`` of that launch: 0 and 1 in turn, for while one launch drains the next one begins.
    """

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "word": Out(ConfigWord), "clear": Out(1), "begin": Out(1), "side": Out(1)})


@cache
def flags_layout(config: Config) -> data.StructLayout:
    """What a bundle carries beside its registers.

    ``live``: deeper levels have an activation for this bundle, which is not poisoned. ``begin``, ``iteration``,
    ``end``: one bit per level, the events that happen at it. ``last``: the nest's last bundle. ``cause`` is not NONE
    for a poisoned bundle: the fault happened in level ``fault_level``; nothing follows it. ``replaced``: one bit per
    level whose check put 0 in a value's place. ``context``: which of the interleaved activations it belongs to.
    """
    return data.StructLayout(
        {
            "live": 1,
            "last": 1,
            "begin": config.levels,
            "iteration": config.levels,
            "end": config.levels,
            "cause": Cause,
            "fault_level": 3,
            "replaced": config.levels,
            "context": context_bits(config),
        }
    )


def context_bits(config: Config) -> int:
    """Bits of a context's number in this machine."""
    return exact_log2(config.context_count)


@cache
def bundle_layout(config: Config) -> data.StructLayout:
    """What flows from level to level."""
    return data.StructLayout(
        {"registers": data.ArrayLayout(config.address_bits, config.registers), "flags": flags_layout(config)}
    )


class Client(enum.Enum, shape=3):
    """Who reads memory. The first three are the vector queues, numbered as FetchQueue."""

    VECTOR0 = 0
    VECTOR1 = 1
    STREAM = 2
    LOAD = 3
    LOADER = 4


def random_entries(config: Config) -> int:
    """Iterations that wait for their element in a random load: a power of two, enough for all loads in flight."""
    return max(16, 1 << (config.random_outstanding - 1).bit_length())


def context_entries(config: Config) -> int:
    """Activations that are prepared or run in the level that interleaves."""
    return config.context_ahead * config.context_count


def context_lines(config: Config) -> int:
    """Lines buffered for each of these by a sequential load: enough for a latency of 128 cycles if 8 take turns."""
    return max(2, 2 * config.lookahead_lines // context_entries(config))


def load_units(config: Config, level: int) -> int:
    """Units of a level that read memory: its load slots, and again the sequential ones if it has contexts; one for all
    slots of a serial level.
    """
    if config.serial[level]:
        return min(1, config.sequential_loads[level] + config.random_loads[level])
    again = config.sequential_loads[level] if config.contexts[level] else 0
    return config.sequential_loads[level] + config.random_loads[level] + again


@cache
def load_slot_layout(config: Config) -> data.StructLayout:
    """A slot of client LOAD: the load ``unit`` of the access unit, and which of its ``entry`` a beat is for."""
    blocks = config.lookahead_lines // config.burst_lines
    entries = max(blocks, random_entries(config))
    if config.context_level is not None:
        entries = max(entries, context_entries(config) * context_lines(config))
    units = sum(load_units(config, level) for level in range(config.levels))
    return data.StructLayout({"entry": ceil_log2(entries), "unit": ceil_log2(max(units, 2))})


@cache
def slot_bits(config: Config) -> int:
    """Bits of a tag's slot: a vector-queue slot, or what ``load_slot_layout`` says."""
    return max(ceil_log2(config.vector_beats), load_slot_layout(config).size)


def row_granules(config: Config) -> int:
    """Granules of rows in a line, of which a row may begin at any."""
    return max(1, config.line_granules)


@cache
def tag_layout(config: Config) -> data.StructLayout:
    """Where the beats of a read go.

    ``slot`` is the vector-queue slot of the first beat (it counts up, modulo ``vector_beats``, from beat to
    beat), or a number of the client's choice that comes back unchanged for LOAD and LOADER. ``shift``:
    bytes by which a beat is rotated down so that the row's first element is at byte 0. ``last_bytes``: valid bytes of
    the last beat, whole granules of rows. ``row_first``, ``row_last``: the first beat begins, the last one ends a row.
    ``side`` of the launch that reads.
    """
    return data.StructLayout(
        {
            "side": 1,
            "client": Client,
            "slot": slot_bits(config),
            "shift": exact_log2(config.bus_bytes),
            "last_bytes": range(config.bus_bytes + 1),
            "row_first": 1,
            "row_last": 1,
        }
    )


@cache
def read_request_layout(config: Config) -> data.StructLayout:
    """A read of ``beats`` (1 to MAX_BURST) whole lines from ``address`` (a multiple of bus_bytes).

    It crosses neither a 4 KiB boundary nor a granule of the address's mapping class.
    """
    return data.StructLayout({"address": config.address_bits, "beats": range(MAX_BURST + 1), "tag": tag_layout(config)})


@cache
def return_layout(config: Config) -> data.StructLayout:
    """A beat on the shared return bus, already rotated; ``side`` of the launch that it is for.

    ``bytes``, whole granules, of the row's beat of this slot are valid; ``last`` ends a row. A row may begin inside of
    a line: then only the granules ``own`` of what comes are of this slot's beat. The others are the end of the beat
    before, if it ``follows`` one of the row.
    """
    return data.StructLayout(
        {
            "side": 1,
            "client": Client,
            "slot": slot_bits(config),
            "data": 8 * config.bus_bytes,
            "own": row_granules(config),
            "follows": 1,
            "bytes": range(config.bus_bytes + 1),
            "last": 1,
        }
    )


class ReturnBus(wiring.Signature):
    """The shared return bus: at most one beat per cycle, never refused."""

    def __init__(self, config: Config) -> None:
        super().__init__({"valid": Out(1), "beat": Out(return_layout(config))})


@cache
def beat_layout(config: Config) -> data.StructLayout:
    """A beat of a row, element 0 first: ``bytes`` valid ones (all but in the last beat), ``last`` in the
    row.
    """
    return data.StructLayout({"data": 8 * config.bus_bytes, "bytes": range(config.bus_bytes + 1), "last": 1})


def beat_stream(config: Config) -> stream.Signature:
    """A stream of row beats."""
    return stream.Signature(beat_layout(config))


@cache
def lane_beat_layout(config: Config) -> data.StructLayout:
    """A beat of a row as the execute unit sees it: as ``beat_layout``, but of ``lane_bytes``."""
    return data.StructLayout({"data": 8 * config.lane_bytes, "bytes": range(config.lane_bytes + 1), "last": 1})


def lane_beat_stream(config: Config) -> stream.Signature:
    """A stream of row beats of the execute unit."""
    return stream.Signature(lane_beat_layout(config))


@cache
def token_layout() -> data.StructLayout:
    """A callback number, and the context whose registers it works on."""
    return data.StructLayout({"callback": 6, "context": CONTEXT_BITS})


@cache
def scalar_layout(config: Config) -> data.StructLayout:
    """A scalar from access to execute unit."""
    return data.StructLayout({"value": config.address_bits})


@cache
def store_address_layout(config: Config) -> data.StructLayout:
    """Where a row of ``size`` bytes goes; ``stream`` tells that the data come from the store stream's
    queue.
    """
    return data.StructLayout({"address": config.address_bits, "size": SIZE_BITS, "stream": 1})


@cache
def fault_layout(config: Config) -> data.StructLayout:
    """A fault as units report it to the host side; fields as in the completion record."""
    return data.StructLayout(
        {
            "cause": Cause,
            "level": 4,
            "queue": Queue,
            "value": 64,
            "address": config.address_bits,
            "registers": data.ArrayLayout(config.address_bits, config.registers),
        }
    )


class FaultPort(wiring.Signature):
    """``valid`` rises with a fault and stays, with the payload unchanged, until the unit is reset."""

    def __init__(self, config: Config) -> None:
        super().__init__({"valid": Out(1), "fault": Out(fault_layout(config))})
