"""What host and machine exchange in memory: launch blocks and completion records, made of 64-bit words."""

from amaranth.lib import data, enum

LAUNCH_ALIGNMENT = 64
"""Launch blocks, programs and completion records start at a multiple of this many bytes."""

BLOCK_REGION = 1024
"""The machine begins to read a launch block to the next multiple of this many bytes, before it knows how long it is. So
launches begin soonest if what follows a block, its program too, ends before that.
"""

LEAST_FOLLOWING = 4
"""Words of the shortest program that can follow its launch block."""

STORE_GRANULE = 64
"""A launch's store window is whole pieces of memory of so many bytes."""


class LaunchWord(enum.Enum, shape=6):
    """Words of a launch block."""

    PROGRAM = 0
    """Byte address of the program, unless that follows the block (LaunchFlags.last_word)."""
    RECORD = 1
    """Byte address of the completion record."""
    LAUNCH = 2
    """A number of the host's choice, 32 bits, given back in the record."""
    FLAGS = 3
    """How it is launched, see LaunchFlags."""
    WINDOW = 4
    """The memory that the launch may write, see StoreWindow."""
    ARGUMENTS = 5
    """The first of ``Config.arguments`` launch arguments, of which the low 40 bits count; if the program follows, there
    are ``last_argument + 1``.
    """


class LaunchFlags(data.Struct):
    """Word FLAGS of a launch block."""

    fence: 1
    """No nest begins, and so nothing is read but block and program, before all writes of the launches queued earlier
    are acknowledged and their records written. Without it a launch reads while the one before still writes.
    """
    last_word: 15
    """0: the program is where PROGRAM says. Else the number of its last word, END, at least 3; and it follows the
    arguments at once, to be read in one go with them. 1 and 2 are as 0.
    """
    last_argument: 5
    """If the program follows: the number of the last argument in front of it. Its words must not use those behind that,
    which are not there.
    """
    reserved: 43
    """Write 0."""


class StoreWindow(data.Struct):
    """Word WINDOW of a launch block: the memory that the launch may write, but for its record, in pieces of
    STORE_GRANULE bytes. Of each number those bits count that memory has. What is in a mapping class other than 0 is
    somewhere in its superblocks. If ``last`` is below ``first`` the launch writes nothing.

    A line outside is not written, nor is any behind it, and the launch ends in a fault STORE_WINDOW.
    """

    first: 32
    """The first piece: its address in memory over STORE_GRANULE."""
    last: 32
    """The last piece."""


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
    """A row to fetch that touches more lines than its bytes fill, or that is not whole granules of 4 bytes, in size or
    address; a row to store that is not whole steps of 2 bytes.
    """
    FRAMING = 5
    """A callback popped another number of elements than was fetched, or a row to store has not the bytes that its
    address says.
    """
    PROGRAM = 6
    """A word, instruction or token that this machine does not have, a configuration hash that is not its own, or a
    checksum that is not that of the words: only END tells, when all before it was carried out.
    """
    MEMORY_ERROR = 7
    """Memory refused a burst. ADDRESS is where the burst begins: of a row, an array or a program that is not all in
    memory, the first line that is not there, if memory ends where a page does (bursts do not go on into another page or
    granule). Of several refused ones it is that which was answered first; and what a sequential slot reads ahead, from
    its base up to its limit, may be refused before the element is wanted.
    """
    MEMORY_SILENT = 8
    """Memory did not answer in time."""
    HANG = 9
    """Nothing moved for ``WATCHDOG_CYCLES`` cycles."""
    STORE_WINDOW = 10
    """A store outside of the launch's window."""


class EmulatedCause(enum.Enum, shape=8):
    """Causes that the emulator alone gives: the RTL does not notice, and what it does then is not specified."""

    READ_AFTER_STORE = 128
    """A byte that the launch stores, of which the machine's order does not say that it is read before
    (docs/machine/launches.md). ADDRESS is that of the byte, VALUE how many bytes were to be read or stored with it.
    """


def cause_of(number: int) -> Cause | EmulatedCause:
    """The cause that a record's head gives by this number; ValueError if there is none."""
    return EmulatedCause(number) if number >= min(each.value for each in EmulatedCause) else Cause(number)


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
    """Word HEAD of a completion record; from ``cause`` to ``queue`` all is 0 unless a fault stopped it."""

    state: State
    """How the launch ended."""
    cause: Cause
    """Why the machine stopped."""
    nest: 8
    """The nest that ran, counted from 0."""
    level: 4
    """The level concerned, outermost 0."""
    queue: Queue
    """The queue that blocked (HANG)."""
    launch: 32
    """LaunchWord.LAUNCH of the launch."""


class RecordWord(enum.Enum, shape=6):
    """Words of a completion record."""

    HEAD = 0
    """State, cause and place, see RecordHead."""
    VALUE = 1
    """The offending value: the whole 64-bit index or offset, the upper bound, the program word's number, the number of
    elements. If the launch is DONE: the first value that a check with CheckMode.WARN replaced, whole, or 0.
    """
    ADDRESS = 2
    """The address concerned, as the program has it, with its mapping class; or 0. For FRAMING of a row to store it is
    that of the beat that did not fit, for STORE_WINDOW that of the first line outside.
    """
    RESERVED = 3
    """Written as 0."""
    REGISTER0 = 4
    """The first of the stream registers (up to 7) of the bundle that faulted."""
    COUNTERS = 12
    """The first of the counters, in the order of Counter."""


class Counter(enum.Enum, shape=6):
    """Counters of a launch. STALL_…: cycles in which a unit had work and could not go on, and why. MARK_…: the most
    entries that a queue has held while the execute unit was at the launch, those of the next launch included.
    """

    CYCLES = 0
    """Cycles to the last acknowledged write of the launch from its doorbell, or from the last acknowledged write of the
    launch before it if that was later; records do not count. So launches that overlap are not counted twice.
    """
    ROWS = 1
    """Row fetches."""
    LOOKUPS = 2
    """Checked indices (CheckKind.INDEX)."""
    BUNDLES = 3
    """Bundles that reached the event unit."""
    TOKENS = 4
    """Tokens sent to the execute unit."""
    LINES_READ = 5
    """Lines read on the memory ports, for whatever reason."""
    LINES_WRITTEN = 6
    """Lines written on the memory port, but for records."""
    BYTES_WRITTEN = 7
    """Bytes strobed in these lines."""
    LANE_BEATS = 8
    """Beats of `Config.lane_bytes` issued into the lanes."""
    STALL_TOKEN_FULL = 9
    """Event stage of the access unit: the token queue is full."""
    STALL_SCALAR_FULL = 10
    """Event stage: the scalar queue is full."""
    STALL_STORE_ADDRESS_FULL = 11
    """Event stage: the store address queue is full."""
    STALL_VECTOR_FULL = 12
    """Event stage: no slot of a vector queue could be reserved."""
    STALL_PORT_BUSY = 13
    """Event stage: the memory port of a row fetch was busy."""
    STALL_LOAD = 14
    """Event stage: there was no bundle although the nest is not done (it waits for scalar loads)."""
    STALL_TOKEN_EMPTY = 15
    """Execute unit: no token."""
    STALL_VECTOR_EMPTY = 16
    """Execute unit: a vector queue was empty."""
    STALL_SCALAR_EMPTY = 17
    """Execute unit: the scalar queue was empty."""
    STALL_STORE_FULL = 18
    """Execute unit: the store data queue was full."""
    STALL_HAZARD = 19
    """Execute unit: an operand is a result of its own that is not there yet."""
    MARK_TOKEN = 20
    """Token queue, entries."""
    MARK_SCALAR = 21
    """Scalar queue, entries."""
    MARK_VECTOR0 = 22
    """Vector queue 0, lines."""
    MARK_VECTOR1 = 23
    """Vector queue 1, lines."""
    MARK_STREAM = 24
    """Queue of the store stream, lines."""
    MARK_STORE_ADDRESS = 25
    """Store address queue, entries."""
    MARK_STORE_DATA = 26
    """Store data queue, beats of `Config.lane_bytes`."""
    BOUNDS_WARNINGS = 27
    """Values outside their bounds that 0 took the place of (CheckMode.WARN and IGNORE)."""


RECORD_WORDS = 40
"""64-bit words of a completion record (a multiple of the longest line, so that records are whole lines)."""

LAUNCH_HEADER_WORDS = 5


def launch_block_words(arguments: int) -> int:
    """64-bit words of the launch block of a machine with ``arguments`` launch arguments."""
    return LAUNCH_HEADER_WORDS + arguments
