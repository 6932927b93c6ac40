"""Operations without side effects: integers are Python's, f32 and rows NumPy's."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType, StringAttr, VectorType
from xdsl.ir import Operation

from daedal.compiler.dialects.slcv import element_type
from daedal.compiler.functions import Reference, numpy_exponential, numpy_sigmoid
from daedal.compiler.interpreters.elements import rounded, widened
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.operations import Reduction
from daedal.hw.isa.spec.binary32 import divide_count
from daedal.hw.isa.spec.execute import compute
from daedal.hw.isa.spec.integer import alu, signed
from daedal.hw.isa.spec.reduction import reduce, reduction_of
from daedal.hw.isa.words import AluOp

REFERENCE = Reference()

WORD_BITS = 64
"""Bits of an integer: more than a stream register has, for no program may depend on how many it has."""

INTEGER_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip
"""By the predicate of ``arith.cmpi``; the unsigned ones that follow are not used."""

FLOAT_COMPARISONS: Mapping[int, Callable[[Any, Any], bool]] = {
    1: operator.eq, 2: operator.gt, 3: operator.ge, 4: operator.lt, 5: operator.le,
    6: lambda a, b: a < b or a > b,
    8: lambda a, b: not (a < b or a > b), 9: lambda a, b: not a <= b, 10: lambda a, b: not a < b,
    11: lambda a, b: not a >= b, 12: lambda a, b: not a > b, 13: operator.ne,
}  # fmt: skip
"""By the predicate of ``arith.cmpf``: ordered ones are false for a NaN, unordered ones true."""


def as_f32(value: Any) -> Any:
    """A single f32 or a row, whatever NumPy made of it."""
    array = np.asarray(value, np.float32)
    return np.float32(array) if array.ndim == 0 else array


def reduction(kind: str) -> Reduction:
    """How ``slcv.reduce`` of this kind does it."""
    return reduction_of(VectorOp[kind.upper()])


def _kind(op: Operation) -> str:
    kind = op.properties["kind"]
    assert isinstance(kind, StringAttr)
    return kind.data


def _constant(op: Operation) -> Any:
    assert isinstance(op, arith.ConstantOp)
    if isinstance(op.value, IntegerAttr):
        return op.value.value.data
    if isinstance(op.value, FloatAttr):
        return np.float32(op.value.value.data)
    raise UnsupportedOperation(f"constant {op.value} cannot be interpreted")


def _compare_integers(op: Operation, a: int, b: int) -> bool:
    assert isinstance(op, arith.CmpiOp)
    predicate = op.predicate.value.data
    if predicate >= len(INTEGER_COMPARISONS):
        raise UnsupportedOperation("unsigned comparisons cannot be interpreted")
    return INTEGER_COMPARISONS[predicate](a, b)


def _compare_floats(op: Operation, a: Any, b: Any) -> bool:
    assert isinstance(op, arith.CmpfOp)
    return bool(FLOAT_COMPARISONS[op.predicate.value.data](a, b))


def _compare_rows(op: Operation, a: Any, b: Any) -> Any:
    return as_f32(compute(VectorOp[_kind(op).upper()], a, c=b))


def _keep(choose: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda op, a, b: as_f32(a if b is None else choose(a, b))


def _alu(op: Operation, a: int, b: int) -> int:
    return signed(alu(AluOp[_kind(op).upper()], a, b, WORD_BITS), WORD_BITS)


def _broadcast(op: Operation, value: Any) -> Any:
    kind = op.results[0].type
    assert isinstance(kind, VectorType)
    return np.full(kind.get_shape(), value, np.float32)


def _widen(op: Operation, value: Any) -> Any:
    return as_f32(widened(value, element_type(op.operands[0])))


def _round(op: Operation, value: Any) -> Any:
    return rounded(value, element_type(op.results[0]), away="away" in op.properties)[()]


def _dim(op: Operation, array: Any, dimension: int) -> int:
    return int(array.shape[dimension])


def _alloca(op: Operation) -> Any:
    kind = op.results[0].type
    assert isinstance(kind, MemRefType)
    return np.full(kind.get_shape(), np.nan, np.float32)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that depends on its operands only."""
    return lambda op, *operands: function(*operands)


def on_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with an f32 or a row as its result."""
    return lambda op, *operands: as_f32(function(*operands))


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "arith.constant": _constant,
    "arith.index_cast": plain(int),
    "arith.extsi": plain(int),
    "arith.extui": plain(int),
    "arith.addi": plain(operator.add),
    "arith.subi": plain(operator.sub),
    "arith.muli": plain(operator.mul),
    "arith.andi": plain(operator.and_),
    "arith.ori": plain(operator.or_),
    "arith.xori": plain(operator.xor),
    "arith.divsi": plain(operator.floordiv),
    "arith.minsi": plain(min),
    "arith.maxsi": plain(max),
    "arith.shli": plain(operator.lshift),
    "arith.shrui": plain(operator.rshift),
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    "arith.select": plain(lambda condition, a, b: a if condition else b),
    "arith.sitofp": on_floats(float),
    "arith.addf": on_floats(operator.add),
    "arith.subf": on_floats(operator.sub),
    "arith.mulf": on_floats(operator.mul),
    "arith.divf": on_floats(operator.truediv),
    "arith.negf": on_floats(operator.neg),
    "math.absf": on_floats(np.abs),
    "math.sqrt": on_floats(np.sqrt),
    "math.fma": on_floats(REFERENCE.fma),
    "math.exp": on_floats(numpy_exponential),
    "narrow.widen": _widen,
    "narrow.round": _round,
    "memref.dim": _dim,
    "memref.alloca": _alloca,
    "vector.broadcast": _broadcast,
    "slc.alu": _alu,
    "slcv.compare": _compare_rows,
    "slcv.select": on_floats(REFERENCE.select),
    "slcv.sigmoid": on_floats(numpy_sigmoid),
    "slcv.to_integer": plain(lambda value: int(REFERENCE.to_integer(value))),
    "slcv.scale": on_floats(REFERENCE.scale),
    "slcv.element": plain(lambda row: np.float32(row[0])),
    "slcv.keep_greater": _keep(REFERENCE.keep_greater),
    "slcv.keep_less": _keep(REFERENCE.keep_less),
    "slcv.reduce": lambda op, *rows: as_f32(
        reduce(VectorOp[_kind(op).upper()], *rows, octets="octets" in op.properties)
    ),
    "dlc.divide_count": on_floats(divide_count),
}
"""Name of an operation -> its result, from the operation and its operands."""

CALLS: Mapping[str, Callable[..., Any]] = {"daedal_exp": numpy_exponential, "daedal_sigmoid": numpy_sigmoid}
"""Functions that text may call."""
