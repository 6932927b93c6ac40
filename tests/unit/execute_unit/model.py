"""What the execute unit's instructions do, element by element, on arrays of binary32 patterns."""

import ctypes
import ctypes.util
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.hw.config import Config
from daedal.hw.isa.execute import OperandKind, VectorOp

NAN = 0x7FC00000
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
    raise ValueError(op)


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
    """State of the unit: registers of each context (None: empty), and what it was given and gave so far."""

    config: Config
    lengths: list[int]
    contexts: list[list[np.ndarray | None]] = field(default_factory=list)
    rows: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))
    scalars: list[int] = field(default_factory=list)
    stores: list[Row] = field(default_factory=list)
    beats: int = 0

    def __post_init__(self) -> None:
        self.contexts = [[None] * self.config.vector_registers for _ in range(self.config.context_count)]
        self.registers = self.contexts[0]

    def execute(self, code: dict[str, Any], make_row: Any, make_scalar: Any, context: int = 0) -> None:
        """Do one instruction; what it pops is made by ``make_row(elements)``, ``make_scalar(is_count)``."""
        self.registers = self.contexts[context]
        op = code["op"]
        if op is VectorOp.NOP:
            return
        count = self.lengths[code.get("length", 0)]
        a = self._operand(code.get("a", {}), count, make_row, make_scalar)
        destination, c = code.get("destination", 0), self.registers[code.get("c", 0)]
        if op is VectorOp.STORE:
            self.stores.append(Row(a))
            if code.get("clear"):
                self.registers[code["a"]["number"]] = None
            return
        addend = np.zeros(count, np.uint32) if c is None else c[:count]
        self.beats += -(-count // self.config.lanes)
        with np.errstate(all="ignore"):
            result = self._result(op, code, a, addend, c is None, make_row, make_scalar)
        if code.get("clear"):
            self.registers[code["a"]["number"]] = None
        self.registers[destination] = result

    def _result(self, op: VectorOp, code: dict[str, Any], a: np.ndarray, c: np.ndarray, empty: bool,
                make_row: Any, make_scalar: Any) -> np.ndarray:  # fmt: skip
        if op is VectorOp.MOVE or (op in (VectorOp.MAX, VectorOp.MIN) and empty):
            return a
        if op is VectorOp.ABS:
            return a & np.uint32(0x7FFFFFFF)
        if op is VectorOp.DIVIDE_COUNT:
            count = make_scalar(True)
            self.scalars.append(count)
            count &= 0xFFFFFF
            return canonical(floats(a) / np.float32(count)) if count else a
        if op in (VectorOp.MULTIPLY, VectorOp.FMA, VectorOp.MUL_ADD):
            b = self._operand(code.get("b", {}), len(a), make_row, make_scalar)
            if op is VectorOp.FMA:
                return fma(a, b, c)
            product = binary(VectorOp.MULTIPLY, a, b)
            return product if op is VectorOp.MULTIPLY else binary(VectorOp.ADD, product, c)
        return binary(op, a, c)

    def _operand(self, operand: dict[str, Any], count: int, make_row: Any, make_scalar: Any) -> np.ndarray:
        kind, number = operand.get("kind", OperandKind.REGISTER), operand.get("number", 0)
        if kind is OperandKind.QUEUE:
            row = make_row(count)
            self.rows[number].append(Row(row))
            return row
        if kind is OperandKind.SCALAR:
            self.scalars.append(make_scalar(False))
            return np.full(count, self.scalars[-1] & 0xFFFFFFFF, np.uint32)
        register = self.registers[number]
        return np.zeros(count, np.uint32) if register is None else register[:count].copy()
