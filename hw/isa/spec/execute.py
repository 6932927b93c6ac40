"""The execute unit as an executable specification: what instructions read, compute and write, one after the other.

It says what must come out, not when. RTL and emulator share the table of operations with it as far as operands and
legality go; what they compute is their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import HEAD_WORDS
from daedal.hw.isa.instructions import CONVERTED, HEAD, KEEP, KEPT, Instruction, Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS, Operation, OperationUnit
from daedal.hw.isa.program import unpack
from daedal.hw.isa.spec.binary32 import Floats, as_bits, from_bits
from daedal.hw.isa.spec.narrow import Patterns, narrow, rounded, widen
from daedal.hw.isa.spec.reduction import reduce
from daedal.hw.isa.words import FetchQueue, LengthField

_VECTOR, _QUEUE, _SCALAR, _OWN = (kind.value for kind in OperandKind)

Members = Mapping[str, int]
"""An instruction by its members, as ``unpack`` gives them."""


class Queues(Protocol):
    """What an execute unit pops from and stores to."""

    def row(self, queue: int, elements: int, kind: LengthField) -> Patterns:
        """The next row of vector queue 0 or 1, which is to have so many elements of this type."""
        ...

    def head(self, queue: int) -> int:
        """The pattern of the next binary32 of the head of the row in front of vector queue 0 or 1, taken off it."""
        ...

    def scalar(self, *, is_count: bool) -> int:
        """The next scalar; only its low bits count."""
        ...

    def store(self, row: Patterns) -> None:
        """A row for the store unit."""
        ...


class IndexBeyond(Exception):
    """An index is not less than the elements that the token's context has of a register: a fault with that number."""


def compute(op: VectorOp, a: Floats, b: Floats | None = None, c: Floats | None = None) -> Floats:
    """The result of one operation, element by element; an operand that is not given is +0.0."""
    how, zero = OPERATIONS[op].compute, np.zeros_like(a)
    if how is None:
        raise ValueError(f"op must have a result, not {op.name}")
    with np.errstate(all="ignore"):
        return how(a, zero if b is None else b, zero if c is None else c)


@dataclass(frozen=True)
class _Decoded:
    """An instruction: its operation, that one's row, its mode, and all its members."""

    op: VectorOp
    row: Operation
    mode: Mode
    members: Members


@lru_cache(maxsize=4096)
def _decode(word: int) -> _Decoded:
    members = unpack(Instruction, word)
    op = VectorOp(members["op"])
    return _Decoded(op, OPERATIONS[op], Mode(members["mode"]), members)


class ExecuteUnit:
    """The registers of an execute unit behind what it has executed, in one launch.

    Parameters
    ----------
    config
        The machine's.
    lengths
        The length registers, in elements.
    queues
        What rows and scalars are popped from, and rows are stored to.
    kinds
        The types of the length registers; left out, all are ELEMENTS.
    """

    def __init__(
        self, config: Config, lengths: list[int], queues: Queues, kinds: Sequence[LengthField] | None = None
    ) -> None:
        self.config, self.lengths, self.queues = config, lengths, queues
        self.kinds = [LengthField.ELEMENTS] * len(lengths) if kinds is None else list(kinds)
        self.lane_beats = 0
        """Beats of rows that were read for something else than a store."""
        self.kept: list[Floats] = []
        """Rows that are kept, the oldest first."""
        self.scalars: list[Floats | None] = [None] * config.scalars
        """One element each; None if it is empty."""
        self._share = config.context_beats * config.lanes
        self._context = 0
        self._numbers: list[Floats] = []
        """The head of the row that the instruction takes, if it takes one with its head."""
        self._kind = LengthField.ELEMENTS
        """The type of rows that the instruction pops or stores."""
        self._vector_turns = [0] * config.context_count
        self._scalar_turns = 0
        self._memory = np.zeros((config.vector_registers, config.vl_max), np.float32)
        self._written: set[tuple[int, int]] = set()
        """Contexts and registers of theirs that are not empty."""

    def execute(self, word: int, context: int = 0) -> bool:
        """Do one legal instruction in a token of ``context``; whether it is the callback's last.

        Raises IndexBeyond.
        """
        self._context = context
        decoded = _decode(word)
        code = self._renamed(decoded)
        too_few = code["a.kind"] == _QUEUE and code["a.number"] >= KEPT + len(self.kept)
        if decoded.row.unit is not OperationUnit.NONE and not too_few:
            self._do(decoded, code)
        self._vector_turns[context] += code["rotate"]
        self._scalar_turns += code["rotate_scalars"]
        return bool(code["last"])

    def _renamed(self, decoded: _Decoded) -> Members:
        """The instruction's members with the registers' own numbers."""
        code, mode = decoded.members, decoded.mode

        def own(number: int, *, scalar: bool) -> int:
            around = self.config.rotating_scalars if scalar else self.config.rotating_registers
            turns = self._scalar_turns if scalar else self._vector_turns[self._context]
            return (number - turns) % around if number < around else number

        new = dict(code)
        for name in "ab":
            kind, number = code[f"{name}.kind"], code[f"{name}.number"]
            if kind in (_VECTOR, _OWN):
                new[f"{name}.number"] = own(number, scalar=kind == _OWN)
        new["c"] = own(code["c"], scalar=mode is Mode.SCALAR)
        new["destination"] = own(code["destination"], scalar=mode is not Mode.VECTOR)
        new["element"] = own(code["element"], scalar=True)
        return new

    def _do(self, decoded: _Decoded, code: Members) -> None:
        single = decoded.mode is Mode.SCALAR
        count = 1 if single else self.lengths[code["length"]]
        self._kind = LengthField.ELEMENTS if single else self.kinds[code["length"]]
        self._numbers = [from_bits([self.queues.head(queue)]) for queue in CONVERTED for _ in range(HEAD_WORDS)
                         if decoded.row.takes_head]  # fmt: skip
        a = self._element(code) if code["indexed"] else self._operand(code, "a", count)
        if decoded.row.unit is OperationUnit.STORE:
            self.queues.store(narrow(a, self._kind))
            self._clear(code)
            return
        if decoded.row.stores:
            result = self._result(decoded, code, a)
            self.queues.store(narrow(result, self._kind))
            if (self._context, code["a.number"]) in self._written:
                self._elements(code["a.number"])[:count] = result
            self._clear({**code, "clear": 1})
            return
        self.lane_beats += -(-count // self.config.lanes)
        reduces = decoded.mode is Mode.REDUCE
        result = self._reduced(decoded, code, a) if reduces else self._result(decoded, code, a)
        self._clear(code)
        if decoded.mode is Mode.VECTOR:
            self._written.add((self._context, code["destination"]))
            self._elements(code["destination"])[:count] = result
        else:
            self.scalars[code["destination"]] = result

    def _result(self, decoded: _Decoded, code: Members, a: Floats) -> Floats:
        row = decoded.row
        if row.rounds:
            a = rounded(a, self._kind)
        c = self._addend(decoded.mode, code, len(a)) if "c" in row.operands else None
        if row.takes_head:
            return self._of_head(decoded, code, a, c)
        if row.takes_a and c is None:
            return a
        named = decoded.members
        replaces = row.b_replaces_c and (named["b.kind"], named["b.number"]) != (_VECTOR, 0)
        b = self._operand(code, "b", len(a)) if "b" in row.operands or replaces else None
        if row.pops_count:
            b = from_bits([self.queues.scalar(is_count=True) & 0xFFFFFFFF])
        return compute(decoded.op, a, b, b if replaces else c)

    def _of_head(self, decoded: _Decoded, code: Members, a: Floats, c: Floats | None) -> Floats:
        """The result of an operation on a row with a head."""
        named = decoded.members
        scale, bias = self._numbers
        if (named["b.kind"], named["b.number"]) != (_VECTOR, 0):
            weight = self._operand(code, "b", 1)
            scale, bias = (compute(VectorOp.MULTIPLY, number, weight) for number in (scale, bias))
        added = compute(VectorOp.ADD, np.repeat(bias, len(a)), None, c)
        return compute(decoded.op, a, np.repeat(scale, len(a)), added)

    def _reduced(self, decoded: _Decoded, code: Members, a: Floats) -> Floats:
        """The reduction of a row; the register of its partial results is empty afterwards."""
        b = self._operand(code, "b", len(a)) if "b" in decoded.row.operands else None
        for context in range(self.config.context_count) if len(a) > self._share else (self._context,):
            self._written.discard((context, code["c"]))
        return reduce(decoded.op, a, b, octets=bool(code["octets"])).reshape(1)

    def _clear(self, code: Members) -> None:
        if code["clear"] and code["a.kind"] == _OWN:
            self.scalars[code["a.number"]] = None
        elif code["clear"] and code["a.kind"] == _VECTOR:
            self._written.discard((self._context, code["a.number"]))

    def _elements(self, number: int) -> Floats:
        """The elements of a register from the context's first one on."""
        return self._memory[number][self._context * self._share :]

    def _register(self, number: int, first: int, count: int) -> Floats | None:
        """What the context has of a register, or None if it is empty."""
        if (self._context, number) not in self._written:
            return None
        return self._elements(number)[first : first + count].copy()

    def _element(self, code: Members) -> Floats:
        """The element that the index names."""
        index = self.scalars[code["element"]]
        number = 0 if index is None else int(as_bits(index)[0])
        if number >= (self._share if self._context else self.config.vl_max):
            raise IndexBeyond(number)
        found = self._register(code["a.number"], number, 1)
        return np.zeros(1, np.float32) if found is None else found

    def _addend(self, mode: Mode, code: Members, count: int) -> Floats | None:
        """``c``, or None if it is empty."""
        if mode is Mode.SCALAR:
            return self.scalars[code["c"]]
        return self._register(code["c"], 0, count)

    def _operand(self, code: Members, name: str, count: int) -> Floats:
        kind, number = code[f"{name}.kind"], code[f"{name}.number"]
        if kind == _QUEUE:
            return self._row(number, count)
        if kind == _SCALAR:
            return np.repeat(from_bits([self.queues.scalar(is_count=False) & 0xFFFFFFFF]), count)
        found = self.scalars[number] if kind == _OWN else self._register(number, 0, count)
        if found is None:
            return np.zeros(count, np.float32)
        return np.repeat(found, count) if kind == _OWN else found

    def _row(self, number: int, count: int) -> Floats:
        """A row that is popped, and maybe kept, or the oldest that is kept."""
        if number >= KEPT:
            return self.kept.pop(0)
        if number >= HEAD:
            return np.repeat(from_bits([self.queues.head(number - HEAD)]), count)
        queue = number % KEEP
        kind = self._kind if queue in CONVERTED else LengthField.ELEMENTS
        row = widen(self.queues.row(queue, count, kind), kind)
        if number >= KEEP:
            self.kept.append(row)
        return row


def _takes_whole_row(code: Members) -> bool:
    """Whether ``a`` is a row of a queue whose rows are converted, and ``b`` one number, or absent."""
    a, b = ((code[f"{name}.kind"], code[f"{name}.number"]) for name in "ab")
    return a[0] == _QUEUE and a[1] in CONVERTED and (b[0] in (_SCALAR, _OWN) or b == (_VECTOR, 0))


def is_legal(word: int, config: Config, operations: Mapping[VectorOp, Operation] = OPERATIONS) -> bool:
    """Whether the machine has this instruction: its operation, mode, registers, queues and length register."""
    code = unpack(Instruction, word)
    row = next((row for op, row in operations.items() if op.value == code["op"]), None)
    if row is None or not row.is_of(config):
        return False
    if row.takes_head and not _takes_whole_row(code):
        return False
    if code["octets"] and not (config.octets and code["mode"] == Mode.REDUCE.value):
        return False
    if code["mode"] >= len(Mode) or not row.may_have(Mode(code["mode"])):
        return False
    mode, vectors, scalars = Mode(code["mode"]), config.vector_registers, config.scalars
    a, b = ((code[f"{name}.kind"], code[f"{name}.number"]) for name in "ab")
    kept = bool(config.kept_beats) and a[0] == _QUEUE and a[1] >= KEPT
    keeps = bool(config.kept_beats) and a[0] == _QUEUE and KEEP <= a[1] < 2 * KEEP
    head = bool(config.quantised) and mode is not Mode.REDUCE and a[0] == _QUEUE and a[1] - HEAD in CONVERTED
    limits = {_VECTOR: vectors, _QUEUE: FetchQueue.STORE.value, _SCALAR: 1 << 4, _OWN: scalars}
    takes_b = "b" in row.operands or (row.b_replaces_c and mode is not Mode.REDUCE)
    same = a[0] == b[0] and (a[0] == _SCALAR or (a[0] == _QUEUE and not kept and a[1] % KEEP == b[1] % KEEP))
    partial = (_VECTOR, code["c"])
    if mode is Mode.REDUCE and (partial == a or ("b" in row.operands and partial == b)):
        return False
    if row.register_a and a[0] != (_OWN if mode is Mode.SCALAR else _VECTOR):
        return False
    if code["indexed"] and (mode is not Mode.SCALAR or a[0] != _VECTOR):
        return False
    return (
        (kept or keeps or head or a[1] < limits[a[0]])
        and b[1] < limits[b[0]]
        and not same
        and (takes_b or b == (_VECTOR, 0))
        and code["length"] < config.lengths
        and (code["element"] < scalars if code["indexed"] else code["element"] == 0)
        and code["destination"] < (vectors if mode is Mode.VECTOR else scalars)
        and code["c"] < (scalars if mode is Mode.SCALAR else vectors)
    )
