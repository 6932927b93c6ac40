"""Where the values of a callback are while its instructions are chosen."""

from dataclasses import dataclass

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from daedal.compiler.dialects import dlc, narrow
from daedal.compiler.dialects.slcv import width_of
from daedal.compiler.dialects.slcv_scalars import ElementOp
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.instructions import KEEP, OperandKind
from daedal.hw.isa.words import LengthField

ALIASES = (vector.BroadcastOp, ElementOp, narrow.WidenOp, narrow.RoundOp)
"""Operations whose result is in the same place as their operand, but for what is rounded and then widened, and for
elements that longer rows are made of.
"""


def is_alias(op: Operation) -> bool:
    """Whether the result of an operation is in the same place as its operand."""
    return isinstance(op, ALIASES) and not is_shortened(op) and not is_spread(op)


def is_spread(op: Operation) -> bool:
    """Whether it takes an element that is spread along a longer row: as a row, the place has no others."""
    return isinstance(op, ElementOp) and any(
        isinstance(use.operation, vector.BroadcastOp) and width_of(use.operation.vector) > width_of(op.row)
        for use in op.result.uses
    )


def is_shortened(op: Operation) -> bool:
    """Whether it widens what is rounded: both are one instruction."""
    return isinstance(op, narrow.WidenOp) and isinstance(op.narrow.owner, narrow.RoundOp)


@dataclass(frozen=True)
class Place:
    """A vector or scalar register, or the next of a queue. ``clear``: reading it must empty the register.

    ``is_accumulator``: the register is not the value's alone, and stays taken when the value is used up. ``field``: the
    type that a row which is popped has in memory; None for numbers of its head.
    """

    kind: OperandKind
    number: int
    is_accumulator: bool = False
    clear: bool = False
    field: LengthField | None = LengthField.ELEMENTS

    @property
    def operand(self) -> dict[str, object]:
        """The members of an instruction's operand, and "field"."""
        return {"kind": self.kind, "number": self.number, "field": self.field}

    @property
    def queue(self) -> tuple[OperandKind, int] | None:
        """The queue that it pops, a number of a row's head as the row."""
        if self.kind is OperandKind.QUEUE:
            return self.kind, self.number % KEEP
        return (self.kind, self.number) if self.kind is OperandKind.SCALAR else None


class Places:
    """Value -> place, how many uses a value still has, and which registers are free.

    A value that is spread along a row (``vector.broadcast``) is the same as its scalar, and the first element of a row
    (``slcv.element``) the same as the row.

    Parameters
    ----------
    callback
        The callback.
    vectors, scalars
        How many vector and scalar registers there are.
    taken
        How many of each are taken: the first vector registers by accumulators, the last scalar registers by constants.
    """

    def __init__(self, callback: dlc.CallbackOp, vectors: int, scalars: int, taken: tuple[int, int]) -> None:
        self._pools = {
            OperandKind.REGISTER: range(taken[0], vectors),
            OperandKind.SCALAR_REGISTER: range(scalars - taken[1]),
        }
        self._constants = taken[1]
        self._places: dict[SSAValue, Place] = {}
        self._aliases: dict[SSAValue, SSAValue] = {}
        self._order: dict[SSAValue, int] = {}
        self._waiting: list[SSAValue] = []
        self._taken: set[tuple[OperandKind, int]] = set()
        self._released: set[tuple[OperandKind, int]] = set()
        self._uses: dict[SSAValue, int] = {}
        for op in callback.body.block.ops:
            if not is_alias(op):
                for result in op.results:
                    self._uses[result] = _count(result)

    def _root(self, value: SSAValue) -> SSAValue:
        return self._aliases.get(value, value)

    def __getitem__(self, value: SSAValue) -> Place:
        return self._places[self._root(value)]

    def __contains__(self, value: SSAValue) -> bool:
        return self._root(value) in self._places

    def remaining(self, value: SSAValue) -> int:
        """Uses of a value that are still to come."""
        return self._uses[self._root(value)]

    def define(self, value: SSAValue, place: Place) -> None:
        """Say where a new value is."""
        self._places[value] = place
        if place.queue is not None:
            self._order[value] = len(self._order)
            self._waiting.append(value)

    def constant(self, value: SSAValue, register: int) -> None:
        """Say which scalar register holds a constant."""
        self._places[value] = Place(OperandKind.SCALAR_REGISTER, register, is_accumulator=True)
        self._uses[value] = _count(value)

    def is_single(self, value: SSAValue) -> bool:
        """Whether ``value`` is a single number that is not only spread along rows."""
        root = self._root(value)
        is_row = isinstance(root.type, VectorType)
        return not is_row and any(not isinstance(use.operation, vector.BroadcastOp) for use in root.uses)

    def alias(self, value: SSAValue, source: SSAValue) -> None:
        """Let ``value`` be the same as ``source``."""
        self._aliases[value] = self._root(source)

    def row_of(self, value: SSAValue) -> SSAValue:
        """The longest value of row type that is the same as ``value``."""
        root = self._root(value)
        if isinstance(root.type, VectorType):
            return root
        return max((alias for alias, source in self._aliases.items() if source is root), key=width_of)

    def new_register(self) -> int:
        """A free vector register; UnsupportedOperation if there is none."""
        return self._new(OperandKind.REGISTER, "vector registers")

    def new_scalar(self) -> int:
        """A free scalar register; UnsupportedOperation if there is none."""
        if not self._pools[OperandKind.SCALAR_REGISTER].stop + self._constants:
            raise UnsupportedOperation("computing with single numbers takes scalar registers, and the machine has none")
        return self._new(OperandKind.SCALAR_REGISTER, f"scalar registers, of which {self._constants} hold constants")

    def spare_register(self) -> int:
        """The last vector register that is free; it stays free."""
        for register in reversed(self._pools[OperandKind.REGISTER]):
            if (OperandKind.REGISTER, register) not in self._taken:
                return register
        return self.new_register()

    def _new(self, kind: OperandKind, what: str) -> int:
        for register in self._pools[kind]:
            if (kind, register) not in self._taken:
                self._taken.add((kind, register))
                return register
        there = self._pools[kind].stop + (self._constants if kind is OperandKind.SCALAR_REGISTER else 0)
        raise UnsupportedOperation(f"a callback needs more than the machine's {there} {what}")

    def free(self, kind: OperandKind, register: int) -> None:
        """Say that a register is free after the next ``release``."""
        self._released.add((kind, register))

    def move(self, value: SSAValue, register: int, kind: OperandKind = OperandKind.REGISTER) -> None:
        """Say that a value is in a register now."""
        self.popped(value)
        self._places[self._root(value)] = Place(kind, register)

    def popped(self, value: SSAValue) -> None:
        """Say that a value is no longer waiting in its queue."""
        root = self._root(value)
        self._waiting = [other for other in self._waiting if other is not root]

    def use(self, *values: SSAValue) -> None:
        """Use values up once each; registers that nobody needs any more are free after ``release``."""
        for value in values:
            root = self._root(value)
            self._uses[root] -= 1
            place = self._places[root]
            if not self._uses[root] and place.queue is None and not place.is_accumulator:
                self._released.add((place.kind, place.number))

    def release(self) -> None:
        """Free the registers of values that were used up."""
        self._taken -= self._released
        self._released.clear()

    def before(self, value: SSAValue) -> list[SSAValue]:
        """Values that wait in the queue of ``value`` in front of it."""
        root = self._root(value)
        queue = self._places[root].queue
        if queue is None or root not in self._waiting:
            return []
        waiting = [other for other in self._waiting if self._places[other].queue == queue]
        return waiting[: waiting.index(root)]

    def is_before(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether ``a`` was put into a queue before ``b`` was."""
        order = self._order
        a, b = self._root(a), self._root(b)
        return a in order and b in order and order[a] < order[b]

    def pending(self) -> list[SSAValue]:
        """Values that nobody has popped."""
        return list(self._waiting)

    def readers_of(self, accumulator: int) -> list[SSAValue]:
        """Values that are what an accumulator holds now, and are still needed."""
        return [
            value
            for value, place in self._places.items()
            if place.kind is OperandKind.REGISTER
            and place.is_accumulator
            and place.number == accumulator
            and self._uses[value] > 0
        ]


def _count(value: SSAValue) -> int:
    """Uses of a value, those of what is the same as the value in its place."""
    total = 0
    for use in value.uses:
        op = use.operation
        total += _count(op.results[0]) if is_alias(op) else 1
    return total
