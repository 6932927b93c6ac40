"""Lets the sum along a row be computed while later iterations go on.

A callback of an iteration that reduces a row and adds the row, weighed by the result, to an accumulator would wait for
the reduction's tree. So its second part is delayed by a few iterations: registers rotate, and it finds row and weight
under other names. In the first iterations these are empty, and adding 0.0 * 0.0 to an accumulator that begins as +0.0
changes nothing; what is left is added at the loop's end.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from daedal.compiler.backend.operands import (
    SCALAR,
    STORES,
    VECTOR,
    Code,
    Instruction,
    finished,
    mode,
    number,
    operands,
    written,
)
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode, VectorOp

TREE_CYCLES = 84
"""About how long after a reduction's first beat its result is there, but for the beats of the row."""

ON_WEIGHTS = (VectorOp.MOVE, VectorOp.MAX, VectorOp.MIN, VectorOp.ABS)
"""What may be done to a weight: of 0.0 it makes a finite number."""


@dataclass(frozen=True)
class Parts:
    """A callback in two parts, and what goes from the first to the second.

    Attributes
    ----------
    first, second
        Its instructions.
    row, weight
        The vector and the scalar register that the second part takes from the first.
    distance
        By how many iterations the second part is delayed.
    """

    first: Code
    second: Code
    row: int
    weight: int
    distance: int


@dataclass(frozen=True)
class Overlap:
    """Takes callbacks apart.

    Parameters
    ----------
    config
        The machine.
    accumulators
        How many vector registers, the first ones, are accumulators.
    constants
        How many scalar registers, the last ones, are constants.
    length
        The elements of a length register.
    finite
        Whether the constant in a scalar register is.
    """

    config: Config
    accumulators: int
    constants: int
    length: Callable[[int], int]
    finite: Callable[[int], bool]

    def parts(self, iteration: Code, end: Code) -> Parts | None:
        """The parts of the callback of an iteration; None if it is not one of those that this is about."""
        reductions = [n for n, code in enumerate(iteration) if mode(code) is Mode.REDUCE]
        around = self.config.rotating_registers
        beyond = self.config.vector_registers - self.accumulators - around
        room = self.config.rotating_scalars < self.config.scalars - self.constants
        if len(reductions) != 1 or beyond < 1 or not room:
            return None
        first, second = iteration[: reductions[0] + 1], iteration[reductions[0] + 1 :]
        made = {register for code in first for register in written(code)}
        made.discard((VECTOR, number(first[-1], "c")))
        taken = {register for code in second for register in operands(code)} & made
        rows, weights = ([n for kind, n in taken if kind is wanted] for wanted in (VECTOR, SCALAR))
        if len(rows) != 1 or len(weights) != 1 or not self._is_sum(second, rows[0], weights[0], end):
            return None
        mine = {register for code in second for register in written(code)} - {(SCALAR, weights[0])}
        if any(register in mine for code in first for register in (*operands(code), *written(code))):
            return None
        beats = sum(-(-self._elements(code) // self.config.lanes) for code in iteration)
        distance = min(-(-TREE_CYCLES // beats), around - 1, self.config.rotating_scalars - 1)
        others = self._others(first, rows[0])
        # In the rotating registers only the row, besides names that are free again.
        if len(others) > around - 1 - distance + beyond or distance < 1:
            return None
        return Parts(first, second, rows[0], weights[0], distance)

    def _elements(self, code: Instruction) -> int:
        return 1 if mode(code) is Mode.SCALAR else self.length(number(code, "length"))

    def _is_sum(self, second: Code, row: int, weight: int, end: Code) -> bool:
        """Whether the second part only adds multiples of the row to accumulators that the loop's end empties."""
        weights = {(SCALAR, weight)}
        for code in second:
            taken, destination = set(operands(code)), number(code, "destination")
            if code.get("clear") or code.get("indexed"):
                return False
            if mode(code) is Mode.SCALAR:
                known = all(kind is SCALAR and ((kind, n) in weights or self.finite(n)) for kind, n in taken)
                added = (SCALAR, number(code, "c"))
                if code["op"] in (VectorOp.MAX, VectorOp.MIN):
                    known &= added in weights or self.finite(added[1])
                if code["op"] not in ON_WEIGHTS or not known:
                    return False
                weights.add((SCALAR, destination))
                continue
            emptied = any(one.get("clear") and operands(one) == [(VECTOR, destination)] for one in end)
            is_weighed = (VECTOR, row) in taken and taken - {(VECTOR, row)} <= weights and len(taken) == 2
            if code["op"] not in (VectorOp.MUL_ADD, VectorOp.FMA) or not (is_weighed and emptied):
                return False
            if number(code, "c") != destination or destination >= self.accumulators:
                return False
        return True

    def _others(self, first: Code, row: int) -> list[int]:
        """Vector registers of the first part that are neither accumulators nor the row, partial results last."""
        partial = number(first[-1], "c")
        used = {n for code in first for kind, n in (*operands(code), *written(code)) if kind is VECTOR}
        return [*sorted(n for n in used if n >= self.accumulators and n not in (row, partial)), partial]

    def iteration(self, parts: Parts) -> Code:
        """The callback of an iteration."""
        around, beyond = self.config.rotating_registers, self.config.vector_registers - self.accumulators
        free = [*range(beyond - 1, around - 1, -1), *range(parts.distance + 1, around)]
        others = dict(zip(reversed(self._others(parts.first, parts.row)), free, strict=False))
        first = [self._named(code, parts, 0, others) for code in parts.first]
        code = first + self._second(parts, parts.distance)
        return finished(code, rotate=1, rotate_scalars=1)

    def end(self, parts: Parts, end: Code) -> Code:
        """The callback of the loop's end, after what is left of the iterations; rows and weights are empty then."""
        left = [code for name in range(parts.distance, 0, -1) for code in self._second(parts, name)]
        clears: Code = []
        spare = self.config.scalars - self.constants - 1
        for name in range(1, parts.distance + 1):
            for kind in (VECTOR, SCALAR):
                operand = {"kind": kind, "number": name}
                move = {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "destination": spare}
                clears.append({**move, "a": operand, "clear": 1})
        return finished([*left, *self.moved(end), *clears])

    def _second(self, parts: Parts, name: int) -> Code:
        """The second part on what is of this name; its own scalars are beyond those that rotate."""
        own = sorted({n for code in parts.second for kind, n in written(code) if kind is SCALAR})
        beyond = dict(zip(own, range(self.config.rotating_scalars, self.config.scalars), strict=False))
        return [self._named({**code, "rotate_scalars": 0}, parts, name, {}, beyond) for code in parts.second]

    def moved(self, code: Code) -> Code:
        """Code with accumulators in the last vector registers, out of the way of those that rotate."""
        return [self._mapped(one, self._own, lambda n: n) for one in code]

    def _own(self, register: int) -> int:
        last = self.config.vector_registers - 1
        return last - register if register < self.accumulators else register - self.accumulators

    def _named(
        self, code: Instruction, parts: Parts, name: int, others: dict[int, int], scalars: dict[int, int] | None = None
    ) -> Instruction:
        def vector(register: int) -> int:
            return name if register == parts.row else others.get(register, self._own(register))

        def scalar(register: int) -> int:
            # A scalar of the second part may have the number of the weight, once that is no longer needed.
            return name if register == parts.weight else (scalars or {}).get(register, register)

        return self._mapped(code, vector, scalar)

    def _mapped(self, code: Instruction, vector: Callable[[int], int], scalar: Callable[[int], int]) -> Instruction:
        maps = {VECTOR: vector, SCALAR: scalar}
        new = dict(code)
        for name, (kind, own) in zip("ab", operands(code), strict=False):
            if kind in maps and (name in code or mode(code) is not Mode.SCALAR):
                new[name] = {"kind": kind, "number": maps[kind](own)}
        if code["op"] is VectorOp.NOP:
            return code
        if code["op"] not in STORES:
            to_scalar = mode(code) is not Mode.VECTOR
            new["destination"] = (scalar if to_scalar else vector)(number(code, "destination"))
            new["c"] = (scalar if mode(code) is Mode.SCALAR else vector)(number(code, "c")) if "c" in code else 0
        return new

    def leaves_alone(self, parts: Parts, codes: Iterable[Code]) -> bool:
        """Whether other callbacks write nothing that must be empty when the loop begins."""
        names = range(1, parts.distance + 1)
        return not any(number in names for code in codes for one in self.moved(code) for _, number in written(one))
