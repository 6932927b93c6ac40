"""Random and hand-written programs for the execute unit."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import HEAD_WORDS, LENGTH_ELEMENTS, UNSIGNED, UNSTORED
from daedal.hw.isa.instructions import CONVERTED, HEAD, KEEP, KEPT, Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS, OperationUnit, operations_in
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import CallbackField, InstructionField, LengthField
from tests.unit.execute_unit.model import Model

Code = dict[str, Any]
Token = int | tuple[int, int]
"""A callback, or a callback and a context."""
SPECIAL = (0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFA00000, 1, 0x80000001, 0x7FFFFF, 0x800000,
           0x7F7FFFFF, 0x3F800000, 0xBF800000)  # fmt: skip
LIKE_TWO_THIRDS = (2**25 + 1) // 3
"""The one count whose reciprocal has nothing but the highest bit in its fraction."""
REGISTER, QUEUE, SCALAR = OperandKind.REGISTER, OperandKind.QUEUE, OperandKind.SCALAR
OWN = OperandKind.SCALAR_REGISTER
ON_ROWS = tuple(op for op in operations_in(Mode.VECTOR) if not OPERATIONS[op].is_optional)
ROUNDS = tuple(op for op in operations_in(Mode.VECTOR) if OPERATIONS[op].rounds)
"""What only machines that convert have."""
ON_SCALARS = tuple(op for op in operations_in(Mode.SCALAR) if op is not VectorOp.NOP)
REDUCES = operations_in(Mode.REDUCE)
STORES = {op for op, row in OPERATIONS.items() if row.stores or row.rounds or row.unit is OperationUnit.STORE}
"""What there is not of unsigned elements."""
WITH_B = {op for op, row in OPERATIONS.items() if "b" in row.operands and not row.takes_head}


def placed(token: Token) -> tuple[int, int]:
    """The callback and the context of ``token``."""
    return token if isinstance(token, tuple) else (token, 0)


def element(rng: random.Random) -> int:
    """A binary32 pattern: mostly ordinary numbers, some special, some anything."""
    draw = rng.random()
    if draw < 0.8:
        return (rng.getrandbits(1) << 31) | (rng.randint(120, 134) << 23) | rng.getrandbits(23)
    return rng.choice(SPECIAL) if draw < 0.9 else rng.getrandbits(32)


def row(rng: random.Random, elements: int) -> np.ndarray:
    return np.array([element(rng) for _ in range(elements)], np.uint32)


def scalar(rng: random.Random, is_count: bool, below: int) -> int:
    """A scalar with something in the bits that do not count: an element, a count, or an integer that is ``below``."""
    if below:
        return rng.randrange(below) | rng.getrandbits(8) << 32
    if not is_count:
        return element(rng) | rng.getrandbits(8) << 32
    count = rng.choice((0, 1, 2, 3, 7, 7, 20, LIKE_TWO_THIRDS, rng.getrandbits(12), rng.getrandbits(24)))
    return count | rng.getrandbits(16) << 24


def words(lengths: list[int], callbacks: list[list[Code]], kinds: Sequence[LengthField] | None = None) -> list[Word]:
    """The configuration words of callbacks laid out one after the other, the last instruction marked."""
    kinds = [LengthField.ELEMENTS] * len(lengths) if kinds is None else kinds
    result = [Word(kind, n, value) for n, (kind, value) in enumerate(zip(kinds, lengths, strict=True))]
    position = 0
    for token, codes in enumerate(callbacks):
        result.append(Word(CallbackField.START, token, position))
        for n, code in enumerate(codes):
            last = int(n == len(codes) - 1)
            members = {name: value for name, value in code.items() if name != "below"}
            result.append(Word.packed(InstructionField.CODE, position, **{"last": last, **members}))
            position += 1
    return result


class Generator:
    """Draws callbacks whose instructions read only elements that were written, whatever the order of tokens.

    So that this holds, each register belongs to one length register for all the program. So many length registers
    are used, any of the machine's, that each has two registers or more.
    """

    def __init__(self, config: Config, rng: random.Random, longest: int) -> None:
        self.config, self.rng = config, rng
        sizes = [1, config.lanes, rng.randint(1, config.lanes * 3), rng.randint(1, longest), longest]
        self.lengths = [min(rng.choice(sizes), config.vl_max) for _ in range(config.lengths)]
        self.kinds = [LengthField.ELEMENTS] * config.lengths
        if len(config.length_fields) > 1:
            fits = [kind for kind in config.length_fields if LENGTH_ELEMENTS[kind].multiple <= longest]
            self.kinds = [rng.choice(fits) for _ in self.lengths]
            multiples = [LENGTH_ELEMENTS[kind].multiple for kind in self.kinds]
            self.lengths = [
                max(multiple, n // multiple * multiple) for n, multiple in zip(self.lengths, multiples, strict=True)
            ]
        used = min(config.lengths, max(1, config.vector_registers // 2))
        numbers = rng.sample(range(config.lengths), used)
        self.groups = {number: list(range(n, config.vector_registers, used)) for n, number in enumerate(numbers)}
        around = config.rotating_registers
        self.rotates = around > 1 and rng.random() < 0.6
        if self.rotates:  # what may be named by any of these names has one length
            rest = range(around, config.vector_registers)
            self.groups = {number: [r for r in rest if r % used == n] for n, number in enumerate(numbers)}
            self.groups[numbers[0]] += range(around)
            self.groups = {number: group for number, group in self.groups.items() if group}
        self.kept, self.most = self._room_to_keep()

    def _room_to_keep(self) -> tuple[int | None, int]:
        """The length register of all rows that are kept, if any are, and how many there will be at most."""
        beats = {number: -(-self.lengths[number] // self.config.lanes) for number in self.groups}
        fit = [number for number in self.groups if beats[number] <= self.config.kept_beats]
        if not fit:
            return None, 0
        number = self.rng.choice(fit)
        return number, self.rng.randint(1, min(8, self.config.kept_beats // beats[number]))

    def callback(self, most: int) -> list[Code]:
        codes: list[Code] = []
        for _ in range(self.rng.randint(1, most)):
            codes += self.instructions()
        if self.rotates and self.rng.random() < 0.5:
            self.rng.choice(codes)["rotate"] = 1
        if self.config.scalars and self.rng.random() < 0.3:
            # Not between an index and its use, which names the same register.
            self.rng.choice([code for code in codes if "below" not in code])["rotate_scalars"] = 1
        return codes

    def instructions(self) -> list[Code]:
        """An instruction, or two that belong together."""
        if self.kept is not None and self.rng.random() < 0.25:
            return self.keeping()
        draw = self.rng.random() if self.config.scalars else 0
        if draw < 0.5:
            return self._behind_heads(self.instruction())
        if draw < 0.65 and self.config.vector_registers > 2:
            return self._behind_heads(self.reduction())
        return self.element() if draw < 0.7 else [self.on_scalars()]

    def _behind_heads(self, code: Code) -> list[Code]:
        """An instruction, behind those that take the heads off unsigned rows that it pops, if these have heads."""
        queues = [one["number"] for name in "ab" if (one := code.get(name, {})).get("kind") is QUEUE]
        queues = [queue for queue in queues if queue in CONVERTED]
        if self.kinds[code.get("length", 0)] not in UNSIGNED or self.rng.random() < 0.3:
            return [code]
        heads = [{"kind": QUEUE, "number": HEAD + queue} for queue in queues for _ in range(HEAD_WORDS)]
        return [*(self._on_head(head) for head in heads), code]

    def _on_head(self, head: Code) -> Code:
        """An instruction, on scalars or rows, whose operand ``a`` is a number of a head."""
        while True:
            code = self.on_scalars() if self.rng.random() < 0.5 else self.instruction()
            if code["op"] is VectorOp.NOP or OPERATIONS[code["op"]].register_a:
                continue
            b = code.get("b", {})
            if code["op"] is not VectorOp.STORE and b.get("kind") is not QUEUE:
                return {name: value for name, value in code.items() if name != "clear"} | {"a": head}

    def keeping(self) -> list[Code]:
        """A row that is kept, behind the use of one if there would be too many; or the use of one."""
        assert self.kept is not None
        kept = {"kind": QUEUE, "number": KEPT + self.most - 1}
        uses = [self._on_kept() | {"a": kept}]
        if self.rng.random() < 0.4:
            return [uses[0] | {"a": {"kind": QUEUE, "number": KEPT + self.rng.randrange(8)}}]
        return [*uses, self._on_kept() | {"a": {"kind": QUEUE, "number": KEEP + self.rng.randrange(2)}}]

    def _on_kept(self) -> Code:
        """An instruction on rows of the length that is kept, which pops no other."""
        while True:
            code = self.reduction() if self.config.scalars and self.rng.random() < 0.4 else self.instruction()
            pops = any(code.get(name, {}).get("kind") is QUEUE for name in "ab")
            usable = code["op"] is not VectorOp.NOP and not OPERATIONS[code["op"]].register_a
            if usable and code["length"] == self.kept and not pops and code["a"]["kind"] is not SCALAR:
                return {name: value for name, value in code.items() if name != "clear"}

    def instruction(self) -> Code:
        rng = self.rng
        rounds = ROUNDS if self.config.rounds else ()
        op = rng.choice((*ON_ROWS, *rounds, VectorOp.ADD, VectorOp.FMA, VectorOp.STORE))
        if op is VectorOp.NOP:
            register = {"kind": REGISTER, "number": rng.randrange(self.config.vector_registers)}
            return {"op": op, "a": register, "clear": rng.getrandbits(1)}
        length = rng.choice(list(self.groups))
        if self.kinds[length] in UNSTORED and op in STORES:
            op = VectorOp.FMA
        group = self.groups[length]
        code: Code = {"op": op, "length": length, "destination": rng.choice(group), "c": rng.choice(group)}
        return self._with_operands(code, group, OPERATIONS[op].register_a)

    def reduction(self) -> Code:
        """A row to a scalar; the register for partial results is any that is no operand."""
        rng = self.rng
        length = rng.choice(list(self.groups))
        code: Code = {"op": rng.choice(REDUCES), "mode": Mode.REDUCE, "length": length}
        code["destination"] = rng.randrange(self.config.scalars)
        self._with_operands(code, self.groups[length], False)
        operands = [code[name] for name in "ab" if name in code]
        taken = [one["number"] for one in operands if one["kind"] is REGISTER]
        return code | {"c": rng.choice([r for r in range(self.config.vector_registers) if r not in taken])}

    def on_scalars(self, op: VectorOp | None = None) -> Code:
        rng, scalars = self.rng, self.config.scalars
        op = rng.choice((*ON_SCALARS, VectorOp.FMA, VectorOp.STORE)) if op is None else op
        code: Code = {"op": op, "mode": Mode.SCALAR, "length": rng.randrange(self.config.lengths)}
        code |= {"destination": rng.randrange(scalars), "c": rng.randrange(scalars)}
        if op is VectorOp.STORE:
            return code | {"a": {"kind": OWN, "number": rng.randrange(scalars)}, "clear": int(rng.random() < 0.3)}
        return self._with_operands(code, list(range(self.config.vector_registers)), False)

    def element(self) -> list[Code]:
        """An index comes from the scalar queue, then the element that it names is used."""
        rng = self.rng
        length = rng.choice(list(self.groups))
        place = rng.randrange(self.config.scalars)
        pop = {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": {"kind": SCALAR}, "destination": place,
               "below": self.lengths[length]}  # fmt: skip
        while True:
            use = self.on_scalars()
            if "a" in use and use["op"] is not VectorOp.STORE and use["a"]["kind"] is not QUEUE:
                break
        register = {"kind": REGISTER, "number": rng.choice(self.groups[length])}
        return [pop, use | {"a": register, "element": place, "indexed": 1}]

    def _with_operands(self, code: Code, group: list[int], only_register: bool) -> Code:
        rng = self.rng
        kinds = (REGISTER, QUEUE, QUEUE, SCALAR, *((OWN, OWN) if self.config.scalars else ()))
        code["a"] = self._operand(group, REGISTER if only_register else rng.choice(kinds))
        adds_b = OPERATIONS[code["op"]].b_replaces_c and code.get("mode") is not Mode.REDUCE and rng.random() < 0.3
        if code["op"] in WITH_B or adds_b:
            allowed = [kind for kind in kinds if kind is not SCALAR or code["a"]["kind"] is not SCALAR]
            code["b"] = self._operand(group, rng.choice(allowed))
            if code["b"]["kind"] is QUEUE and code["a"]["kind"] is QUEUE:
                code["b"]["number"] = 1 - code["a"]["number"]
        if code["a"]["kind"] in (REGISTER, OWN) and rng.random() < 0.4:
            code["clear"] = 1
        return code

    def _operand(self, group: list[int], kind: OperandKind) -> Code:
        if kind is OWN:
            return {"kind": kind, "number": self.rng.randrange(self.config.scalars)}
        return {"kind": kind, "number": self.rng.choice(group) if kind is REGISTER else self.rng.randrange(2)}


def run_model(config: Config, lengths: list[int], callbacks: list[list[Code]], tokens: list[Token],
              rng: random.Random, kinds: Sequence[LengthField] | None = None) -> Model:  # fmt: skip
    """Run the tokens on the model; rows and scalars are drawn as they are popped."""
    model = Model(config, lengths, kinds)
    for token, context in map(placed, tokens):
        for code in callbacks[token]:
            model.execute(code, lambda n: row(rng, n), lambda *kind: scalar(rng, *kind), context)
    return model
