"""What the execute unit's instructions do, element by element, on arrays of binary32 patterns."""

import ctypes
import ctypes.util
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import KEEP, KEPT, PARTIAL_SUMS, Mode, OperandKind, VectorOp

NAN = 0x7FC00000
ONE = 0x3F800000
WITH_B = (VectorOp.MULTIPLY, VectorOp.FMA, VectorOp.MUL_ADD, VectorOp.SELECT, VectorOp.DIVIDE, VectorOp.SCALE)
ADDS_B = (VectorOp.ADD, VectorOp.SUBTRACT)
"""What adds ``b``, if there is one, instead of ``c``."""
NEUTRAL = {VectorOp.MAX: 0xFF800000, VectorOp.MIN: 0x7F800000}
"""What partial results start from; those of sums from -0.0."""
_libm = ctypes.CDLL(ctypes.util.find_library("m"))
_libm.fmaf.restype = ctypes.c_float
_libm.fmaf.argtypes = [ctypes.c_float] * 3


def floats(bits: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(bits, np.uint32).view(np.float32)


def canonical(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, np.float32)
    return np.where(np.isnan(values), np.uint32(NAN), values.view(np.uint32))


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    results = [_libm.fmaf(*one) for one in zip(floats(a).tolist(), floats(b).tolist(), floats(c).tolist(), strict=True)]
    return canonical(np.array(results, np.float32))


def binary(op: VectorOp, a: np.ndarray, c: np.ndarray) -> np.ndarray:
    fa, fc = floats(a), floats(c)
    match op:
        case VectorOp.ADD:
            return canonical(fa + fc)
        case VectorOp.SUBTRACT:
            return canonical(fa - fc)
        case VectorOp.MULTIPLY:
            return canonical(fa * fc)
        case VectorOp.MAX:
            return np.where(fa > fc, a, c)
        case VectorOp.MIN:
            return np.where(fa < fc, a, c)
        case VectorOp.GREATER:
            return np.where(fa > fc, np.uint32(ONE), np.uint32(0))
        case VectorOp.LESS:
            return np.where(fa < fc, np.uint32(ONE), np.uint32(0))
        case VectorOp.EQUAL:
            return np.where(fa == fc, np.uint32(ONE), np.uint32(0))
    raise ValueError(op)


def ternary(op: VectorOp, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The operations that have an operand ``b``, of those that are for rows."""
    if op is VectorOp.FMA:
        return fma(a, b, c)
    if op is VectorOp.SELECT:
        return np.where(floats(b) != 0, a, c)
    product = binary(VectorOp.MULTIPLY, a, b)
    return product if op is VectorOp.MULTIPLY else binary(VectorOp.ADD, product, c)


def scalar_only(op: VectorOp, a: int, b: int) -> int:
    """The operations on one element that rows do not have."""
    fa, fb = (floats(np.array([bits], np.uint32))[0] for bits in (a, b))
    match op:
        case VectorOp.RECIPROCAL:
            result = np.float32(1) / fa
        case VectorOp.DIVIDE:
            result = fa / fb
        case VectorOp.SQUARE_ROOT:
            result = np.sqrt(fa)
        case VectorOp.TO_FLOAT:
            result = np.float32(signed(a))
        case VectorOp.TO_INTEGER:
            whole = 0.0 if np.isnan(fa) else float(np.clip(np.rint(np.float64(fa)), -(1 << 31), (1 << 31) - 1))
            return int(whole) & 0xFFFFFFFF
        case VectorOp.SCALE:
            result = np.float32(np.ldexp(np.float64(fa), np.clip(signed(b), -700, 700)))
    return int(canonical(np.array([result], np.float32))[0])


def signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


def reduce(op: VectorOp, a: np.ndarray, b: np.ndarray | None) -> int:
    """The partial results, each in order, then the tree."""
    neutral = NEUTRAL.get(op, 1 << 31)
    combine = op if op in NEUTRAL else VectorOp.ADD
    if op is VectorOp.ABS:
        op, a = VectorOp.ADD, a & np.uint32(0x7FFFFFFF)
    partial = np.full(PARTIAL_SUMS, neutral, np.uint32)
    for first in range(0, len(a), PARTIAL_SUMS):
        part = slice(first, min(first + PARTIAL_SUMS, len(a)))
        used = slice(0, part.stop - first)
        so_far = partial[used]
        partial[used] = binary(op, a[part], so_far) if b is None else ternary(op, a[part], b[part], so_far)
    while len(partial) > 1:
        half = len(partial) // 2
        partial = binary(combine, partial[half:], partial[:half])
    return int(partial[0])


@dataclass
class Row:
    """Elements of a row that an instruction stores or pops."""

    bits: np.ndarray

    def beats(self, config: Config) -> list[dict[str, int]]:
        """The beats that carry it."""
        beats = []
        for at in range(0, len(self.bits), config.lanes):
            part = self.bits[at : at + config.lanes].astype("<u4").tobytes()
            last = at + config.lanes >= len(self.bits)
            beats.append({"data": int.from_bytes(part, "little"), "bytes": len(part), "last": int(last)})
        return beats


@dataclass
class Model:
    """State of the unit: vector registers, of which each context has a share, and scalars (None: empty); what it was
    given and gave so far.
    """

    config: Config
    lengths: list[int]
    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    scalars: list[int] = field(default_factory=list)
    stores: list[Row] = field(default_factory=list)
    kept: list[np.ndarray] = field(default_factory=list)
    beats: int = 0
    bad_index: int | None = None
    below: int = 0

    def __post_init__(self) -> None:
        self.own_scalars: list[int | None] = [None] * self.config.scalars
        self.turns = [0] * self.config.context_count
        self.scalar_turns = 0
        self.memory = np.zeros((self.config.vector_registers, self.config.vl_max), np.uint32)
        self.written: set[tuple[int, int]] = set()
        """Contexts and registers of theirs that are not empty."""
        self.context = 0

    def execute(self, code: dict[str, Any], make_row: Any, make_scalar: Any, context: int = 0) -> None:
        """Do one instruction; what it pops is made by ``make_row(elements)``, ``make_scalar(is_count, below)``.

        A member ``below`` of ``code``: the scalar that it pops is an integer less than that.
        """
        self.context = context
        code = self._renamed(code)
        if code["op"] is not VectorOp.NOP and not self._too_few(code["a"]):
            self._do(code, make_row, make_scalar)
        self.turns[context] += code.get("rotate", 0)
        self.scalar_turns += code.get("rotate_scalars", 0)

    def _too_few(self, a: dict[str, Any]) -> bool:
        """Whether operand ``a`` is a row that is kept, and not enough are."""
        return a["kind"] is OperandKind.QUEUE and a["number"] >= KEPT and len(self.kept) <= a["number"] - KEPT

    def _renamed(self, code: dict[str, Any]) -> dict[str, Any]:
        """The instruction with the vector registers' own numbers."""
        mode, code = code.get("mode", Mode.VECTOR), dict(code)
        b = {"kind": OperandKind.REGISTER, "number": 0, **code.get("b", {})}
        code["adds_b"] = code["op"] in ADDS_B and (b["kind"], b["number"]) != (OperandKind.REGISTER, 0)

        def own(number: int) -> int:
            around = self.config.rotating_registers
            return (number - self.turns[self.context]) % around if number < around else number

        def own_scalar(number: int) -> int:
            around = self.config.rotating_scalars
            return (number - self.scalar_turns) % around if number < around else number

        for name in "ab":
            operand = {"kind": OperandKind.REGISTER, "number": 0, **code.get(name, {})}
            if operand["kind"] is OperandKind.REGISTER:
                operand["number"] = own(operand["number"])
            if operand["kind"] is OperandKind.SCALAR_REGISTER:
                operand["number"] = own_scalar(operand["number"])
            code[name] = operand
        code["c"], code["destination"] = code.get("c", 0), code.get("destination", 0)
        code["c"] = own_scalar(code["c"]) if mode is Mode.SCALAR else own(code["c"])
        code["destination"] = (own if mode is Mode.VECTOR else own_scalar)(code["destination"])
        if code.get("indexed"):
            code["element"] = own_scalar(code["element"])
        return code

    def _do(self, code: dict[str, Any], make_row: Any, make_scalar: Any) -> None:
        op, mode = code["op"], code.get("mode", Mode.VECTOR)
        self.below = code.get("below", 0)
        count = 1 if mode is Mode.SCALAR else self.lengths[code.get("length", 0)]
        if code.get("indexed"):
            a = self._element(code)
            if a is None:
                return
        else:
            a = self._operand(code["a"], count, make_row, make_scalar)
        if op is VectorOp.STORE:
            self.stores.append(Row(a))
            self._clear(code)
            return
        self.beats += -(-count // self.config.lanes)
        with np.errstate(all="ignore"):
            if mode is Mode.REDUCE:
                b = self._operand(code["b"], count, make_row, make_scalar) if op in WITH_B else None
                result: Any = reduce(op, a, b)
                shared = count > self.config.context_beats * self.config.lanes
                for context in range(self.config.context_count) if shared else (self.context,):
                    self.written.discard((context, code["c"]))
            else:
                result = self._result(op, code, a, self._addend(code, count), make_row, make_scalar)
        self._clear(code)
        if mode is Mode.VECTOR:
            self.written.add((self.context, code["destination"]))
            self._elements(code["destination"])[:count] = result
        else:
            self.own_scalars[code["destination"]] = int(result if mode is Mode.REDUCE else result[0])

    def _clear(self, code: dict[str, Any]) -> None:
        if code.get("clear"):
            kind, number = code["a"]["kind"], code["a"]["number"]
            if kind is OperandKind.SCALAR_REGISTER:
                self.own_scalars[number] = None
            elif kind is OperandKind.REGISTER:
                self.written.discard((self.context, number))

    def _elements(self, number: int) -> np.ndarray:
        """The elements of a register from the context's first one on."""
        return self.memory[number][self.context * self.config.context_beats * self.config.lanes :]

    def _register(self, number: int, first: int, count: int) -> np.ndarray | None:
        """What the context has of a register, or None if it is empty."""
        if (self.context, number) not in self.written:
            return None
        return self._elements(number)[first : first + count].copy()

    def _element(self, code: dict[str, Any]) -> np.ndarray | None:
        """The element that the index names; None, and ``bad_index``, if there is none."""
        index, shared = self.own_scalars[code["element"]] or 0, self.config.context_beats * self.config.lanes
        if index >= (shared if self.context else self.config.vl_max):
            self.bad_index = index
            return None
        found = self._register(code["a"]["number"], index, 1)
        return np.zeros(1, np.uint32) if found is None else found

    def _addend(self, code: dict[str, Any], count: int) -> np.ndarray | None:
        """``c``, or None if it is empty."""
        if code.get("mode", Mode.VECTOR) is Mode.SCALAR:
            value = self.own_scalars[code["c"]]
            return None if value is None else np.array([value], np.uint32)
        return self._register(code["c"], 0, count)

    def _result(self, op: VectorOp, code: dict[str, Any], a: np.ndarray, added: np.ndarray | None,
                make_row: Any, make_scalar: Any) -> np.ndarray:  # fmt: skip
        c = np.zeros(len(a), np.uint32) if added is None else added
        if op is VectorOp.MOVE or (op in (VectorOp.MAX, VectorOp.MIN) and added is None):
            return a
        if op is VectorOp.ABS:
            return a & np.uint32(0x7FFFFFFF)
        if op is VectorOp.DIVIDE_COUNT:
            count = make_scalar(True, 0)
            self.scalars.append(count)
            count &= 0xFFFFFF
            return canonical(floats(a) / np.float32(count)) if count else a
        adds_b = code["adds_b"]
        has_b = op in WITH_B or adds_b
        b = self._operand(code["b"], len(a), make_row, make_scalar) if has_b else np.zeros(1, np.uint32)
        c = b if adds_b else c
        if op.value >= VectorOp.RECIPROCAL.value:
            return np.array([scalar_only(op, int(a[0]), int(b[0]))], np.uint32)
        return ternary(op, a, b, c) if op in WITH_B else binary(op, a, c)

    def _operand(self, operand: dict[str, Any], count: int, make_row: Any, make_scalar: Any) -> np.ndarray:
        kind, number = operand["kind"], operand["number"]
        if kind is OperandKind.QUEUE and number >= KEPT:
            row = self.kept.pop(0)
            assert len(row) == count
            return row
        if kind is OperandKind.QUEUE:
            row = make_row(count)
            self.rows[number % KEEP].append(Row(row))
            if number >= KEEP:
                self.kept.append(row)
            return row
        if kind is OperandKind.SCALAR:
            self.scalars.append(make_scalar(False, self.below))
            return np.full(count, self.scalars[-1] & 0xFFFFFFFF, np.uint32)
        if kind is OperandKind.SCALAR_REGISTER:
            return np.full(count, self.own_scalars[number] or 0, np.uint32)
        found = self._register(number, 0, count)
        return np.zeros(count, np.uint32) if found is None else found
