"""The words of a program: what the loader writes into the units before and between nests.

A program is a sequence of 64-bit words (little endian in memory). Each names a *unit*, an *index* within the
unit, a *field*, and a 40-bit value; the value of a word with ``substitute`` set is the sum (modulo 2**40) of
``value`` and launch argument ``argument``. Fields that are packed structures are named in ``FIELD_STRUCTS``;
all others are plain numbers: of those of LEVEL and STEP the machine keeps as many of the low bits as a stream
register has (``Config.address_bits``).
"""

from amaranth.lib import data, enum

VALUE_BITS = 40


class Unit(enum.Enum, shape=4):
    """What a program word configures."""

    CONTROL = 0
    LEVEL = 1
    EVENT = 2
    STEP = 3
    LENGTH = 4
    CALLBACK = 5
    INSTRUCTION = 6


class ProgramWord(data.Struct):
    """One word of a program."""

    value: VALUE_BITS
    argument: 5
    substitute: 1
    unit: Unit
    index: 6
    field: 8


class ControlField(enum.Enum, shape=8):
    """Words of unit CONTROL; they steer the loader itself.

    CONFIG must be the first word: the hash of the configuration the program is for. LENGTH is the second: the
    number of words. RUN starts the access unit on the nest loaded so far; the loader goes on when the access
    unit has issued everything. END is the last word; its value is the
    checksum, and when it is wrong the launch ends in a fault PROGRAM, whatever was carried out by then.
    """

    CONFIG = 0
    LENGTH = 1
    RUN = 2
    END = 3


class Source(enum.Enum, shape=3):
    """Where an operand comes from: its constant, or a stream register."""

    CONST = 0
    R0 = 1
    R1 = 2
    R2 = 3
    R3 = 4
    R4 = 5
    R5 = 6
    R6 = 7


class LoadIndex(enum.Enum, shape=3):
    """The index of a scalar load: the level's induction variable or a stream register."""

    INDUCTION = 0
    R0 = 1
    R1 = 2
    R2 = 3
    R3 = 4
    R4 = 5
    R5 = 6
    R6 = 7


class Destination(enum.Enum, shape=3):
    """The stream register that takes a result, or none."""

    NONE = 0
    R0 = 1
    R1 = 2
    R2 = 3
    R3 = 4
    R4 = 5
    R5 = 6
    R6 = 7


class Predicate(enum.Enum, shape=3):
    """The register whose being non-zero is a condition, or always."""

    ALWAYS = 0
    R0 = 1
    R1 = 2
    R2 = 3
    R3 = 4
    R4 = 5
    R5 = 6
    R6 = 7


class Sense(enum.Enum, shape=1):
    """Whether a predicate holds when its register is non-zero or when it is zero."""

    NONZERO = 0
    ZERO = 1


class LevelField(enum.Enum, shape=8):
    """Words of unit LEVEL; the index is the level, outermost 0."""

    CONTROL = 0
    LOWER = 1
    UPPER = 2
    STEP = 3
    CHECK = 4
    CHECK_LIMIT = 5
    COUNT = 6
    LOAD0 = 16
    LOAD0_BASE = 17
    LOAD0_LIMIT = 18
    LOAD1 = 20
    LOAD1_BASE = 21
    LOAD1_LIMIT = 22
    LOAD2 = 24
    LOAD2_BASE = 25
    LOAD2_LIMIT = 26
    LOAD3 = 28
    LOAD3_BASE = 29
    LOAD3_LIMIT = 30
    ALU0 = 32
    ALU0_A = 33
    ALU0_B = 34
    ALU1 = 36
    ALU1_A = 37
    ALU1_B = 38
    ALU2 = 40
    ALU2_A = 41
    ALU2_B = 42
    ALU3 = 44
    ALU3_A = 45
    ALU3_B = 46


LOAD_FIELDS = 4
"""Distance between the fields of two load slots."""

ALU_FIELDS = 4
"""Distance between the fields of two ALU operations."""


class LevelControl(data.Struct):
    """LEVEL.CONTROL. Bounds whose source is a register are read from the parent's registers.

    A level that is not enabled passes bundles on unchanged. ``interleave``: activations run side by side, an
    iteration of each, round-robin (docs/machine/machine.md); only in a level with ``Config.contexts``; it
    counts by 1 whatever STEP says. ``deal``: they run one after the other, and the event unit takes a bundle of each in
    turn; only in such a level, and with ``Config.dealt_bundles``; never with ``interleave``.
    """

    enable: 1
    induction: Destination
    lower: Source
    upper: Source
    interleave: 1
    deal: 1


class LoadControl(data.Struct):
    """LEVEL.LOADk: loads the element at ``base + (index << size)``, sign-extended if ``is_signed``.

    The index of a sequential slot is the induction variable; it reads its base from the *parent's* registers. A random
    slot sees the registers as the induction variable and the slots before it have left them. LOADk_BASE is the
    constant base; LOADk_LIMIT the byte address after the array (reading ahead stops there). ``size`` is the log2 of
    the element's bytes; the address bits below the element's size are ignored. The register takes the low bits.
    """

    enable: 1
    size: 2
    is_signed: 1
    index: LoadIndex
    base: Source
    destination: Destination


class AluOp(enum.Enum, shape=4):
    """Operations on stream registers, modulo their size; MIN, MAX, LESS compare as signed, compares give 0 or 1.

    MUL multiplies the low 32 bits of a by the low 24 bits of b, both unsigned. Shifts are by b modulo 64 and
    need a level whose ``shifters`` is set; SHIFT_RIGHT shifts in zeros.
    """

    NONE = 0
    ADD = 1
    SUB = 2
    MUL = 3
    AND = 4
    MIN = 5
    MAX = 6
    EQUAL = 7
    NOT_EQUAL = 8
    LESS = 9
    SHIFT_LEFT = 10
    SHIFT_RIGHT = 11


SHIFTS = (AluOp.SHIFT_LEFT, AluOp.SHIFT_RIGHT)
"""What only a level with ``shifters`` can do."""


class AluControl(data.Struct):
    """LEVEL.ALUk: ``destination = a op b``; constants are in ALUk_A and ALUk_B."""

    op: AluOp
    a: Source
    b: Source
    destination: Destination


class CheckKind(enum.Enum, shape=2):
    """What a checked value is, for the fault record."""

    INDEX = 0
    OFFSET = 1


class CheckMode(enum.Enum, shape=2):
    """What a value outside its bounds does. A value that no check is to look at has none: ``enable`` 0."""

    FATAL = 0
    """The machine faults."""
    WARN = 1
    """0 takes its place. It is counted (Counter.BOUNDS_WARNINGS), and the first one of a launch is kept whole: VALUE of
    the completion record.
    """
    IGNORE = 2
    """0 takes its place, and it is counted."""


class CheckControl(data.Struct):
    """LEVEL.CHECK: the 64-bit value of load slot ``load`` must lie in ``[0, limit)``, else it is as ``mode`` says.

    With WARN and IGNORE the slot's register takes 0 instead, whatever the limit. The constant limit is CHECK_LIMIT; a
    limit register is read from the parent's registers. A sequential slot's value is checked before any random load of
    that iteration is made.
    """

    enable: 1
    load: 2
    kind: CheckKind
    mode: CheckMode
    limit: Source


class CountControl(data.Struct):
    """LEVEL.COUNT: ``destination`` holds the number of iterations of this activation, the present one
    included,

    for which the predicate held after the ALU operations. It is 0 in an activation without iterations.
    """

    enable: 1
    predicate: Predicate
    sense: Sense
    destination: Destination


class EventKind(enum.Enum, shape=2):
    """The events of a level: word index of unit EVENT is ``level * 4 + kind``."""

    BEGIN = 0
    ITER = 1
    END = 2


def event_index(level: int, kind: EventKind) -> int:
    """The index of the word of an event."""
    return level * 4 + int(kind.value)


class EventField(enum.Enum, shape=8):
    """Words of unit EVENT."""

    CONTROL = 0


class EventControl(data.Struct):
    """EVENT.CONTROL: steps ``first`` to ``first + count - 1`` are done, in order, if the predicate holds.

    The predicate and the steps read the registers of the bundle that carries the event. ``count`` 0: no
    event.
    """

    first: 5
    count: 4
    predicate: Predicate
    sense: Sense


class StepField(enum.Enum, shape=8):
    """Words of unit STEP: CONTROL and the constants of the operands."""

    CONTROL = 0
    TOKEN = 1
    SCALAR = 2
    STORE_BASE = 3
    STORE_INDEX = 4
    STORE_PITCH = 5
    STORE_SIZE = 6
    FETCH_BASE = 7
    FETCH_INDEX = 8
    FETCH_PITCH = 9
    FETCH_SIZE = 10


class FetchQueue(enum.Enum, shape=2):
    """Where a row fetch goes: a vector queue of the execute unit, or the store unit (a store stream)."""

    VECTOR0 = 0
    VECTOR1 = 1
    STORE = 2


class StepControl(data.Struct):
    """STEP.CONTROL: what a step enqueues, in this order: scalar, store address, token; then it issues the
    fetch.

    Addresses are ``base + index * pitch`` with the low 32 bits of index and the low 24 bits of pitch,
    unsigned, modulo a register's size. Sizes are bytes (the low 20 bits) and not 0. Size and address of
    a store are multiples of 2, those of a fetch of 4, and a fetched row touches no more lines than its bytes fill.
    ``stream`` marks a store whose data come from a row fetch to FetchQueue.STORE instead of from the execute unit.
    """

    scalar_enable: 1
    store_enable: 1
    token_enable: 1
    fetch_enable: 1
    stream: 1
    queue: FetchQueue
    scalar: Source
    token: Source
    store_base: Source
    store_index: Source
    store_pitch: Source
    store_size: Source
    fetch_base: Source
    fetch_index: Source
    fetch_pitch: Source
    fetch_size: Source


SIZE_BITS = 20
"""Bits of a row's size in bytes."""

INDEX_BITS = 32
"""Bits of an index that take part in an address or a product."""

PITCH_BITS = 24
"""Bits of a row pitch in bytes."""


class LengthField(enum.Enum, shape=8):
    """Words of unit LENGTH; the index is the length register, the value its number of elements.

    The field is the type that these have in memory. Lanes and registers have binary32: a row of another type is widened
    when it is popped from vector queue 0, exactly, and rounded when it is stored, to nearest. An odd row of 16-bit
    elements is fetched with one more behind it, which nothing sees. Rows of 8-bit elements have a multiple of 4 of
    them, and so on; these are not stored. A type that the machine does not have (``Config.binary16``,
    ``Config.bfloat16``, ``Config.quantised``, ``Config.float8``) is an illegal word.
    """

    ELEMENTS = 0
    """Binary32, as it is."""
    BINARY16 = 1
    """Ties are rounded to even."""
    BFLOAT16 = 2
    """Ties are rounded to even."""
    BFLOAT16_AWAY = 3
    """As BFLOAT16, but ties are rounded away from zero."""
    UNSIGNED8 = 4
    """Integers of 8 bits."""
    UNSIGNED4 = 5
    """Integers of 4 bits; the lower half of a byte comes first."""
    UNSIGNED2 = 6
    """Integers of 2 bits; the lowest of a byte come first."""
    FLOAT8_E4 = 7
    """A sign, 4 bits of exponent with bias 7, 3 of fraction. All are finite."""
    FLOAT8_E5 = 8
    """A sign, 5 bits of exponent with bias 15, 2 of fraction. All are finite."""


class CallbackField(enum.Enum, shape=8):
    """Words of unit CALLBACK; the index is the token."""

    START = 0


class InstructionField(enum.Enum, shape=8):
    """Words of unit INSTRUCTION; the index is the instruction's address."""

    CODE = 0
