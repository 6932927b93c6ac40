"""Random callbacks, and what each of them pops."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32, HEAD_WORDS, LANE, LENGTH_ELEMENTS, UNSIGNED, UNSTORED
from daedal.hw.isa.instructions import CONVERTED, HEAD, KEEP, KEPT, Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS, operations_in
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import CallbackField, InstructionField, LengthField
from tests.fuzz.programs.dice import Dice

OWN = OperandKind.SCALAR_REGISTER


def computing(mode: Mode, *, binary: bool) -> tuple[VectorOp, ...]:
    """The operations that compute something of any operands, with or without an operand ``b``."""
    rows = ((op, OPERATIONS[op]) for op in operations_in(mode) if not OPERATIONS[op].is_optional)
    return tuple(op for op, row in rows if row.compute and not row.register_a and ("b" in row.operands) is binary)


BINARY, UNARY = (computing(Mode.VECTOR, binary=binary) for binary in (True, False))
SCALAR_BINARY, SCALAR_UNARY = (computing(Mode.SCALAR, binary=binary) for binary in (True, False))
REDUCE_BINARY, REDUCE_UNARY = (computing(Mode.REDUCE, binary=binary) for binary in (True, False))


ROUNDS = tuple(op for op in operations_in(Mode.VECTOR) if OPERATIONS[op].rounds)
"""What only machines that convert have."""

STORES = ("store", "quotient", "store scalar")
"""Kinds of instructions that store."""

SINGLE = ("compare", "convert", "scalars", "store scalar", "element")
"""Kinds of instructions of mode SCALAR."""


@dataclass(frozen=True)
class Pop:
    """What an instruction pops: ``queues`` of rows (two: in lockstep) of ``length`` elements, a scalar, and, for a
    store, the store address.
    """

    queues: tuple[int, ...] = ()
    length: int = 0
    scalar: bool = False
    store: bool = False
    bytes: int = 0
    """Of a row, stored or popped from a queue whose rows are converted."""

    def row_bytes(self, queue: int) -> int:
        """Of the row that it pops from a queue."""
        return self.bytes if queue in CONVERTED else row_bytes(self.length)


@dataclass(frozen=True)
class Shape:
    """What an instruction is like, so that others can be made which pop the same."""

    kind: str
    length: int = 0
    queues: tuple[int, ...] = ()
    scalar: bool = False
    headed: bool = False
    """The rows that it pops have heads, which the instructions before take off."""


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
    for what is behind the elements written last is undefined. If registers rotate, those that do belong to the same.

    The last scalar register of several is for indices: between callbacks it has 0 or 1.

    All rows that are kept have one length. Before one is, the oldest is used if there are ``most`` already.

    Most operands are of the registers written last: of those drawn from all, few have a result, and a wrong one would
    not reach memory.
    """

    dice: Dice
    words: list[Word] = field(default_factory=list)
    made: list[Callback] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    """Vector registers in the order in which instructions write them."""
    own_results: list[int] = field(default_factory=list)
    """The same of scalar registers that are not for indices."""

    def make(self) -> None:
        dice, config = self.dice, self.dice.config
        if not config.executes:
            dice.sizes = [row_bytes(dice.between(1, 8 * config.lanes))]
            return
        self.lengths = [self.length() for _ in range(config.lengths)]
        self.types = {length: self.type_of(length) for length in self.lengths}
        dice.sizes = [self.row_bytes(length) for length in self.lengths]
        self.words = [dice.constant(self.types[length], k, length) for k, length in enumerate(self.lengths)]
        self.owner = [dice.below(config.lengths) for _ in range(config.vector_registers)]
        around = config.rotating_registers
        self.rotates = around > 1 and dice.chance(0.5)
        if self.rotates:
            self.owner[:around] = [self.owner[0]] * around
        self.kept, self.most = self.room_to_keep()
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

    def type_of(self, length: int) -> LengthField:
        """The type of all rows of this length that are popped or stored."""
        fields = [field for field in self.dice.config.length_fields if length % LENGTH_ELEMENTS[field].multiple == 0]
        return fields[0] if len(fields) == 1 else self.dice.pick(fields)

    def row_bytes(self, length: int) -> int:
        """Bytes of a row of this length in memory."""
        return LENGTH_ELEMENTS[self.types.get(length, LengthField.ELEMENTS)].row_bytes(length)

    def bytes_of(self, shape: Shape) -> int:
        """Bytes of a row that such an instruction pops or stores. Single elements are of binary32."""
        return BINARY32.bytes if shape.kind in SINGLE else self.row_bytes(shape.length)

    def room_to_keep(self) -> tuple[int, int]:
        """The length of rows that are kept, and how many of them at most; 0 if none are."""
        dice, beats = self.dice, self.dice.config.kept_beats
        fit = [length for length in self.lengths if self.beats(length) <= beats and self.writable(length)]
        if not fit or dice.chance(0.3):
            return 0, 0
        length = dice.pick(fit)
        return length, dice.between(1, min(8, beats // self.beats(length)))

    def beats(self, length: int) -> int:
        return -(-length // self.dice.config.lanes)

    def shapes(self, count: int) -> list[Shape]:
        listed: list[Shape] = []
        while len(listed) < count:
            if self.dice.config.scalars > 1 and len(listed) + 2 <= count and self.dice.chance(0.1):
                listed += [Shape("compare"), Shape("convert")]
            elif self.most and len(listed) + 2 <= count and self.dice.chance(0.15):
                listed += [Shape("make room", self.kept), Shape("keep", self.kept, (self.dice.below(2),))]
            elif self.most and self.dice.chance(0.1):
                listed.append(Shape("kept", self.kept))
            else:
                shape = self.shape()
                if shape.kind == "rows" and shape.queues == CONVERTED and self.may_be_whole(shape):
                    shape = replace(shape, kind="affine", headed=True)
                elif self.may_have_heads(shape) and len(listed) + 1 + HEAD_WORDS * len(shape.queues) <= count:
                    heads = [Shape("head", shape.length, (queue,)) for queue in shape.queues if queue in CONVERTED]
                    listed += [head for head in heads for _ in range(HEAD_WORDS)]
                    shape = replace(shape, headed=True)
                if shape.kind in STORES and len(listed) + 2 <= count and self.dice.chance(0.8):
                    listed.append(self.stored(shape))
                listed.append(shape)
        return listed

    def may_be_whole(self, shape: Shape) -> bool:
        """Whether one instruction is to take rows of this shape with their heads."""
        return self.dice.config.has_affine and self.may_have_heads(shape) and self.dice.chance(0.6)

    def may_have_heads(self, shape: Shape) -> bool:
        """Whether rows of this shape are to have heads, as most unsigned ones."""
        is_unsigned = self.types.get(shape.length) in UNSIGNED
        return is_unsigned and shape.kind in ("rows", "reduce") and bool(shape.queues) and self.dice.chance(0.8)

    def shape(self) -> Shape:
        """A random instruction that registers of its length exist for."""
        dice = self.dice
        kind = dice.pick(
            ["rows", "rows", "rows", "two rows", "registers", "store", "store", "quotient", "divide", "nop"]
        )
        index = dice.below(len(self.lengths))
        length = self.lengths[index]
        if dice.config.scalars and dice.chance(0.4):
            return self.scalar_shape(length)
        if kind in STORES and self.types[length] in UNSTORED:
            return Shape("nop")
        if kind == "store":
            return Shape("store", length) if self.readable(length) else Shape("nop")
        if kind == "quotient":
            return Shape(kind, length, scalar=True) if self.readable(length) else Shape("nop")
        if kind == "nop" or not self.writable(length):
            return Shape("nop")
        if kind == "divide":
            return Shape("divide", length, scalar=True)
        if kind == "two rows" and self.lockstep(length):
            return Shape("rows", length, dice.pick([(0, 1), (1, 0)]))
        if kind in ("rows", "two rows"):
            return Shape("rows", length, (dice.below(2),), dice.chance(0.3))
        return Shape("rows", length, (), dice.chance(0.3))

    def stored(self, store: Shape) -> Shape:
        """What computes a result for a store behind it, so that what goes to memory is seldom empty."""
        dice = self.dice
        queues: tuple[int, ...] = dice.pick([(), (0,), (0,), (1,), (1,)])
        if store.kind in ("store", "quotient"):
            return Shape("rows", store.length, queues) if self.writable(store.length) else Shape("nop")
        length = dice.pick(self.lengths)
        return Shape("reduce", length, queues) if self.readable(length) else Shape("scalars", 1, queues)

    def scalar_shape(self, length: int) -> Shape:
        """A random instruction on scalars, or a reduction of rows of this length."""
        dice = self.dice
        kind = dice.pick(["scalars", "scalars", "scalars", "reduce", "reduce", "store scalar", "element"])
        if kind == "store scalar":
            return Shape(kind, 1)
        if kind == "element":
            return Shape(kind if self.readable(2) and dice.config.scalars > 1 else "scalars", 1)
        queues: tuple[int, ...] = dice.pick([(), (0,), (1,), (0, 1)])
        length = 1 if kind == "scalars" else length
        if len(queues) == 2 and not self.lockstep(length):
            queues = queues[:1]
        own = len(queues) < 2 and dice.chance(0.3)
        return Shape(kind, length, queues, own) if self.readable(length) else Shape("scalars", 1)

    def lockstep(self, length: int) -> bool:
        """Whether two rows of this length fit the vector queues together."""
        config = self.dice.config
        lines = max(self.beats(length), -(-length * LANE.bytes // config.bus_bytes))
        return lines <= config.vector_beats and 2 * lines <= config.reorder_beats

    def pop(self, shape: Shape) -> Pop | None:
        if shape.kind in STORES:
            return Pop(length=shape.length, store=True, scalar=shape.scalar, bytes=self.bytes_of(shape))
        if shape.kind != "head" and (shape.queues or shape.scalar):
            size = self.bytes_of(shape) + shape.headed * HEAD_WORDS * LANE.bytes
            return Pop(shape.queues, shape.length, shape.scalar, bytes=size)
        return None

    def readable(self, length: int) -> list[int]:
        """Registers that have so many elements."""
        return [r for r, owner in enumerate(self.owner) if self.lengths[owner] >= length]

    def writable(self, length: int) -> list[int]:
        return [r for r, owner in enumerate(self.owner) if self.lengths[owner] == length]

    def source(self, readable: Sequence[int]) -> int:
        """One of these vector registers to read, most often one that has a result."""
        return self._with_result(self.results, readable)

    def _with_result(self, results: list[int], allowed: Sequence[int]) -> int:
        written = [number for number in results if number in allowed]
        last = self.dice.pick([1, 1, 3])
        return self.dice.pick(written[-last:] if written and self.dice.chance(0.85) else allowed)

    def write(self, shapes: list[Shape], position: int) -> int:
        """Instructions of these shapes from ``position`` on; the position behind them."""
        for number, shape in enumerate(shapes):
            members = self.instruction(shape) | {"last": number == len(shapes) - 1}
            if "destination" in members and shape.kind not in ("compare", "convert"):
                scalar = members.get("mode", Mode.VECTOR) is not Mode.VECTOR
                (self.own_results if scalar else self.results).append(members["destination"])
            members |= {"rotate": self.rotates and self.dice.chance(0.2)}
            self.words.append(self.dice.packed(InstructionField.CODE, position, **members))
            position += 1
        return position

    def instruction(self, shape: Shape) -> dict[str, Any]:
        dice, config = self.dice, self.dice.config
        if shape.kind == "nop":
            return {"op": VectorOp.NOP, "length": dice.below(config.lengths)}
        if shape.kind == "head":
            return self.on_head(shape)
        if shape.kind in SINGLE:
            return {"mode": Mode.SCALAR, "length": dice.below(config.lengths)} | self.on_scalars(shape)
        choice = [k for k, length in enumerate(self.lengths) if length == shape.length]
        members: dict[str, Any] = {"length": dice.pick(choice), "clear": dice.chance(0.1)}
        readable = self.readable(shape.length)
        if shape.kind in ("make room", "keep", "kept"):
            return self.on_kept(shape, choice)
        register = {"kind": OperandKind.REGISTER, "number": self.source(readable)}
        if shape.kind == "store":
            return members | {"op": VectorOp.STORE, "a": register}
        if shape.kind == "quotient":
            return members | {"op": VectorOp.STORE_QUOTIENT, "a": register}
        if shape.kind == "reduce":
            members |= {"mode": Mode.REDUCE, "destination": self.own()["number"]} | self.octets()
            operands = self.operands(shape, REDUCE_BINARY, REDUCE_UNARY, readable)
            used = [one["number"] for one in operands.values() if isinstance(one, dict)
                    and one["kind"] is OperandKind.REGISTER]  # fmt: skip
            free = [r for r in range(config.vector_registers) if r not in used]
            if not free:
                return {"op": VectorOp.NOP} if not shape.queues and not shape.scalar else members | {
                    "op": VectorOp.ADD, "a": self.popped(shape)[0], "c": 0
                }  # fmt: skip
            return members | operands | {"c": dice.pick(free)}
        members |= {"destination": dice.pick(self.writable(shape.length)), "c": self.source(readable)}
        if shape.kind == "divide":
            return members | {"op": VectorOp.DIVIDE_COUNT, "a": register}
        if shape.kind == "affine":
            operands = dict(zip("ab", self.popped(shape), strict=False))
            if not shape.scalar and config.scalars and dice.chance(0.4):
                operands["b"] = self.own()
            return members | {"op": VectorOp.AFFINE} | operands
        return members | self.operands(shape, BINARY, UNARY, readable)

    def on_head(self, shape: Shape) -> dict[str, Any]:
        """An instruction, on scalars or rows, of which a number of a head is operand ``a``."""
        dice, head = self.dice, {"kind": OperandKind.QUEUE, "number": HEAD + shape.queues[0]}
        if not self.writable(shape.length) or dice.chance(0.5):
            members = {"mode": Mode.SCALAR, "length": dice.below(dice.config.lengths)}
            members |= {"destination": self.own()["number"], "c": self.own()["number"]}
            plain = self.operands(Shape("scalars", 1), SCALAR_BINARY, SCALAR_UNARY, list(range(len(self.owner))))
        else:
            readable = self.readable(shape.length)
            members = {"length": dice.pick([k for k, length in enumerate(self.lengths) if length == shape.length])}
            members |= {"destination": dice.pick(self.writable(shape.length)), "c": self.source(readable)}
            plain = self.operands(Shape("rows", shape.length), BINARY, UNARY, readable)
        return members | plain | {"a": head}

    def on_kept(self, shape: Shape, lengths: list[int]) -> dict[str, Any]:
        """An instruction on a row that is popped and kept, or on the oldest one, if there are enough."""
        dice, readable = self.dice, self.readable(shape.length)
        least = self.most - 1 if shape.kind == "make room" else dice.below(8)
        number = KEEP + shape.queues[0] if shape.queues else KEPT + least
        members: dict[str, Any] = {"length": dice.pick(lengths), "a": {"kind": OperandKind.QUEUE, "number": number}}
        b = {"kind": OperandKind.REGISTER, "number": self.source(readable)}
        if dice.config.scalars and dice.chance(0.4):
            free = [r for r in range(dice.config.vector_registers) if r != b["number"]]
            members |= {"mode": Mode.REDUCE, "destination": self.own()["number"], "c": dice.pick(free)} | self.octets()
            return members | dice.pick(
                [{"op": op, "b": b} for op in REDUCE_BINARY] + [{"op": op} for op in REDUCE_UNARY]
            )
        members |= {"destination": dice.pick(self.writable(shape.length)), "c": self.source(readable)}
        return members | dice.pick([{"op": op, "b": b} for op in BINARY] + [{"op": op} for op in UNARY])

    def octets(self) -> dict[str, int]:
        """Whether a reduction has eight partial results."""
        return {"octets": 1} if self.dice.config.octets and self.dice.chance(0.4) else {}

    def on_scalars(self, shape: Shape) -> dict[str, Any]:
        """An instruction of mode SCALAR but for its mode."""
        dice, index = self.dice, self.dice.config.scalars - 1
        if shape.kind == "compare":
            return {"op": VectorOp.GREATER, "a": self.own(), "c": self.own()["number"], "destination": index}
        if shape.kind == "convert":
            return {"op": VectorOp.TO_INTEGER, "a": {"kind": OWN, "number": index}, "destination": index}
        members = {"destination": self.own()["number"], "c": self.own()["number"], "clear": dice.chance(0.2)}
        if shape.kind == "store scalar":
            return members | {"op": VectorOp.STORE, "a": self.own()}
        if shape.kind == "element":
            register = {"kind": OperandKind.REGISTER, "number": self.source(self.readable(2))}
            operands = self.operands(Shape("scalars", 1), SCALAR_BINARY, SCALAR_UNARY, [register["number"]])
            return members | operands | {"a": register, "indexed": 1, "element": index}
        return members | self.operands(shape, SCALAR_BINARY, SCALAR_UNARY, list(range(len(self.owner))))

    def own(self) -> dict[str, Any]:
        """A scalar register that is not for indices, if there is one."""
        return {"kind": OWN, "number": self._with_result(self.own_results, range(max(1, self.dice.config.scalars - 1)))}

    def popped(self, shape: Shape) -> list[dict[str, Any]]:
        """The operands that are popped."""
        operands: list[dict[str, Any]] = [{"kind": OperandKind.QUEUE, "number": queue} for queue in shape.queues]
        return operands + ([{"kind": OperandKind.SCALAR, "number": 0}] if shape.scalar else [])

    def operands(self, shape: Shape, binary: tuple[VectorOp, ...], unary: tuple[VectorOp, ...],
                 readable: list[int]) -> dict[str, Any]:  # fmt: skip
        """An operation with operands, which pop what the shape says."""
        dice, operands = self.dice, self.popped(shape)
        two = len(operands) == 2 or dice.chance(0.4)
        while len(operands) < (2 if two else 1):
            if dice.config.scalars and dice.chance(0.4):
                operands.append(self.own())
            else:
                operands.append({"kind": OperandKind.REGISTER, "number": self.source(readable)})
        operands = operands if dice.chance(0.6) else operands[::-1]
        if two:
            return {"op": dice.pick(binary), "a": operands[0], "b": operands[1]}
        can_round = dice.config.rounds and self.types.get(shape.length) not in UNSTORED
        if unary is UNARY and can_round and dice.chance(0.3):
            unary = ROUNDS
        return {"op": dice.pick(unary), "a": operands[0]}


def row_bytes(length: int) -> int:
    """Bytes of a row of ``length`` elements."""
    return length * BINARY32.bytes


def row_beats(config: Config, size: int) -> int:
    """Beats of a row of ``size`` bytes."""
    return -(-size // config.bus_bytes)
