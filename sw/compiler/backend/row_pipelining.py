"""Lets the sum along a row be computed while later rows come: the machine keeps the row for its second use.

A callback of an iteration that reduces a row that it pops, and adds the row, weighed by the result, to an accumulator,
would wait for the reduction's tree. So the row is kept as it is popped (``KEEP``), and its second use is delayed by a
few iterations: it takes the oldest row that is kept, if there are enough of them (``KEPT``), and its weight from the
scalar registers, which rotate. What is left at the loop's end is used there.
"""

from collections.abc import Callable
from dataclasses import dataclass

from daedal.compiler.backend.operands import (
    SCALAR,
    STORES,
    VECTOR,
    Code,
    Instruction,
    Register,
    finished,
    mode,
    number,
    operand,
    operands,
    reads_addend,
    written,
)
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import KEEP, KEPT, PARTIAL_SUMS, Mode, OperandKind, VectorOp

TREE_CYCLES = 80
"""About how long after a reduction's last beat its result is there, when beats of trees go between those of rows."""

MOST = 8
"""Rows that KEPT can ask for."""

SUMS = (VectorOp.FMA, VectorOp.MUL_ADD)
"""What the second use of a row may be."""


@dataclass(frozen=True)
class Parts:
    """A callback in two parts.

    Attributes
    ----------
    first
        What is done with a row when it is popped and kept.
    second
        What is done with it later, given how many iterations later.
    distance
        How many that should be.
    growing
        How many rows have trees that may not have ended, when an iteration has.
    """

    first: Code
    second: Callable[[int], Code]
    distance: int
    growing: int

    def iteration(self, distance: int) -> Code:
        """The callback of an iteration, the second part delayed by so many."""
        return finished([*self.first, *_using(self.second(distance), distance)], rotate_scalars=1)

    def end(self, end: Code, distance: int, others: int = 0) -> Code:
        """The callback of the loop's end, after what is left of the iterations but for ``others``, of a later run."""
        return finished([*self._left(distance, others), *end])

    def begin(self, begin: Code, distance: int) -> Code:
        """The callback of a next run's beginning: rows whose trees have ended are weighed while its row is written."""
        return finished([*begin, *self._left(distance, self.growing)])

    def _left(self, distance: int, others: int) -> Code:
        return [code for name in range(distance, others, -1) for code in _using(self.second(name), name - 1)]

    def joint(self, end: Code, distance: int, late: int) -> Code:
        """The callback of a run's iteration ``late``, with the ``end`` of the run before behind its own row's sum.

        Weights have other names by then, and one row more is kept.
        """
        first = [*self.first[:-1], {**self.first[-1], "rotate_scalars": 1}]
        left = [code for name in range(distance, late, -1) for code in _using(self.second(name + 1), name)]
        return finished([*first, *left, *end])


def _using(code: Code, beyond: int) -> Code:
    """The last of the instructions takes the oldest row if more than ``beyond`` are kept."""
    return [*code[:-1], {**code[-1], "a": {"kind": OperandKind.QUEUE, "number": KEPT + beyond}}]


@dataclass(frozen=True)
class KeptRows:
    """Takes callbacks apart.

    Parameters
    ----------
    config
        The machine.
    constants
        How many scalar registers, the last ones, are constants.
    length
        The elements of a length register.
    """

    config: Config
    constants: int
    length: Callable[[int], int]

    def parts(self, iteration: Code) -> Parts | None:
        """The parts of the callback of an iteration; None if it is not one of those that this is about."""
        reductions = [n for n, code in enumerate(iteration) if mode(code) is Mode.REDUCE]
        constants_rotate = self.constants > self.config.scalars - self.config.rotating_scalars
        if len(reductions) != 1 or not self.config.kept_beats or constants_rotate:
            return None
        first, second = iteration[: reductions[0] + 1], iteration[reductions[0] + 1 :]
        weight, row = number(first[-1], "destination"), self._row(first, second)
        lengths = {number(code, "length") for code in (*first, *second) if mode(code) is not Mode.SCALAR}
        if row is None or len(lengths) > 1 or self._uses_scalars(first) or self._touch(first, second):
            return None
        renamed = self._renamed(second, row, weight, 0)
        distance = self._distance(first, second)
        if renamed is None or distance < 1:
            return None
        keeping = self._keeping([*first[:-1], {**first[-1], "destination": 0}], row)

        def delayed(name: int) -> Code:
            code = self._renamed(second, row, weight, name)
            assert code is not None
            return code

        return Parts(keeping, delayed, distance, self._growing(first)) if keeping is not None else None

    def _row(self, first: Code, second: Code) -> int | None:
        """The vector register with the row that is popped in the first part and used in the second, if that is all."""
        made = {register for code in first for register in written(code) if register[0] is VECTOR}
        made.discard((VECTOR, number(first[-1], "c")))
        taken = [one for code in second for one in _reads(code) if one in made]
        return taken[0][1] if len(taken) == 1 else None

    def _uses_scalars(self, first: Code) -> bool:
        """Whether scalar registers that are no constants take part in the first part, which does not rename them."""
        own = {(SCALAR, n) for n in range(self.config.scalars - self.constants)}
        touched = {one for code in first for one in _reads(code)} | {
            one for code in first[:-1] for one in written(code)
        }
        return bool(own & touched) or any(code.get("indexed") for code in first)

    def _touch(self, first: Code, second: Code) -> bool:
        """Whether the first part, which comes before the second of earlier iterations, has to do with its vectors."""
        results = {one for code in second for one in written(code) if one[0] is VECTOR}
        return any(one in results for code in first for one in (*_reads(code), *written(code)))

    def _renamed(self, second: Code, row: int, weight: int, name: int) -> Code | None:
        """The second part with the row as operand ``a`` of its last instruction and the weight under this name.

        None if it is anything but that, operations on the weight and constants before. Those may also be done when
        there is no row, on whatever is in the register then, since only they take what comes of it.
        """
        places = iter(range(self.config.rotating_scalars, self.config.scalars - self.constants))
        mine: dict[int, int] = {weight: name}

        def place(n: int) -> int | None:
            return n if n >= self.config.scalars - self.constants else mine.get(n)

        renamed: Code = []
        for code in second:
            new = dict(code) | {"rotate_scalars": 0}
            is_last = code is second[-1]
            if code.get("clear") or code.get("indexed") or mode(code) is not (Mode.VECTOR if is_last else Mode.SCALAR):
                return None
            if is_last and not self._is_sum(code, row):
                return None
            for key in "ab":
                kind, n = operand(code, key)
                if key not in code or (kind, n) == (VECTOR, row):
                    continue
                if kind is not SCALAR or place(n) is None:
                    return None
                new[key] = {"kind": SCALAR, "number": place(n)}
            if is_last:
                renamed.append(new if operand(code, "a") == (VECTOR, row) else {**new, "b": new["a"]})
                break
            if code["op"] in STORES or (reads_addend(code) and place(number(code, "c")) is None):
                return None
            if "c" in code:
                new["c"] = place(number(code, "c"))
            to = next(places, None)
            if to is None:
                return None
            new["destination"] = mine[number(code, "destination")] = to
            renamed.append(new)
        return renamed

    def _is_sum(self, code: Instruction, row: int) -> bool:
        """Whether it adds a multiple of the row to a register."""
        accumulates = "c" in code and number(code, "c") == number(code, "destination") != row
        return code["op"] in SUMS and accumulates and (VECTOR, row) in operands(code)

    def _keeping(self, first: Code, row: int) -> Code | None:
        """The first part, in which the row is kept as it is popped; popped by the reduction itself if that is all."""
        makes = [n for n, code in enumerate(first) if (VECTOR, row) in written(code)]
        pop = first[makes[0]]
        kind, queue = operand(pop, "a")
        if (
            len(makes) != 1
            or pop["op"] is not VectorOp.MOVE
            or kind is not OperandKind.QUEUE
            or mode(pop) is not Mode.VECTOR
        ):
            return None
        kept = {"kind": OperandKind.QUEUE, "number": KEEP + queue}
        code, reduction = [*first], first[-1]
        code[makes[0]] = {**pop, "a": kept}
        uses = [one for other in first for one in _reads(other) if one == (VECTOR, row)]
        between = [one for other in first[makes[0] + 1 :] for one in operands(other)]
        if len(uses) > 1 or (VECTOR, row) not in operands(reduction) or (OperandKind.QUEUE, queue) in between:
            return code
        if operand(reduction, "a") != (VECTOR, row):
            reduction = {**reduction, "b": reduction.get("a", {})}
        code[-1] = {**reduction, "a": kept}
        return code[: makes[0]] + code[makes[0] + 1 :]

    def _distance(self, first: Code, second: Code) -> int:
        """By how many iterations the second part is delayed; 0 if there is no room.

        So many that what is left at the loop's end takes as long as the last reduction.
        """
        elements = self.length(number(first[-1], "length"))
        beats = -(-elements // self.config.lanes)
        wanted = -(-TREE_CYCLES // (beats + len(second) - 1))
        room = min(self.config.kept_beats // beats, MOST, self.config.rotating_scalars) - 1
        return min(wanted, room)

    def _growing(self, first: Code) -> int:
        """How many iterations, the last one apart, begin before the tree of a reduction ends.

        Each takes the lanes its row twice, and in the reduction an adder's loop for each round of partial results.
        """
        beats = -(-self.length(number(first[-1], "length")) // self.config.lanes)
        around = max(1, PARTIAL_SUMS // self.config.lanes)
        rounds = -(-beats // around)
        loop = max(self.config.accumulate_cycles, around)
        return -(-TREE_CYCLES // (2 * beats + (rounds - 1) * (loop - around))) - 1


def _reads(code: Instruction) -> list[Register]:
    """Operands and addend."""
    kind = SCALAR if mode(code) is Mode.SCALAR else VECTOR
    return [*operands(code), *([(kind, number(code, "c"))] if reads_addend(code) else [])]
