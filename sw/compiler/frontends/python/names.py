"""What a kernel's source may name beside Python's own: types of arguments, sizes, and functions on f32.

The functions also work on NumPy numbers, so that a kernel can be called as the plain Python function that it is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.base.float_mode import default_float_mode
from daedal.compiler.functions import numpy_exponential, numpy_sigmoid
from daedal.errors import DaedalError
from daedal.hw.isa.instructions import OCTET, PARTIAL_SUMS, VectorOp
from daedal.hw.isa.spec.binary32 import fused
from daedal.hw.isa.spec.reduction import reduce
from daedal.runtime.loops.distinct import check_distinct


@dataclass(frozen=True)
class ScalarType:
    """The type of an array's elements or of a single number; ``f32[B, D]`` is the type of an array."""

    name: str

    def __getitem__(self, shape: Any) -> "ArrayType":
        return ArrayType(self, shape if isinstance(shape, tuple) else (shape,))

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ArrayType:
    """The type of an array: elements and sizes."""

    element: ScalarType
    shape: tuple[Any, ...]


f32, f16, bf16, u8, i8, i32, i64 = (ScalarType(name) for name in ("f32", "f16", "bf16", "u8", "i8", "i32", "i64"))


@dataclass(frozen=True)
class Dim:
    """The name of a size. Arithmetic gives expressions that mean something in a kernel's source only."""

    text: str

    def _with(self, sign: str, other: object) -> "Dim":
        return Dim(f"({self.text} {sign} {other.text if isinstance(other, Dim) else other})")

    def __add__(self, other: object) -> "Dim":
        return self._with("+", other)

    def __sub__(self, other: object) -> "Dim":
        return self._with("-", other)

    def __mul__(self, other: object) -> "Dim":
        return self._with("*", other)

    def __radd__(self, other: object) -> "Dim":
        return Dim(f"({other} + {self.text})")

    def __rsub__(self, other: object) -> "Dim":
        return Dim(f"({other} - {self.text})")

    def __rmul__(self, other: object) -> "Dim":
        return Dim(f"({other} * {self.text})")


def dims(names: str) -> tuple[Dim, ...]:
    """Names of sizes, for signatures without ``from __future__ import annotations``: ``B, D = daedal.dims("B D")``."""
    found = tuple(Dim(name) for name in names.replace(",", " ").split())
    wrong = [dim.text for dim in found if not dim.text.isidentifier()]
    if wrong or not found:
        raise DaedalError(f"dims must be given names apart by spaces, not {names!r}")
    return found


def distinct(*arrays: Any) -> None:
    """The promise that no array of row numbers has a number twice, in front of a kernel's loops.

    It is checked before each launch, and where the kernel is called as a Python function: UnsupportedOperation names
    the first number that was there before, and both places.
    """
    for array in arrays:
        check_distinct("an array that is distinct", np.asarray(array))


def zeros(width: int) -> Any:
    """A local row of ``width`` f32, all 0.0."""
    return np.zeros(width, np.float32)


@default_float_mode()
def exp(x: Any) -> Any:
    """The exponential, with the bits that the machine gives."""
    return numpy_exponential(np.float32(x))[()]


@default_float_mode()
def sqrt(x: Any) -> Any:
    """The square root, rounded correctly."""
    return np.sqrt(np.float32(x))


@default_float_mode()
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), with the bits that the machine gives."""
    return numpy_sigmoid(np.float32(x))[()]


@default_float_mode()
def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once."""
    return fused(*(np.array(each, np.float32) for each in (a, b, c)))[()]


@default_float_mode()
def dot(a: Any, b: Any, *, partial_sums: int = PARTIAL_SUMS) -> Any:
    """The sum of the products of two rows, ``daedal.dot(a[i, :], b[j, :])``, added up in the machine's fixed tree.

    Element i of 16 partial sums is of elements i, i + 16, …; those 8 apart are added first, then 4, 2, 1. With
    ``partial_sums=8`` there are eight, and neighbours are added first, then pairs of them: FBGEMM's order.
    """
    rows = (np.asarray(row, np.float32) for row in (a, b))
    return reduce(VectorOp.MUL_ADD, *rows, octets=partial_sums == OCTET)[()]
