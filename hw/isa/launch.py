"""What host and machine exchange in memory: launch blocks and completion records, made of 64-bit words."""

from amaranth.lib import data, enum

LAUNCH_ALIGNMENT = 64
"""Launch blocks, programs and completion records start at a multiple of this many bytes."""


class LaunchWord(enum.Enum, shape=6):
    """Words of a launch block. ARGUMENTS is the first of ``Config.arguments`` words, the low 40 bits of
    each count.

    PROGRAM and RECORD are byte addresses. LAUNCH is a number of the host's choice, given back in the record.
    """

    PROGRAM = 0
    RECORD = 1
    LAUNCH = 2
    RESERVED = 3
    ARGUMENTS = 4


class State(enum.Enum, shape=8):
    """How a launch ended. RUNNING is what the host writes before it rings the doorbell."""

    RUNNING = 0
    DONE = 1
    FAULTED = 2
    CANCELLED = 3


class Cause(enum.Enum, shape=8):
    """Why the machine stopped."""

    NONE = 0
    INDEX = 1
    """An index outside its table (CheckKind.INDEX)."""
    OFFSET = 2
    """An offset outside the index array (CheckKind.OFFSET)."""
    BOUNDS_ORDER = 3
    """An upper bound below the lower one."""
    ALIGNMENT = 4
    """A row that neither starts at a line nor lies within one, or a size or address that is not whole
    elements.
    """
    FRAMING = 5
    """A callback popped another number of elements than was fetched."""
    PROGRAM = 6
    """A word, instruction or token that this machine does not have, or a configuration hash that is not its
    own.
    """
    MEMORY_ERROR = 7
    """An error response from memory."""
    MEMORY_SILENT = 8
    """Memory did not answer in time."""
    HANG = 9
    """Nothing moved for ``Config.watchdog`` cycles."""


class Queue(enum.Enum, shape=4):
    """Queues, as named by fault records and high-water marks."""

    NONE = 0
    TOKEN = 1
    SCALAR = 2
    VECTOR0 = 3
    VECTOR1 = 4
    STREAM = 5
    STORE_ADDRESS = 6
    STORE_DATA = 7


class RecordHead(data.Struct):
    """Word HEAD of a completion record. For a fault: the nest (counted from 0), level, kind of event and
    queue.
    """

    state: State
    cause: Cause
    nest: 8
    level: 4
    queue: Queue
    launch: 32


class RecordWord(enum.Enum, shape=6):
    """Words of a completion record.

    VALUE is the offending value: the whole 64-bit index or offset, the upper bound, the program word's
    number, the number of elements. ADDRESS is the memory address concerned, or 0. REGISTER0… are the stream
    registers of the bundle that faulted (up to 7). COUNTERS is the first of the counters, in the order of
    ``Counter``.
    """

    HEAD = 0
    VALUE = 1
    ADDRESS = 2
    RESERVED = 3
    REGISTER0 = 4
    COUNTERS = 12


class Counter(enum.Enum, shape=6):
    """Counters of a launch.

    CYCLES runs from the doorbell (or, for a launch that had to wait, the end of the one before) to the last
    acknowledged write of the launch; the record itself does not count. ROWS: row fetches. LOOKUPS: checked
    indices (CheckKind.INDEX). BUNDLES: bundles that reached the event unit. LINES_READ and LINES_WRITTEN:
    lines moved on the memory ports for whatever reason but records. BYTES_WRITTEN: bytes strobed.
    LANE_BEATS: beats issued into the lanes. STALL_…: cycles in which a unit had work and could not go on,
    and why: the access unit's event stage for a full queue, no reserved slot (VECTOR), or a busy port; or
    it had no bundle although the nest is not done (LOAD: it waits for scalar loads); the execute unit for
    an empty token, vector or scalar queue, a full store queue, or its own earlier result (HAZARD). MARK_…:
    the most entries a queue has held.
    """

    CYCLES = 0
    ROWS = 1
    LOOKUPS = 2
    BUNDLES = 3
    TOKENS = 4
    LINES_READ = 5
    LINES_WRITTEN = 6
    BYTES_WRITTEN = 7
    LANE_BEATS = 8
    STALL_TOKEN_FULL = 9
    STALL_SCALAR_FULL = 10
    STALL_STORE_ADDRESS_FULL = 11
    STALL_VECTOR_FULL = 12
    STALL_PORT_BUSY = 13
    STALL_LOAD = 14
    STALL_TOKEN_EMPTY = 15
    STALL_VECTOR_EMPTY = 16
    STALL_SCALAR_EMPTY = 17
    STALL_STORE_FULL = 18
    STALL_HAZARD = 19
    MARK_TOKEN = 20
    MARK_SCALAR = 21
    MARK_VECTOR0 = 22
    MARK_VECTOR1 = 23
    MARK_STREAM = 24
    MARK_STORE_ADDRESS = 25
    MARK_STORE_DATA = 26


RECORD_WORDS = 40
"""64-bit words of a completion record (a multiple of the longest line, so that records are whole lines)."""

LAUNCH_HEADER_WORDS = 4


def launch_block_words(arguments: int) -> int:
    """64-bit words of the launch block of a machine with ``arguments`` launch arguments."""
    return LAUNCH_HEADER_WORDS + arguments
