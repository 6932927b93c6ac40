"""Loops whose rows end in stages (``row_stages``): which callbacks these are, and the nests that run them.

A run of a loop becomes up to four: its first rows, which have no stage to end with yet, the others, and then callbacks
without rows for what is left. The access unit pushes where results go when it has a row; they come some rows later, in
the same order.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import constant_of, loop_name
from daedal.compiler.backend.instruction_order import reads_of, writes_of
from daedal.compiler.backend.late_rows import LateRows, sums_wait
from daedal.compiler.backend.operands import SCALAR, STORES, VECTOR, Code, Instruction, mode, number, operand
from daedal.compiler.backend.row_stages import Stages, cleared_in, found_in, stages_of, vectors_of
from daedal.compiler.backend.staged_code import StagedCode, renumbered
from daedal.compiler.dialects import dlc, slc
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import OCTET, Mode, OperandKind, VectorOp


@dataclass(frozen=True)
class StagedRows:
    """Takes the callbacks of a nest apart, the only one of its program with rows.

    Parameters
    ----------
    config
        The machine.
    constants
        How many scalar registers, the last ones, are constants.
    elements
        The elements that an instruction works on.
    events
        Token of a callback -> the event that starts it.
    """

    config: Config
    constants: int
    elements: Callable[[Instruction], int]
    events: Mapping[int, dlc.EventOp]

    def staged(
        self, nest: slc.ForOp, codes: dict[int, Code], whole: dict[int, Code]
    ) -> tuple[dict[int, Code], str] | None:
        """The callbacks of the nest, by token, and what is to be said of them, with the nest changed.

        None if it is left as it is. ``whole`` are those of the program.

        Raises UnsupportedOperation if there is too little of something.
        """
        token = self._once_a_row(nest)
        if token is None or constant_of(nest.lower) != 0 or constant_of(nest.step) != 1:
            return None
        others = {other: code for other, code in codes.items() if other != token}
        if not others and sums_wait(codes[token], self.events[token], self._beats, self.config):
            with suppress(UnsupportedOperation):
                made = self._in_stages(nest, token, codes, whole, sums_later=True)
                if made is not None:
                    return made
        return self._in_stages(nest, token, codes, whole, sums_later=False)

    def _in_stages(
        self, nest: slc.ForOp, token: int, codes: dict[int, Code], whole: dict[int, Code], *, sums_later: bool
    ) -> tuple[dict[int, Code], str] | None:
        """``staged``, of rows that end with that callback."""
        others = {other: code for other, code in codes.items() if other != token}
        stages = self._stages(token, codes[token], others, nest, sums_later=sums_later)
        if stages is None or not self._have_room(token, stages):
            return None
        late_rows = LateRows.of(nest, self.events[token], stages) if sums_later else None
        if sums_later and late_rows is None:
            return None
        others = {other: _without_rows(code, stages.late) for other, code in others.items()}
        for register in stages.late:
            self._to_other_queue(register, codes)
        found = {value.register for value in stages.values if value.register is not None}
        changing = {n for each, code in others.items() if not self._is_begin(each, nest) for n in _filled(code)}
        used = {n for code in others.values() for one in code for kind, n in (*reads_of(one), *writes_of(one))
                if kind is SCALAR}  # fmt: skip
        singles = [n for n in range(self.config.scalars - self.constants) if n not in used]
        made = StagedCode(
            stages,
            self.config,
            {n for n in found if n in changing},
            vectors_of(others.values()),
            singles,
            self._beats,
            sum(self._lane_beats(code) for other, code in others.items() if not self._is_begin(other, nest)),
        )
        last, first = stages.last, max(whole) + 1
        new = {other: renumbered(code, made.vectors) for other, code in others.items()}
        new |= {token: made.run(0, last), first: made.run(0, last - 1), first + 1: made.run(1, last)}
        if last > 1:
            new[first + 2] = made.run(1, last - 1)
        if late_rows is not None and late_rows.late:
            new |= {first + 3: made.run(0, 0), first + 4: made.run(last, last)}
        program = whole | new
        if sum(map(len, program.values())) > self.config.instructions or len(program) > self.config.callbacks:
            raise UnsupportedOperation("there is no room for the instructions of stages")
        if late_rows is not None and late_rows.late:
            late_rows.split(first)
        else:
            self._split(nest, token, first, last)
        rows = "1 row" if last == 1 else f"{last} rows"
        return new, f"{loop_name(nest)}: what a row ends with is done in {last + 1} stages, the last one {rows} later"

    def _once_a_row(self, nest: slc.ForOp) -> int | None:
        """The token of the callback that runs once in each turn of the nest's outermost loop, behind all others."""
        loop, around = nest, [nest]
        while loop.inner is not None:
            loop = loop.inner
            around.append(loop)
        ends = [
            token for token, event in self.events.items() if event.parent_op() is loop and event.event.data == "end"
        ]
        if ends and all(_runs_once(each) for each in around[1:-1]) and len(around) > 1:
            found = ends
        elif all(_runs_once(each) for each in around[1:]):
            found = [token for token, event in self.events.items()
                     if event.parent_op() is loop and event.event.data == "iteration"]  # fmt: skip
        else:
            return None
        inside = [event for event in nest.walk() if isinstance(event, dlc.EventOp)]
        is_plain = all(event.condition is None and event in self.events.values() for event in inside)
        ends_later = [e for e in inside if e.event.data == "end" and e is not self.events[found[0]]] if found else []
        return found[0] if len(found) == 1 and is_plain and not ends_later else None

    def _is_begin(self, token: int, nest: slc.ForOp) -> bool:
        event = self.events[token]
        return event.parent_op() is nest and event.event.data == "begin"

    def _stages(
        self, token: int, code: Code, others: Mapping[int, Code], nest: slc.ForOp, *, sums_later: bool
    ) -> Stages | None:
        """The callback in stages, if no row needs anything of another one."""
        per_row = {each: other for each, other in others.items() if not self._is_begin(each, nest)}
        if any(one.get("rotate") or one.get("rotate_scalars") for other in others.values() for one in other):
            return None
        found, cleared = found_in(code), cleared_in(code)
        filled = {n for other in per_row.values() for n in _filled(other)}
        written = {n for one in code for kind, n in writes_of(one) if kind is VECTOR}
        moved = {n for each, other in per_row.items() if self._is_once(each) for n in _moved(other)}
        taken_over = {n for other in others.values() for n in found_in(other)}
        for register in found:
            is_own = register in cleared or register in moved
            if not is_own and (register in filled or register in written):
                return None
        if any(register in taken_over and register not in cleared for register in written):
            return None
        constants = range(self.config.scalars - self.constants, self.config.scalars)
        plain = [{key: value for key, value in one.items() if key not in ("rotate_scalars", "last")} for one in code]
        popped = {n for n in moved if self._may_come_later(n, per_row)}
        most = self.config.rotating_registers - 1
        pushes = [op for op in self.events[token].body.block.ops if isinstance(op, dlc.PushScalarOp)]
        fixed = [not isinstance(op.value.type, slc.StreamType) for op in pushes]
        return stages_of(plain, self.elements, most, constants, lambda n: n in popped, fixed, sums_later=sums_later)

    def _is_once(self, token: int) -> bool:
        """Whether an event happens once in each turn of the outermost loop."""
        event = self.events[token]
        loop = event.parent_op()
        while isinstance(loop, slc.ForOp) and isinstance(loop.parent_op(), slc.ForOp):
            if not _runs_once(loop):
                return False
            loop = loop.parent_op()
        return event.event.data == "iteration"

    def _may_come_later(self, register: int, per_row: Mapping[int, Code]) -> bool:
        """Whether a row of f32 that is only moved to a register can come through the other queue, when it is needed."""
        touches = [one for code in per_row.values() for one in code
                   if (VECTOR, register) in (*reads_of(one), *writes_of(one))]  # fmt: skip
        fetches = [op for event in self.events.values() for op in event.body.block.ops if isinstance(op, dlc.FetchOp)]
        return len(touches) == 1 and all(op.queue.data == "vector0" for op in fetches)

    def _have_room(self, token: int, stages: Stages) -> bool:
        """Whether queues hold what waits in them: rows that come later, and where results go."""
        if len(stages.late) > 1:
            return False
        stores = [op for op in self.events[token].body.block.ops if isinstance(op, dlc.PushStoreOp)]
        streams = [op for event in self.events.values() for op in event.body.block.ops
                   if isinstance(op, dlc.PushStoreOp) and (op.stream is not None or op not in stores)]  # fmt: skip
        rows = stages.last + 2
        lines = max((-(-self.elements(step.members) * 4 // self.config.bus_bytes) + 1 for step in stages.steps
                     if step.pops(OperandKind.QUEUE) and step.stage), default=0)  # fmt: skip
        return (
            not streams
            and rows * len(stores) <= self.config.store_address_depth
            and (rows * lines <= self.config.vector_beats)
        )

    def _to_other_queue(self, register: int, codes: Mapping[int, Code]) -> None:
        """Let the row that a callback moves to a register come through queue 1."""
        for token, code in codes.items():
            pops = [
                one for one in code if any(operand(one, name)[0] is OperandKind.QUEUE for name in "ab" if name in one)
            ]
            fetches = [op for op in self.events[token].body.block.ops if isinstance(op, dlc.FetchOp)]
            for one, fetch in zip(pops, fetches, strict=True):
                if _is_moved(one) and number(one, "destination") == register:
                    fetch.properties["queue"] = StringAttr("vector1")

    def _beats(self, code: Instruction) -> int:
        if mode(code) is Mode.SCALAR:
            return 1
        beats = -(-self.elements(code) // self.config.lanes)
        around = max(1, OCTET // self.config.lanes)
        return self.config.accumulate_cycles * -(-beats // around) if code.get("octets") else beats

    def _lane_beats(self, code: Code) -> int:
        """Beats of the lanes."""
        return sum(self._beats(one) for one in code if one["op"] not in (VectorOp.NOP, *STORES))

    def _split(self, nest: slc.ForOp, token: int, first: int, last: int) -> None:
        """The nest as nests: rows without the last stage, rows, and what is left without both, and without rows."""
        rows = nest.upper
        few = arith.MinSIOp(rows, _constant(last)).result
        beginning = nest.clone()
        for op in beginning.walk():
            if isinstance(op, dlc.PushTokenOp) and op.token.value.data == token:
                op.properties["token"] = dlc.PushTokenOp(first).token
        nest.parent.insert_op_before(beginning, nest)  # type: ignore[union-attr]
        beginning.operands[1] = few
        nest.operands[0] = few
        fewer = arith.AddiOp(arith.MuliOp(rows, _constant(-1)).result, _constant(last)).result
        any_rows = arith.MuliOp(rows, _constant(last)).result
        missing = arith.MaxSIOp(arith.MinSIOp(fewer, any_rows).result, _constant(0)).result
        after: Operation = nest
        for count, left in ((missing, first + 2), (few, first + 1)):
            if left == first + 2 and last == 1:
                continue
            loop = slc.ForOp(_constant(0), count, _constant(1), name="left")
            loop.body.block.add_op(dlc.EventOp("iteration", None, [dlc.PushTokenOp(left)]))
            after.parent.insert_op_after(loop, after)  # type: ignore[union-attr]
            after = loop


def _runs_once(loop: slc.ForOp) -> bool:
    """Whether it has one turn: its end is its beginning and 1."""
    upper = loop.upper.owner
    return (
        isinstance(upper, slc.AluOp)
        and upper.kind.data == "add"
        and upper.a is loop.lower
        and constant_of(upper.b) == 1
    ) or (constant_of(loop.lower) == 0 and constant_of(loop.upper) == 1)


def _is_moved(one: Instruction) -> bool:
    """Whether it moves a row from a queue to a vector register."""
    return one["op"] is VectorOp.MOVE and mode(one) is Mode.VECTOR and operand(one, "a")[0] is OperandKind.QUEUE


def _moved(code: Code) -> set[int]:
    """Vector registers that it fills with rows from queues, and does not look at before."""
    return {number(one, "destination") for one in code if _is_moved(one)} - found_in(code)


def _filled(code: Code) -> set[int]:
    """Vector registers that it writes."""
    return {n for one in code for kind, n in writes_of(one) if kind is VECTOR}


def _without_rows(code: Code, registers: list[int]) -> Code:
    """The code that leaves rows for these registers to others."""
    left = [one for one in code if not (_is_moved(one) and number(one, "destination") in registers)]
    return left or [{"op": VectorOp.NOP, "destination": 0, "length": 0, "last": 1}]


def _constant(value: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result
