"""Takes the callback at the end of each row apart into stages, which run some rows later each.

Such a callback makes a number of a row (a sum along it, a square root, a quotient) and does something with the row and
that number: it would wait for each of them. Here what needs a slow result is done one row later than what makes it, so
that all rows' chains go on side by side. The stages of a run of the callback stand in it from the last to the first, so
a single number that is used one stage later is still in its register; one that is used later yet is moved on by a move
in each stage. Rows that are used later wait in vector registers, whose names rotate.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from daedal.compiler.backend.operands import (
    SCALAR,
    STORES,
    VECTOR,
    Code,
    Instruction,
    Register,
    mode,
    number,
    operand,
    reads_addend,
)
from daedal.hw.isa.instructions import KEEP, Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS, OperationUnit

SWAPPED = (VectorOp.MULTIPLY, VectorOp.FMA, VectorOp.MUL_ADD)
"""Operations whose ``a`` and ``b`` may trade places."""


@dataclass(eq=False)
class Value:
    """What a step makes, or finds in a vector register when the callback starts (``register``).

    ``is_fixed``: it is the same for all rows.
    """

    is_single: bool
    register: int | None = None
    maker: "Step | None" = None
    uses: list["Step"] = field(default_factory=list)
    is_fixed: bool = False

    @property
    def stage(self) -> int:
        """The stage that makes it."""
        return self.maker.stage if self.maker is not None else 0

    @property
    def delay(self) -> int:
        """By how many rows its last use comes later."""
        return 0 if self.is_fixed else max((use.stage - self.stage for use in self.uses), default=0)


@dataclass(eq=False)
class Step:
    """An instruction: its members, without registers, and the values that are its operands by name.

    ``finds``: it takes the first element of that vector register, which another callback filled.
    """

    members: Instruction
    operands: dict[str, Value]
    result: Value | None = None
    stage: int = 0
    finds: int | None = None

    @property
    def is_slow(self) -> bool:
        """Whether what needs its result should do other things first."""
        op = self.members["op"]
        assert isinstance(op, VectorOp)
        return mode(self.members) is Mode.REDUCE or OPERATIONS[op].unit is OperationUnit.ITERATIVE

    @property
    def is_store(self) -> bool:
        """Whether it stores."""
        return self.members["op"] in STORES

    def pops(self, kind: OperandKind) -> list[str]:
        """Its operands that are popped from queues of this kind."""
        return [name for name in "ab" if name in self.members and operand(self.members, name)[0] is kind]


@dataclass
class Stages:
    """A callback in stages.

    Attributes
    ----------
    steps
        What it does, in order, each with its stage.
    late
        Vector registers that another callback fills with a row that is not needed before the last stage.
    sums_later
        Rows are summed up a row later than they are made; so stage 1 comes behind stage 0.
    """

    steps: list[Step]
    late: list[int]
    sums_later: bool = False

    @property
    def last(self) -> int:
        """The last stage."""
        return max(step.stage for step in self.steps)

    @property
    def values(self) -> list[Value]:
        """All values, those that it finds first."""
        found: dict[int, Value] = {}
        for step in self.steps:
            for value in step.operands.values():
                if value.maker is None:
                    found.setdefault(id(value), value)
        return [*found.values(), *(step.result for step in self.steps if step.result is not None)]


def stages_of(
    code: Code,
    elements: Callable[[Instruction], int],
    most: int,
    constants: range,
    popped: Callable[[int], bool],
    fixed: list[bool],
    *,
    sums_later: bool = False,
) -> Stages | None:
    """The callback in at most ``most`` + 1 stages; None if nothing in it is slow, or it is not one of those that this
    is about.

    ``elements``: those that an instruction works on; ``constants``: scalar registers that do not change; ``popped``:
    whether a vector register is filled by a mere pop of another callback, which may come later; ``fixed``: of each
    single number that is popped, whether it is the same for all rows; ``sums_later``: rows that the callback makes are
    summed up a row later, whatever is popped for that.
    """
    steps = _steps(_without_copies(code), elements, constants)
    if steps is None:
        return None
    for step in steps:
        is_later = sums_later and mode(step.members) is Mode.REDUCE
        stages = [value.stage + (value.maker.is_slow or (is_later and not value.is_single))
                  for value in step.operands.values() if value.maker is not None]  # fmt: skip
        step.stage = min(max(stages, default=0), most)
    last = max(step.stage for step in steps)
    if not last:
        return None
    for step in steps:
        if step.is_store:
            step.stage = last
        if step.stage and step.pops(OperandKind.QUEUE) and not (sums_later and step.stage == 1):
            return None
    late = []
    for value in Stages(steps, []).values:
        is_late = not value.is_single and value.register is not None and value.delay == last
        if is_late and all(use.stage == last for use in value.uses) and popped(value.register or 0):
            late.append(value.register or 0)
            pop = {"op": VectorOp.MOVE, "a": {"kind": OperandKind.QUEUE, "number": 1}}
            row = Step(pop | {"length": _length(value)}, {}, Value(is_single=False), last)
            assert row.result is not None
            row.result.maker = row
            _replace(value, row.result)
            steps.insert(0, row)
    return Stages(_popped_first(steps, fixed), late, sums_later)


def _length(value: Value) -> int:
    return next(number(use.members, "length") for use in value.uses)


def _replace(old: Value, new: Value) -> None:
    for use in old.uses:
        use.operands = {name: new if value is old else value for name, value in use.operands.items()}
        new.uses.append(use)


def _popped_first(steps: list[Step], fixed: list[bool]) -> list[Step]:
    """Single numbers are popped in the first stage, in their order, whatever they are for."""
    first: list[Step] = []
    known = iter(fixed)
    for step in steps:
        for name in step.pops(OperandKind.SCALAR):
            is_fixed = next(known)
            if not step.stage:
                if step.result is not None and step.members["op"] is VectorOp.MOVE:
                    step.result.is_fixed = is_fixed
                continue
            pop = {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": step.members[name]}
            move = Step(pop, {}, Value(is_single=True, is_fixed=is_fixed))
            assert move.result is not None
            move.result.maker = move
            move.result.uses.append(step)
            step.operands[name] = move.result
            step.members = {**step.members, name: {}}
            first.append(move)
        first.append(step)
    return first


def _without_copies(code: Code) -> Code:
    """The code without moves from one vector register to another, as far as both are the same until the last use."""
    code = [dict(one) for one in code]
    for place in range(len(code) - 1, -1, -1):
        one = code[place]
        source, target = operand(one, "a"), number(one, "destination")
        if one["op"] is not VectorOp.MOVE or mode(one) is not Mode.VECTOR or source[0] is not VECTOR:
            continue
        readers = []
        for later, other in enumerate(code[place + 1 :], place + 1):
            if (VECTOR, target) in _reads(other).values():
                readers.append(later)
            if other["op"] not in STORES and (VECTOR, target) == _written(other):
                break
        last = max(readers, default=place)
        between = [other for other in code[place + 1 : last + 1] if other["op"] not in STORES]
        if not readers or any(_written(other) == source for other in between):
            continue
        renamed = {later: _renamed(code[later], target, source[1]) for later in readers}
        if one.get("clear"):
            final = _clearing(renamed[last], source[1])
            if final is None:
                continue
            renamed[last] = final
        for later, new in renamed.items():
            code[later] = new
        del code[place]
    return code


def _renamed(code: Instruction, old: int, new: int) -> Instruction:
    """The code that reads vector register ``new`` instead of ``old``."""
    changed = dict(code)
    for name, register in _reads(code).items():
        if register == (VECTOR, old):
            changed[name] = new if name == "c" else {"kind": VECTOR, "number": new}
    return changed


def _clearing(code: Instruction, register: int) -> Instruction | None:
    """The instruction, which reads a vector register, and then empties it; None if it cannot do so."""
    reads = [name for name, each in _reads(code).items() if each == (VECTOR, register)]
    if "a" in reads:
        return {**code, "clear": 1}
    if reads == ["b"] and code["op"] in SWAPPED:
        return {**code, "a": code["b"], "b": code["a"], "clear": 1}
    return None


def _reads(code: Instruction) -> dict[str, Register]:
    """Registers by the names of operands."""
    found = {name: operand(code, name) for name in "ab" if name in code}
    if reads_addend(code) and not ("b" in code and OPERATIONS[code["op"]].b_replaces_c):  # type: ignore[index]
        found["c"] = (SCALAR if mode(code) is Mode.SCALAR else VECTOR, number(code, "c"))
    return {name: each for name, each in found.items() if each[0] in (VECTOR, SCALAR)}


def _written(code: Instruction) -> Register:
    return (VECTOR if mode(code) is Mode.VECTOR else SCALAR, number(code, "destination"))


def _steps(code: Code, elements: Callable[[Instruction], int], constants: range) -> list[Step] | None:
    """The instructions as steps; None if there are some that cannot be taken apart."""
    held: dict[Register, Value] = {}
    steps: list[Step] = []
    cleared = cleared_in(code)
    for one in code:
        op = one["op"]
        assert isinstance(op, VectorOp)
        pops = [operand(one, name) for name in "ab" if name in one]
        keeps = any(kind is OperandKind.QUEUE and n >= KEEP for kind, n in pops)
        odd = (VectorOp.NOP, VectorOp.DIVIDE_COUNT, VectorOp.STORE_QUOTIENT, VectorOp.ROUND, VectorOp.AFFINE)
        if op in odd or one.get("indexed") or keeps or one.get("rotate"):
            return None
        is_single = mode(one) is Mode.SCALAR or (mode(one) is Mode.VECTOR and elements(one) == 1)
        if is_single and mode(one) is Mode.VECTOR and any(kind is OperandKind.QUEUE for kind, _ in pops):
            return None
        members = {key: value for key, value in one.items() if key in ("op", "length", "octets")}
        members |= {"mode": Mode.SCALAR if is_single else mode(one)}
        members |= {name: one[name] for name in "abc" if name in one}
        if mode(one) is Mode.REDUCE:
            members["c"] = 0
        step = Step(members, {})
        for name, register in _reads(one).items():
            if register[0] is SCALAR and register[1] in constants:
                continue
            value = held.get(register)
            if value is None:
                if register[0] is SCALAR:
                    return None  # what another callback left
                value = held[register] = Value(
                    is_single=is_single and mode(one) is not Mode.REDUCE, register=register[1]
                )
                if value.is_single:
                    taken = {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "clear": int(register[1] in cleared)}
                    value = held[register] = Value(is_single=True)
                    value.maker = Step(taken, {}, value, finds=register[1])
                    steps.append(value.maker)
            if value.is_single is not (register[0] is SCALAR or is_single):
                return None
            step.operands[name] = value
            if step not in value.uses:
                value.uses.append(step)
        if op not in STORES:
            step.result = Value(is_single=is_single or mode(one) is Mode.REDUCE, maker=step)
            held[_written(one)] = step.result
        steps.append(step)
    return steps


def cleared_in(code: Code) -> set[int]:
    """The vector registers that it empties."""
    return {operand(one, "a")[1] for one in code if one.get("clear") and operand(one, "a")[0] is VECTOR}


def found_in(code: Code) -> set[int]:
    """The vector registers that it reads before it writes them: what others left there counts."""
    found: set[int] = set()
    made: set[int] = set()
    for one in code:
        found |= {n for kind, n in _reads(one).values() if kind is VECTOR} - made
        if one["op"] not in STORES and _written(one)[0] is VECTOR:
            made.add(number(one, "destination"))
    return found


def vectors_of(codes: Iterable[Code]) -> set[int]:
    """The vector registers that they name."""
    found = set()
    for code in codes:
        for one in code:
            found |= {n for kind, n in _reads(one).values() if kind is VECTOR}
            if one["op"] not in STORES and _written(one)[0] is VECTOR and one["op"] is not VectorOp.NOP:
                found.add(number(one, "destination"))
            if mode(one) is Mode.REDUCE:
                found.add(number(one, "c"))
    return found
