"""Random callbacks, and what each of them pops."""

from dataclasses import dataclass, field
from typing import Any

from daedal.hw.config import ELEMENT_BYTES, Config
from daedal.hw.isa.execute import OperandKind, VectorOp
from daedal.hw.isa.program import Word
from daedal.hw.isa.program_words import CallbackField, InstructionField, LengthField
from tests.fuzz.dice import Dice

BINARY = (VectorOp.MULTIPLY, VectorOp.FMA, VectorOp.MUL_ADD)
UNARY = (VectorOp.MOVE, VectorOp.ADD, VectorOp.SUBTRACT, VectorOp.MAX, VectorOp.MIN, VectorOp.ABS)


@dataclass(frozen=True)
class Pop:
    """What an instruction pops: ``queues`` of rows (two: in lockstep) of ``length`` elements, a scalar, or, for a
    store, the store address.
    """

    queues: tuple[int, ...] = ()
    length: int = 0
    scalar: bool = False
    store: bool = False


@dataclass(frozen=True)
class Shape:
    """What an instruction is like, so that others can be made which pop the same."""

    kind: str
    length: int = 0
    queues: tuple[int, ...] = ()
    scalar: bool = False


@dataclass
class Callback:
    """Instructions from ``start`` on, run by any of ``tokens``, which pop the same in the same order."""

    tokens: list[int]
    pops: list[Pop]
    beats: int


@dataclass
class Callbacks:
    """The execute unit's part of a program.

    Each vector register belongs to one length register: it is written with that length and read with no greater one,
    for what is behind the elements written last is undefined.
    """

    dice: Dice
    words: list[Word] = field(default_factory=list)
    made: list[Callback] = field(default_factory=list)

    def make(self) -> None:
        dice, config = self.dice, self.dice.config
        self.lengths = [self.length() for _ in range(config.lengths)]
        dice.sizes = [row_bytes(length) for length in self.lengths]
        self.words = [dice.constant(LengthField.ELEMENTS, k, length) for k, length in enumerate(self.lengths)]
        self.owner = [dice.below(config.lengths) for _ in range(config.vector_registers)]
        token, position = 0, 0
        while token < config.callbacks and position < config.instructions and dice.chance(0.93):
            room = config.instructions - position
            shapes = self.shapes(min(room, dice.pick([1, 2, 2, 3, 3, 4, 5, 7])))
            copies = 1
            while copies < 4 and token + copies < config.callbacks and dice.chance(0.35):
                copies += 1
            pops = [pop for pop in map(self.pop, shapes) if pop]
            callback = Callback([], pops, sum(self.beats(shape.length) for shape in shapes))
            for _ in range(copies):
                if position + len(shapes) <= config.instructions:
                    start, position = position, self.write(shapes, position)
                self.words.append(dice.constant(CallbackField.START, token, start, 0.1))
                callback.tokens.append(token)
                token += 1
            self.made.append(callback)

    def length(self) -> int:
        dice, config = self.dice, self.dice.config
        lanes = config.lanes
        most = config.context_beats * lanes if dice.interleave else config.vl_max
        few = dice.pick([1, 2, 3, lanes, lanes + 1, 2 * lanes, 3 * lanes - 1, dice.between(1, 8 * lanes)])
        return min(most, dice.pick([few, few, few, dice.between(1, most), most, max(1, most - 1)]))

    def beats(self, length: int) -> int:
        return -(-length // self.dice.config.lanes)

    def shapes(self, count: int) -> list[Shape]:
        return [self.shape() for _ in range(count)]

    def shape(self) -> Shape:
        """A random instruction that registers of its length exist for."""
        dice = self.dice
        kind = dice.pick(["rows", "rows", "rows", "two rows", "registers", "store", "store", "divide", "nop"])
        index = dice.below(len(self.lengths))
        length = self.lengths[index]
        if kind == "store":
            return Shape("store", length) if self.readable(length) else Shape("nop")
        if kind == "nop" or not self.writable(length):
            return Shape("nop")
        if kind == "divide":
            return Shape("divide", length, scalar=True)
        if kind == "two rows" and self.lockstep(length):
            return Shape("rows", length, dice.pick([(0, 1), (1, 0)]))
        if kind in ("rows", "two rows"):
            return Shape("rows", length, (dice.below(2),), dice.chance(0.3))
        return Shape("rows", length, (), dice.chance(0.3))

    def lockstep(self, length: int) -> bool:
        """Whether two rows of this length fit the vector queues together."""
        config = self.dice.config
        return self.beats(length) <= config.vector_beats and 2 * self.beats(length) <= config.reorder_beats

    def pop(self, shape: Shape) -> Pop | None:
        if shape.kind == "store":
            return Pop(length=shape.length, store=True)
        if shape.queues or shape.scalar:
            return Pop(shape.queues, shape.length, shape.scalar)
        return None

    def readable(self, length: int) -> list[int]:
        """Registers that have so many elements."""
        return [r for r, owner in enumerate(self.owner) if self.lengths[owner] >= length]

    def writable(self, length: int) -> list[int]:
        return [r for r, owner in enumerate(self.owner) if self.lengths[owner] == length]

    def write(self, shapes: list[Shape], position: int) -> int:
        """Instructions of these shapes from ``position`` on; the position behind them."""
        for number, shape in enumerate(shapes):
            members = self.instruction(shape) | {"last": number == len(shapes) - 1}
            self.words.append(self.dice.packed(InstructionField.CODE, position, **members))
            position += 1
        return position

    def instruction(self, shape: Shape) -> dict[str, Any]:
        dice, config = self.dice, self.dice.config
        if shape.kind == "nop":
            return {"op": VectorOp.NOP, "length": dice.below(config.lengths)}
        choice = [k for k, length in enumerate(self.lengths) if length == shape.length]
        members: dict[str, Any] = {"length": dice.pick(choice), "clear": dice.chance(0.3)}
        readable = self.readable(shape.length)
        register = {"kind": OperandKind.REGISTER, "number": dice.pick(readable)}
        if shape.kind == "store":
            return members | {"op": VectorOp.STORE, "a": register}
        members |= {"destination": dice.pick(self.writable(shape.length)), "c": dice.pick(readable)}
        if shape.kind == "divide":
            return members | {"op": VectorOp.DIVIDE_COUNT, "a": register}
        operands = [{"kind": OperandKind.QUEUE, "number": queue} for queue in shape.queues]
        operands += [{"kind": OperandKind.SCALAR, "number": 0}] if shape.scalar else []
        binary = len(operands) == 2 or dice.chance(0.4)
        if binary:
            while len(operands) < 2:
                operands.append({"kind": OperandKind.REGISTER, "number": dice.pick(readable)})
            operands = operands if dice.chance(0.6) else operands[::-1]
            return members | {"op": dice.pick(BINARY), "a": operands[0], "b": operands[1]}
        return members | {"op": dice.pick(UNARY), "a": operands[0] if operands else register}


def row_bytes(length: int) -> int:
    """Bytes of a row of ``length`` elements."""
    return length * ELEMENT_BYTES


def row_beats(config: Config, size: int) -> int:
    """Beats of a row of ``size`` bytes."""
    return -(-size // config.bus_bytes)
