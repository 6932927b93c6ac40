"""What the stages of the execute unit hand to each other."""

from amaranth import Cat, Shape, Value, unsigned
from amaranth.hdl import ShapeLike
from amaranth.lib import data, enum
from amaranth.utils import exact_log2

from daedal.hw.config.core import CONTEXT_BITS, Config
from daedal.hw.execute_unit.fpu.iterative_op import IterativeOp
from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.interfaces import context_bits, lane_beat_layout
from daedal.hw.isa.elements import LANE
from daedal.hw.isa.instructions import INSTRUCTION_BITS, LENGTH_BITS, PARTIAL_SUMS, OperandKind

POSITION_BITS = 7
"""Bits of an instruction's address, the one after the last included, or of a token."""


def row_layout(config: Config) -> data.StructLayout:
    """The size of a row: the number of its last beat, and the bytes of that.

    ``wait`` is ``read_after_write`` minus its beats, at least 0: how long after its last beat was issued a row
    that starts then can read it from its register, beat by beat. ``kind``, if there are several: the type of its
    elements where it is popped or stored, a ``LengthField``.
    """
    return data.StructLayout(
        {
            "last_beat": range(config.register_beats),
            "tail_bytes": range(config.lane_bytes + 1),
            "wait": range(latencies(config).read_after_write),
            **_kind(config),
        }
    )


def _kind(config: Config) -> dict[str, ShapeLike]:
    return {"kind": kind_bits(config)} if config.length_fields[1:] else {}


def kind_bits(config: Config) -> int:
    """Bits of a ``LengthField``, of those that there are."""
    return max(2, *(kind.value.bit_length() for kind in config.length_fields))


def store_beat_layout(config: Config) -> data.StructLayout:
    """A beat of a row to store, and the ``kind`` of that."""
    return data.StructLayout({**lane_beat_layout(config).members, **_kind(config)})


def elements(config: Config, row: data.View) -> Value:
    """The number of elements of ``row`` (a view of ``row_layout``)."""
    number: Value = row.last_beat * config.lanes + row.tail_bytes // LANE.bytes
    return number


def register_number(config: Config) -> range:
    """Numbers of vector registers and of scalar registers."""
    return range(max(config.vector_registers, config.scalars))


def register_place(config: Config) -> Shape:
    """Where a beat is: its address in the vector registers, or the number of a scalar register below a set top bit."""
    beats = Shape.cast(range(config.vector_registers * config.register_beats)).width
    return unsigned(beats + (config.scalars > 0))


def operand_layout(config: Config) -> data.StructLayout:
    """Operand ``a`` or ``b``: a vector or scalar register, vector queue ``queue``, or the scalar.

    A register that is ``zero`` is not looked at: all its elements are +0.0.
    """
    return data.StructLayout({"register": register_number(config), "kind": OperandKind, "queue": 1, "zero": 1})


def partial_beats(config: Config) -> int:
    """Beats of the partial results of a reduction."""
    return min(PARTIAL_SUMS // config.lanes, config.register_beats)


def partial_step(config: Config) -> int:
    """Beats from one place for partial results to the next: no more than a context owns."""
    return min(partial_beats(config), config.context_beats)


def partial_area(config: Config) -> range:
    """Where in a register some partial results begin, counted in ``partial_step``."""
    return range(config.register_beats // partial_step(config))


def issue_layout(config: Config) -> data.StructLayout:
    """A row's way through the lanes.

    ``c_used``: ``c`` is read; without it the addend is +0.0, or operand ``b`` with ``adds_b``. ``absolute``: operand
    ``a`` without its sign. ``divides``: by a count, whose reciprocal is operand ``b``; before ``Quotients`` the count
    is in ``scalar``. ``partial``: it does not count as beats of the lanes. ``context``: whose share of the
    registers is meant. ``c_scalar``, ``to_scalar``: ``c``, ``destination`` is a scalar register. ``writes``: it has
    results.

    ``rounds``, if there are several types: operand ``a`` is rounded to that of the row.

    ``keeps``: the row that operand ``a`` pops is kept as well; ``kept``: operand ``a`` is the oldest that was.
    ``head``, if there are any: operand ``a`` is a number of the head of the row in front. ``affine``, with
    AFFINE: that row has its head, and operand ``b`` is a weight of both of its numbers; ``plain``: there is none.

    With ``indexed`` the scalar register ``index`` has the number of operand ``a``'s element, and the row waits for all
    results before it. ``reduces``: results go round ``area`` of the destination, and are added to from the second round
    on; elements behind the last take no part; what comes of them is for scalar register ``target``, which of any other
    row is its destination, if that is scalar. ``octets``, if there are any: they go round half of the area.
    ``iterative``: operands of this operation, which go to the iterative unit.
    """
    operand = operand_layout(config)
    return data.StructLayout(
        {
            "op": LaneOp,
            "negate_product": 1,
            "negate_addend": 1,
            "a": operand,
            "b": operand,
            "c": register_number(config),
            "c_used": 1,
            "c_scalar": 1,
            "adds_b": 1,
            "absolute": 1,
            "indexed": 1,
            "index": range(config.scalars),
            "reduces": 1,
            **({"octets": 1} if config.octets else {}),
            "area": partial_area(config),
            "target": range(config.scalars),
            "iterative": IterativeOp,
            **({"rounds": 1} if config.rounds else {}),
            "keeps": 1,
            "kept": 1,
            **({"head": 1} if config.quantised else {}),
            **({"affine": 1, "plain": 1} if config.has_affine else {}),
            "divides": 1,
            "partial": 1,
            "destination": register_number(config),
            "to_scalar": 1,
            "writes": 1,
            "row": row_layout(config),
            "context": context_bits(config),
            "scalar": LANE.bits,
        }
    )


def store_layout(config: Config) -> data.StructLayout:
    """A row to store from ``register``, a vector register or a ``scalar`` one; all zeros if that is ``zero``."""
    return data.StructLayout(
        {
            "register": register_number(config),
            "scalar": 1,
            "context": context_bits(config),
            "zero": 1,
            "row": row_layout(config),
        }
    )


def is_long(config: Config, row: data.View) -> Value:
    """Whether a row, of context 0 then, has more beats than a context owns of a register."""
    return row.last_beat >= config.context_beats


def register_beat(config: Config, register: Value, context: Value, beat: Value) -> Value:
    """The address of a beat in the register file: the register number above the beat number."""
    return Cat((beat | (context << exact_log2(config.context_beats)))[: exact_log2(config.register_beats)], register)


def start_layout() -> data.StructLayout:
    """Where a token's callback starts, and its context; for a ``bad`` token, its number."""
    return data.StructLayout({"position": POSITION_BITS, "bad": 1, "context": CONTEXT_BITS})


def fetched_layout() -> data.StructLayout:
    """An instruction and its position, or that there is none.

    ``bad``: the token has no callback; ``position`` is its number. ``beyond``: the callback goes on after the
    end of the instruction memory.
    """
    return data.StructLayout(
        {"code": INSTRUCTION_BITS, "position": POSITION_BITS, "bad": 1, "beyond": 1, "context": CONTEXT_BITS}
    )


def sent_layout(config: Config) -> data.StructLayout:
    """What Dispatch hands on: a row for the lanes, or one that ``stores`` operand ``a``, divided or not."""
    return data.StructLayout({"issue": issue_layout(config), "stores": 1})


class Kind(enum.Enum, shape=3):
    """What the dispatcher does with an instruction."""

    NOTHING = 0
    LANES = 1
    STORE = 2
    REDUCE = 3
    FAULT = 4
    """It never goes on: the machine does not have it."""


def decoded_layout(config: Config) -> data.StructLayout:
    """A decoded instruction. ``issue`` is complete but for empty registers and the scalar; a scalar register to which
    it writes is ``issue.target`` as well. ``scalars`` are all scalar registers that it names, a bit for each.

    ``stores``: its result, or operand ``a``, goes to the store port. ``extreme``: MAX or MIN. ``beyond_kept``: with
    ``issue.kept`` it does nothing unless more rows than this are kept. ``bad_token``, ``illegal``, ``bad_length`` are
    the faults; ``position`` as in ``fetched_layout``; ``length`` is the number of the length register.
    """
    return data.StructLayout(
        {
            "kind": Kind,
            "stores": 1,
            "issue": issue_layout(config),
            "extreme": 1,
            "beyond_kept": 3,
            "needs_scalar": 1,
            "scalars": config.scalars,
            "clear": 1,
            "rotate": 1,
            "rotate_scalars": 1,
            "bad_token": 1,
            "illegal": 1,
            "bad_length": 1,
            "length": LENGTH_BITS,
            "position": POSITION_BITS,
        }
    )
