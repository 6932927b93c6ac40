"""The code of a callback in stages (``row_stages``): registers, the stages of a run, and their order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from daedal.compiler.backend.instruction_order import in_good_order, reads_of
from daedal.compiler.backend.operands import (
    SCALAR,
    STORES,
    VECTOR,
    Code,
    Instruction,
    finished,
    mode,
    number,
    operand,
)
from daedal.compiler.backend.row_stages import SWAPPED, Stages, Step, Value
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode, VectorOp


@dataclass
class StagedCode:
    """Gives registers to the values of ``stages``, and writes runs of stages.

    Parameters
    ----------
    stages
        The callback.
    config
        The machine.
    rows
        Vector registers of rows that it finds and that wait, and of all others that other callbacks use.
    singles
        Scalar registers that it may use. Those that rotate serve only if it may use all of them.
    beats
        Those of an instruction.
    between
        Beats of other callbacks from one run to the next.

    Raises UnsupportedOperation if there are too few registers.
    """

    stages: Stages
    config: Config
    found: set[int]
    others: set[int]
    singles: list[int]
    beats: Callable[[Instruction], int]
    between: int
    vectors: dict[int, int] = field(default_factory=dict)
    """Filled: vector register of other callbacks -> where it is now."""
    _places: dict[int, int] = field(default_factory=dict)
    _copies: list[Step] = field(default_factory=list)
    _moved: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._place_rows()
        self._place_singles()

    def _place_rows(self) -> None:
        around = self.config.rotating_registers
        base, still = 0, list(range(around, self.config.vector_registers))
        for value in self.stages.values:
            if value.is_single or not value.delay or not self._waits(value):
                continue
            if base + value.delay >= around:
                raise UnsupportedOperation("there are too few rotating registers for rows that wait")
            self._places[id(value)] = base
            if value.register is not None:
                self.vectors[value.register] = base
            base += value.delay + 1
        for register in sorted(self.others - self.vectors.keys()):
            self.vectors[register] = self._next(still)
        for value in self.stages.values:
            if not value.is_single and id(value) not in self._places:
                known = None if value.register is None else self.vectors.get(value.register)
                self._places[id(value)] = self._next(still) if known is None else known
        self._partial = self._next(still)

    def _waits(self, value: Value) -> bool:
        """Whether it must be kept apart from that of the next row: it is not the same for all rows."""
        return value.maker is not None or value.register in self.found

    def _next(self, free: list[int]) -> int:
        if not free:
            raise UnsupportedOperation("there are too few vector registers beside those that rotate")
        return free.pop(0)

    def _place_singles(self) -> None:
        """Those that are stored or go along rows in registers that rotate: what makes the next one need not wait for
        their last use. Others are moved on.
        """
        around, base = self.config.rotating_scalars, 0
        rotates = set(range(around)) <= set(self.singles)
        self.singles = [n for n in self.singles if n >= around]  # names of others do not last from run to run

        def urgency(value: Value) -> tuple[bool, int]:
            is_long = any(use.is_store or mode(use.members) is not Mode.SCALAR for use in value.uses)
            return not (is_long and value.delay), -value.delay

        found = [value for value in self.stages.values if value.is_single]
        fixed = sum(value.is_fixed for value in found)  # these are used in all stages under one name
        for value in sorted(found, key=urgency):
            fixed -= value.is_fixed
            stays = not value.is_fixed and len(self.singles) <= fixed
            if rotates and base + value.delay < around and (value.delay or stays):
                self._places[id(value)] = base
                base += value.delay + 1
                continue
            if self.stages.sums_later and not value.stage and value.delay and not value.is_fixed:
                raise UnsupportedOperation("a number that waits for stage 1 must be in a register that rotates")
            for place in range(max(value.delay, 1)):
                if not self.singles:
                    raise UnsupportedOperation("there are too few scalar registers for numbers that wait")
                self._moved[id(value), place] = self.singles.pop(0)
                if place:
                    move: Instruction = {
                        "op": VectorOp.MOVE, "mode": Mode.SCALAR, "destination": self._moved[id(value), place],
                        "a": {"kind": SCALAR, "number": self._moved[id(value), place - 1]},
                    }  # fmt: skip
                    self._copies.append(Step(move, {}, None, value.stage + place))

    def run(self, first: int, last: int) -> Code:
        """The stages from ``last`` down to ``first``, in an order in which little waits; registers rotate behind it."""
        code: Code = []
        order = list(range(last, first - 1, -1))
        if self.stages.sums_later:
            order.sort(key=lambda stage: stage == 1)
        for stage in order:
            code += [dict(step.members) for step in self._copies if step.stage == stage]
            code += [self._instruction(step) for step in self.stages.steps if step.stage == stage]
        if not self.stages.sums_later:
            code = in_good_order(code, self.beats, self.config, self.between)
        return finished(self._emptied(code, last), rotate=1, rotate_scalars=1)

    def _instruction(self, step: Step) -> Instruction:
        new = dict(step.members)
        if step.finds is not None:
            new["a"] = {"kind": VECTOR, "number": self.vectors[step.finds]}
        for name, value in step.operands.items():
            register = self._register(value, step.stage)
            new[name] = register if name == "c" else {"kind": SCALAR if value.is_single else VECTOR, "number": register}
        if mode(new) is Mode.REDUCE:
            new["c"] = self._partial
        if step.result is not None:
            new["destination"] = self._register(step.result, step.stage)
        return {key: value for key, value in new.items() if value != 0 or key not in ("clear", "octets")}

    def _register(self, value: Value, stage: int) -> int:
        late = 0 if value.is_fixed else stage - value.stage
        if value.is_single and id(value) in self._places:
            return self._places[id(value)] + late
        if value.is_single:
            return self._moved[id(value), max(late - 1, 0)]
        place = self._places[id(value)]
        return place + late if place < self.config.rotating_registers else place

    def _emptied(self, code: Code, last: int) -> Code:
        """The code, in which rows that wait are emptied when they have been used for the last time."""
        for value in self.stages.values:
            if value.is_single or value.stage + value.delay > last:
                continue
            place = self._places[id(value)]
            if place >= self.config.rotating_registers and value.register not in self.found:
                continue
            self._empty(code, self._register(value, value.stage + value.delay))
        return code

    def _empty(self, code: Code, register: int) -> None:
        reads = [n for n, one in enumerate(code) if (VECTOR, register) in reads_of(one)]
        if not reads:
            return
        one = code[reads[-1]]
        if operand(one, "a") != (VECTOR, register) and operand(one, "b") == (VECTOR, register) and one["op"] in SWAPPED:
            one = {**one, "a": one["b"], "b": one["a"]}
        if operand(one, "a") != (VECTOR, register) or mode(one) is Mode.SCALAR:
            raise UnsupportedOperation("a row that waits cannot be emptied by its last use")
        code[reads[-1]] = {**one, "clear": 1}


def renumbered(code: Code, vectors: Mapping[int, int]) -> Code:
    """Code of another callback, its vector registers where they are now."""

    def moved(one: Instruction) -> Instruction:
        new = dict(one)
        for name in "ab":
            if name in one and operand(one, name)[0] is VECTOR:
                new[name] = {"kind": VECTOR, "number": vectors[operand(one, name)[1]]}
        if one["op"] in STORES or one["op"] is VectorOp.NOP:
            return new
        if mode(one) is Mode.VECTOR:
            new["destination"] = vectors[number(one, "destination")]
        if "c" in one and mode(one) is not Mode.SCALAR:
            new["c"] = vectors[number(one, "c")]
        return new

    return [moved(one) for one in code]
