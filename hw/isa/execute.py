"""Instructions of the execute unit: temporal-vector operations on rows of ``vl`` binary32 elements."""

from amaranth.lib import data, enum

LENGTH_BITS = 3
"""Bits of the number of a length register."""


class VectorOp(enum.Enum, shape=5):
    """What an instruction does, element by element; binary32, nearest even, subnormals kept, NaN is
    0x7fc00000.

    ``c`` is always a vector register, the accumulator. MAX and MIN keep ``c`` unless ``a`` is strictly
    greater (less), so a NaN in ``a`` is ignored and one in ``c`` stays. MUL_ADD rounds the product before
    it adds. DIVIDE_COUNT pops a count from the scalar queue (its low 24 bits) and divides ``a`` by it,
    correctly rounded; a count of 0 gives ``a``. STORE sends ``a`` to the store unit. MOVE, ABS keep a NaN's
    payload.
    """

    NOP = 0
    MOVE = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    FMA = 5
    MUL_ADD = 6
    MAX = 7
    MIN = 8
    ABS = 9
    DIVIDE_COUNT = 10
    STORE = 11


class OperandKind(enum.Enum, shape=2):
    """Where operand ``a`` or ``b`` comes from."""

    REGISTER = 0
    QUEUE = 1
    SCALAR = 2


class Operand(data.Struct):
    """An operand: vector register ``number``, a pop of vector queue ``number``, or a pop of the scalar queue.

    A scalar (its low 32 bits, a binary32) is popped once when the instruction starts and is used for all
    elements.
    """

    number: 4
    kind: OperandKind


class Instruction(data.Struct):
    """One instruction, 40 bits.

    ADD: ``d = a + c``; SUBTRACT: ``d = a - c``; MULTIPLY: ``d = a * b``; FMA, MUL_ADD: ``d = a * b + c``;
    MAX, MIN: ``d = a > c ? a : c``, ``d = a < c ? a : c``; MOVE, ABS, DIVIDE_COUNT, STORE: of ``a`` only.

    Every vector register has an *empty* flag, set when a launch starts. Reading an empty register gives
    +0.0 for all elements; but ``MAX`` and ``MIN`` whose ``c`` is empty take ``a``. Writing a register (even
    with fewer elements than it had) makes it not empty. ``clear`` empties the register that operand ``a``
    names once this instruction has read it (STORE and DIVIDE_COUNT of another register use it).

    In a token of context c, a vector register means its beats from ``c * Config.context_beats`` on, with an empty
    flag of their own; a row of more than ``context_beats`` beats is a fault there unless c is 0.

    ``length`` names the length register with the number of elements; ``last`` ends the callback. A row popped
    from a vector queue must have exactly ``length`` elements, else the machine raises a framing fault.
    ``a`` of STORE and of DIVIDE_COUNT is a register, and the ``b`` of an operation without one is 0. At
    most one operand is the scalar queue; ``a`` and ``b`` pop different queues.
    """

    op: VectorOp
    destination: 4
    a: Operand
    b: Operand
    c: 4
    length: LENGTH_BITS
    clear: 1
    last: 1
    reserved: 10


INSTRUCTION_BITS = 40
