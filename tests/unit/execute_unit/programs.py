"""Random and hand-written programs for the execute unit."""

import random
from typing import Any

import numpy as np

from daedal.hw.config import Config
from daedal.hw.isa.execute import OperandKind, VectorOp
from daedal.hw.isa.program import Word
from daedal.hw.isa.program_words import CallbackField, InstructionField, LengthField
from tests.unit.execute_unit.model import Model

Code = dict[str, Any]
Token = int | tuple[int, int]
"""A callback, or a callback and a context."""
SPECIAL = (0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFA00000, 1, 0x80000001, 0x7FFFFF, 0x800000,
           0x7F7FFFFF, 0x3F800000, 0xBF800000)  # fmt: skip
WITH_B = (VectorOp.MULTIPLY, VectorOp.FMA, VectorOp.MUL_ADD)
WITH_C = (VectorOp.ADD, VectorOp.SUBTRACT, VectorOp.FMA, VectorOp.MUL_ADD, VectorOp.MAX, VectorOp.MIN)
REGISTER, QUEUE, SCALAR = OperandKind.REGISTER, OperandKind.QUEUE, OperandKind.SCALAR


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


def scalar(rng: random.Random, is_count: bool) -> int:
    """A scalar with something in the bits that do not count."""
    if not is_count:
        return element(rng) | rng.getrandbits(8) << 32
    count = rng.choice((0, 1, 2, 3, 7, 7, 20, rng.getrandbits(12), rng.getrandbits(24)))
    return count | rng.getrandbits(16) << 24


def words(lengths: list[int], callbacks: list[list[Code]]) -> list[Word]:
    """The configuration words of callbacks laid out one after the other, the last instruction marked."""
    result = [Word(LengthField.ELEMENTS, n, value) for n, value in enumerate(lengths)]
    position = 0
    for token, codes in enumerate(callbacks):
        result.append(Word(CallbackField.START, token, position))
        for n, code in enumerate(codes):
            last = int(n == len(codes) - 1)
            result.append(Word.packed(InstructionField.CODE, position, **{"last": last, **code}))
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
        used = min(config.lengths, max(1, config.vector_registers // 2))
        numbers = rng.sample(range(config.lengths), used)
        self.groups = {number: list(range(n, config.vector_registers, used)) for n, number in enumerate(numbers)}

    def callback(self, most: int) -> list[Code]:
        return [self.instruction() for _ in range(self.rng.randint(1, most))]

    def instruction(self) -> Code:
        rng = self.rng
        op = rng.choice((*VectorOp, VectorOp.ADD, VectorOp.FMA, VectorOp.STORE))
        if op is VectorOp.NOP:
            return {"op": op}
        length = rng.choice(list(self.groups))
        group = self.groups[length]
        code: Code = {"op": op, "length": length, "destination": rng.choice(group), "c": rng.choice(group)}
        only_register = op in (VectorOp.STORE, VectorOp.DIVIDE_COUNT)
        code["a"] = self._operand(group, REGISTER if only_register else rng.choice((REGISTER, QUEUE, QUEUE, SCALAR)))
        if op in WITH_B:
            kinds = [kind for kind in OperandKind if kind is not SCALAR or code["a"]["kind"] is not SCALAR]
            code["b"] = self._operand(group, rng.choice(kinds))
            if code["b"]["kind"] is QUEUE and code["a"]["kind"] is QUEUE:
                code["b"]["number"] = 1 - code["a"]["number"]
        if code["a"]["kind"] is REGISTER and rng.random() < 0.4:
            code["clear"] = 1
        return code

    def _operand(self, group: list[int], kind: OperandKind) -> Code:
        return {"kind": kind, "number": self.rng.choice(group) if kind is REGISTER else self.rng.randrange(2)}


def run_model(config: Config, lengths: list[int], callbacks: list[list[Code]], tokens: list[Token],
              rng: random.Random) -> Model:  # fmt: skip
    """Run the tokens on the model; rows and scalars are drawn as they are popped."""
    model = Model(config, lengths)
    for token, context in map(placed, tokens):
        for code in callbacks[token]:
            model.execute(code, lambda n: row(rng, n), lambda is_count: scalar(rng, is_count), context)
    return model
