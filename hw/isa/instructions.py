"""Instructions of the execute unit: temporal-vector operations on rows of ``vl`` binary32 elements, and scalars."""

from amaranth.lib import data, enum

LENGTH_BITS = 3
"""Bits of the number of a length register."""

KEEP = 2
"""Added to a vector queue's number as operand ``a``: the row that is popped is kept as well."""

HEAD = 4
"""Added to a vector queue's number as operand ``a``: the next number of the head of the row in front."""

CONVERTED = (0,)
"""Vector queues whose rows are of the type of the length that they are popped with; those of others are binary32."""

KEPT = 8
"""Operand ``a`` of kind QUEUE with number KEPT + n: the oldest row that is kept, if they are more than n."""

PARTIAL_SUMS = 16
"""Partial results of a reduction: element i of a row goes to partial result i modulo this."""

OCTET = 8
"""Partial results of a reduction with ``octets``."""


class VectorOp(enum.Enum, shape=5):
    """What an instruction does, element by element, in binary32: ``OPERATIONS`` has a row for each."""

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
    SELECT = 12
    GREATER = 13
    LESS = 14
    EQUAL = 15
    RECIPROCAL = 16
    DIVIDE = 17
    SQUARE_ROOT = 18
    TO_FLOAT = 19
    TO_INTEGER = 20
    SCALE = 21
    STORE_QUOTIENT = 22
    ROUND = 23
    AFFINE = 24


class OperandKind(enum.Enum, shape=2):
    """Where operand ``a`` or ``b`` comes from."""

    REGISTER = 0
    """A vector register."""
    QUEUE = 1
    """A pop of a vector queue, or of the rows that are kept."""
    SCALAR = 2
    """A pop of the scalar queue."""
    SCALAR_REGISTER = 3
    """A scalar register."""


class Mode(enum.Enum, shape=2):
    """What an instruction works on and where its result goes."""

    VECTOR = 0
    """On ``length`` elements; ``c`` and ``destination`` are vector registers. Scalars are used for all elements."""
    SCALAR = 1
    """On one element; ``c`` and ``destination`` are scalar registers. Of a vector register an element is used, from a
    vector queue a row of one element is popped. ``length`` is not used. STORE stores the scalar register ``a`` as a row
    of one element.
    """
    REDUCE = 2
    """The ``length`` elements of a row become one, in scalar register ``destination``."""


class Operand(data.Struct):
    """An operand: vector register ``number``, a pop of vector queue ``number``, a pop of the scalar queue, or scalar
    register ``number``.

    A scalar (its low 32 bits, a binary32) is popped once when the instruction starts and is used for all
    elements.

    Operand ``a`` of kind QUEUE may also have the number KEEP or KEEP + 1: the row that it pops from vector queue 0 or 1
    is kept, behind those that already are. If there is no room for it in ``Config.kept_beats``, the machine raises a
    program fault with its elements. With the number KEPT + n (n from 0 to 7) the operand is the oldest row that is
    kept, and stops keeping it; the instruction does nothing (but what ``last``, ``rotate`` and
    ``rotate_scalars`` say) unless more than n rows are kept. So a row can be used for a second time when the reduction
    of its first time has ended, rows later. A launch begins with none.

    Operand ``a`` of kind QUEUE with the number HEAD, in mode VECTOR or SCALAR, is the first binary32 of the row in
    front of vector queue 0, which is taken off it, and is used for all elements. Such a row has a
    *head*, of ``HEAD_WORDS`` numbers, in front of its elements. A row of unsigned elements is popped with its whole
    head taken, or without a head; any other row, and one that would have no elements left or more of a head, is a
    framing fault. (``Config.quantised``)
    """

    number: 4
    kind: OperandKind


class Instruction(data.Struct):
    """One instruction, 40 bits.

    What it computes, of which operands and in which modes, is said by the table of operations.

    Every register has an *empty* flag, set when a launch starts. Reading an empty register gives
    +0.0 for all elements; but some operations whose ``c`` is empty take ``a``. Writing a register (even
    with fewer elements than it had) makes it not empty. ``clear`` empties the register that operand ``a``
    names once this instruction has read it.

    In a token of context c, a vector register means its beats from ``c * Config.context_beats`` on, with an empty
    flag of their own; a row of more than ``context_beats`` beats is a fault there unless c is 0. The scalar registers,
    of which there are ``Config.scalars``, are the same for all contexts.

    ``length`` names the length register with the number of elements; ``last`` ends the callback. A row popped
    from vector queue 0 must have exactly the bytes of ``length`` elements of that register's type, one from queue 1 of
    so many binary32 (of one binary32, in mode SCALAR), else the machine raises a framing fault. What is stored has the
    bytes of the type as well; see ``LengthField``. The ``b`` of an operation without one is 0. At most one operand is
    the scalar queue; ``a`` and ``b`` pop different queues.

    A vector register as an operand in mode SCALAR is its element 0. With ``indexed``, ``a`` is a vector register and
    means the element whose number, an unsigned integer, is in scalar register ``element``; the machine raises a fault
    with that number if it is not less than the elements that the token's context has of a register: all
    ``Config.vl_max`` in context 0, ``context_beats * lanes`` in others. Without it ``element`` is 0.

    In mode REDUCE element i is accumulated into partial result i modulo ``PARTIAL_SUMS``, in order: for a sum from
    -0.0, which changes nothing, for MAX and MIN from the infinity that loses against all. Then partial results i and
    i + 8 are combined, the latter as ``a`` and the former as ``c`` of ADD, MAX or MIN, then i and i + 4, i + 2, i + 1.
    So the result is the same for any number of lanes. An empty register has the sum +0.0, a row of -0.0 alone -0.0;
    MAX and MIN ignore NaNs. ``c`` names a vector register for the partial results, neither ``a`` nor ``b``; it is
    empty afterwards, in all contexts if the row is longer than a context's share. Instructions behind a reduction go
    on while its tree is computed, except those that name the destination or write to register ``c``. With ``octets``
    (``Config.octets``) element i is accumulated into partial result i modulo ``OCTET``, and neighbours are combined
    first: i and i + 1, then i and i + 2, then i and i + 4.

    With ``rotate``, the vector registers 0 to R - 1 of this context rotate after this instruction: what is named n is
    named n + 1 from then on, and R - 1 becomes 0. R is ``Config.rotating_registers``, half of the vector registers (a
    power of two, rounded down). With ``rotate_scalars`` so do scalar registers 0 to S - 1, S being
    ``Config.rotating_scalars``; these names are the same in all contexts. At a launch the names are the registers' own.
    """

    op: VectorOp
    destination: 4
    a: Operand
    b: Operand
    c: 4
    length: LENGTH_BITS
    clear: 1
    last: 1
    mode: Mode
    indexed: 1
    element: 4
    rotate: 1
    rotate_scalars: 1
    octets: 1


INSTRUCTION_BITS = 40
