"""The table of operations: one row says all that the rest of the project knows of an operation.

RTL decode, the emulator's legality and operands (through the generated header), fuzz, tests, interpreters and docs/isa
come from it. What an operation computes is said twice more, so that comparing means something: by the lanes and the
iterative unit (``hw/execute_unit/fpu``) and by the emulator (``cosim/emulator/execute_unit.cpp``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from amaranth.lib import enum

from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode, VectorOp
from daedal.hw.isa.spec import binary32
from daedal.hw.isa.spec.binary32 import Floats


class OperationUnit(enum.Enum, shape=3):
    """What carries an operation out. It decides how long that takes."""

    NONE = 0
    """Nothing: the instruction ends when it is decoded."""
    LANES = 1
    """The lanes, one pass of each element: ``execute_unit/latencies.py``."""
    DIVIDER = 2
    """The lanes, once or twice for each element, and the reciprocal of a count; other instructions go on meanwhile."""
    ITERATIVE = 3
    """The iterative unit, one element at a time, a bit or two of its result a cycle."""
    STORE = 4
    """The store port."""


Compute = Callable[[Floats, Floats, Floats], Floats]
"""Elements of ``a``, ``b`` and ``c`` -> those of the result; of operands that an operation has not, anything."""


@dataclass(frozen=True)
class Reduction:
    """What mode REDUCE makes of a row: each element goes into a partial result, then these are combined in pairs.

    Parameters
    ----------
    formula
        What the result is, for docs.
    neutral
        What a partial result begins with: it changes none.
    accumulate
        The next value of a partial result, which is given as ``c``.
    combine
        Two partial results into one: the one further back is given as ``a``, the other one as ``c``.
    """

    formula: str
    neutral: float
    accumulate: Compute
    combine: Compute


@dataclass(frozen=True)
class Operation:
    """A row of the table of operations.

    Parameters
    ----------
    formula
        The result, for docs, in C's terms.
    unit
        What carries it out.
    compute
        Its semantics: the specification that lanes, emulator and iterative unit are compared with. None if it has no
        result.
    operands
        The operands that it uses, of ``abc``; an operand ``b`` that it does not use must be 0.
    modes
        Those that it may have besides REDUCE.
    reduction
        What it does in mode REDUCE; None if it may not have it.
    note
        What else is to be said of it, for docs.
    b_replaces_c
        But in mode REDUCE: an operand ``b`` that is not 0 takes the place of ``c``.
    register_a
        ``a`` is a register: in mode VECTOR a vector register, in mode SCALAR a scalar register.
    pops_count
        It pops a scalar, which is given as the pattern of ``b``.
    takes_a
        The result is ``a`` if the register ``c`` is empty.
    stores
        The result goes to the store unit. It also takes the place of ``a``, which is a register and empty afterwards,
        whatever ``clear`` says: only a longer row that has the same beats finds it there.
    takes_head
        ``a`` is the row in front of a vector queue whose rows are converted, with its head, which is taken off it, or
        no row at all. ``b`` is one number, or 1.0 if it is absent (vector register 0): the head's are multiplied with
        it. What the operation computes from is the scale as ``b``, and ``c`` plus the bias. Only machines with
        ``Config.has_affine`` have it.
    rounds
        ``a`` is first rounded to the type of ``length``, as it is where it is stored, and widened again. Only machines
        that convert have it.
    """

    formula: str
    unit: OperationUnit
    compute: Compute | None
    operands: str = "a"
    modes: tuple[Mode, ...] = (Mode.VECTOR, Mode.SCALAR)
    reduction: Reduction | None = None
    note: str = ""
    b_replaces_c: bool = False
    register_a: bool = False
    pops_count: bool = False
    takes_a: bool = False
    stores: bool = False
    rounds: bool = False
    takes_head: bool = False

    @property
    def is_optional(self) -> bool:
        """Whether it takes more than an execute unit."""
        return self.rounds or self.takes_head

    def is_of(self, config: Config) -> bool:
        """Whether the machine has it."""
        return bool((config.rounds or not self.rounds) and (config.has_affine or not self.takes_head))

    @property
    def has_result(self) -> bool:
        """Whether something goes to a register, the destination."""
        return self.compute is not None and not self.stores

    def may_have(self, mode: Mode) -> bool:
        """Whether the machine has it in this mode."""
        return self.reduction is not None if mode is Mode.REDUCE else mode in self.modes


def _add(a: Floats, b: Floats, c: Floats) -> Floats:
    return binary32.add(a, c)


def _add_absolute(a: Floats, b: Floats, c: Floats) -> Floats:
    return binary32.add(binary32.absolute(a), c)


def _add_product(a: Floats, b: Floats, c: Floats) -> Floats:
    return binary32.add(binary32.multiply(a, b), c)


def _greater(a: Floats, b: Floats, c: Floats) -> Floats:
    return binary32.greater(a, c)


def _less(a: Floats, b: Floats, c: Floats) -> Floats:
    return binary32.less(a, c)


_EXTREME = "`c` stays unless `a` is strictly beyond it: a NaN in `a` is ignored, one in `c` stays."
_COMPARISON = "A NaN makes it false, zeros of either sign are equal."
_ROUNDED = "Correctly rounded."
LANES, ITERATIVE = OperationUnit.LANES, OperationUnit.ITERATIVE

OPERATIONS: Mapping[VectorOp, Operation] = {
    VectorOp.NOP: Operation("nothing", OperationUnit.NONE, None, ""),
    VectorOp.MOVE: Operation("a", LANES, lambda a, b, c: a, note="Every bit of it, also of a NaN."),
    VectorOp.ADD: Operation(
        "a + c",
        LANES,
        _add,
        "ac",
        b_replaces_c=True,
        reduction=Reduction("the sum of a", -0.0, _add, _add),
    ),
    VectorOp.SUBTRACT: Operation("a - c", LANES, lambda a, b, c: binary32.subtract(a, c), "ac", b_replaces_c=True),
    VectorOp.MULTIPLY: Operation("a * b", LANES, lambda a, b, c: binary32.multiply(a, b), "ab"),
    VectorOp.FMA: Operation(
        "a * b + c",
        LANES,
        binary32.fused,
        "abc",
        note="Rounded once.",
        reduction=Reduction("the sum of a * b", -0.0, binary32.fused, _add),
    ),
    VectorOp.MUL_ADD: Operation(
        "a * b + c",
        LANES,
        _add_product,
        "abc",
        note="The product is rounded before it is added.",
        reduction=Reduction("the sum of a * b", -0.0, _add_product, _add),
    ),
    VectorOp.MAX: Operation(
        "a > c ? a : c",
        LANES,
        _greater,
        "ac",
        note=_EXTREME,
        takes_a=True,
        reduction=Reduction("the greatest a", -np.inf, _greater, _greater),
    ),
    VectorOp.MIN: Operation(
        "a < c ? a : c",
        LANES,
        _less,
        "ac",
        note=_EXTREME,
        takes_a=True,
        reduction=Reduction("the least a", np.inf, _less, _less),
    ),
    VectorOp.ABS: Operation(
        "|a|",
        LANES,
        lambda a, b, c: binary32.absolute(a),
        note="A NaN keeps its payload.",
        reduction=Reduction("the sum of |a|", -0.0, _add_absolute, _add),
    ),
    VectorOp.DIVIDE_COUNT: Operation(
        "a / count",
        OperationUnit.DIVIDER,
        lambda a, b, c: binary32.divide_count(a, binary32.as_bits(b)),
        modes=(Mode.VECTOR,),
        register_a=True,
        pops_count=True,
        note="The count is popped from the scalar queue (its low 24 bits). Correctly rounded; a count of 0 or 1 gives "
        "`a`.",
    ),
    VectorOp.STORE: Operation("none", OperationUnit.STORE, None, register_a=True, note="`a` goes to the store unit."),
    VectorOp.SELECT: Operation(
        "b != 0 ? a : c",
        LANES,
        lambda a, b, c: binary32.select(b, a, c),
        "abc",
        note="Every bit of it; a NaN is not zero.",
    ),
    VectorOp.GREATER: Operation(
        "a > c", LANES, lambda a, b, c: binary32.truth(a > c), "ac", note=f"1.0 or +0.0. {_COMPARISON}"
    ),
    VectorOp.LESS: Operation(
        "a < c", LANES, lambda a, b, c: binary32.truth(a < c), "ac", note=f"1.0 or +0.0. {_COMPARISON}"
    ),
    VectorOp.EQUAL: Operation(
        "a == c", LANES, lambda a, b, c: binary32.truth(a == c), "ac", note=f"1.0 or +0.0. {_COMPARISON}"
    ),
    VectorOp.RECIPROCAL: Operation(
        "1 / a", ITERATIVE, lambda a, b, c: binary32.divide(np.ones_like(a), a), modes=(Mode.SCALAR,), note=_ROUNDED
    ),
    VectorOp.DIVIDE: Operation(
        "a / b", ITERATIVE, lambda a, b, c: binary32.divide(a, b), "ab", (Mode.SCALAR,), note=_ROUNDED
    ),
    VectorOp.SQUARE_ROOT: Operation(
        "sqrt(a)",
        ITERATIVE,
        lambda a, b, c: binary32.square_root(a),
        modes=(Mode.SCALAR,),
        note=f"{_ROUNDED} Of a negative number a NaN, of -0.0 it is -0.0.",
    ),
    VectorOp.TO_FLOAT: Operation(
        "(float)a",
        ITERATIVE,
        lambda a, b, c: binary32.to_float(a.view(np.int32)),
        modes=(Mode.SCALAR,),
        note="`a` is a signed integer of 32 bits; rounded.",
    ),
    VectorOp.TO_INTEGER: Operation(
        "(int)a",
        ITERATIVE,
        lambda a, b, c: binary32.to_integer(a).view(np.float32),
        modes=(Mode.SCALAR,),
        note="The nearest integer, ties to even, as 32 signed bits; what does not fit becomes the nearest that does, a "
        "NaN 0.",
    ),
    VectorOp.SCALE: Operation(
        "a * 2**b",
        ITERATIVE,
        lambda a, b, c: binary32.scale(a, b.view(np.int32)),
        "ab",
        (Mode.SCALAR,),
        note="Rounded once; `b` is a signed integer of 32 bits.",
    ),
    VectorOp.STORE_QUOTIENT: Operation(
        "a / count",
        OperationUnit.DIVIDER,
        lambda a, b, c: binary32.divide_count(a, binary32.as_bits(b)),
        modes=(Mode.VECTOR,),
        register_a=True,
        pops_count=True,
        stores=True,
        note="What DIVIDE_COUNT gives goes to the store unit by way of `a`, which is empty afterwards. Instructions "
        "behind it do not wait for it.",
    ),
    VectorOp.ROUND: Operation(
        "a",
        LANES,
        lambda a, b, c: a,
        modes=(Mode.VECTOR,),
        rounds=True,
        note="`a` rounded to the type of `length`, and widened again: a NaN to the quiet one without payload, of its "
        "sign. Only machines that convert elements have it.",
    ),
    VectorOp.AFFINE: Operation(
        "a * (b * scale) + (c + b * bias)",
        LANES,
        binary32.fused,
        "abc",
        modes=(Mode.VECTOR,),
        takes_head=True,
        note="`a` is a row of vector queue 0 with its head, `scale` and `bias`; `b` is one number, or absent (vector "
        "register 0) and 1.0. The products in brackets and the sum are rounded, then `fma`. Only machines with "
        "`Config.preadder` or `Config.two_pass` have it.",
    ),
}
"""By code. An instruction with a code that has no row is illegal."""


def operations_in(mode: Mode, operations: Mapping[VectorOp, Operation] = OPERATIONS) -> tuple[VectorOp, ...]:
    """The operations that the machine has in this mode, by their codes."""
    return tuple(op for op, row in operations.items() if row.may_have(mode))
