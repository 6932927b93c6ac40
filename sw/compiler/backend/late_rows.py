"""Nests of a loop whose rows are summed up a row later than they are made, as the access unit sees them.

What such a sum (``row_stages``) pops comes a row later than the rest of its row: its load, or its fetch, begins an
element, or a row, before its array. The loop's first row is without it, and behind the last row there is nothing else.
So each row is fetched once, and each index checked once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.backend.instruction_order import LANE
from daedal.compiler.backend.operands import STORES, Code, Instruction, mode, operand
from daedal.compiler.backend.row_stages import Stages
from daedal.compiler.dialects import dlc, slc
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import PARTIAL_SUMS, Mode, OperandKind

LAST = 2
"""The last of the stages: rows are made, summed up a row later, and what comes of them is stored a row after that."""


ROW_CYCLES = 22
"""About how long the access unit takes for the loads of a row whose loops run once."""


def sums_wait(code: Code, event: dlc.EventOp, beats: Callable[[Instruction], int], config: Config) -> bool:
    """Whether the lanes wait for rows that they made before they sum them up, and nothing else is there to be done
    meanwhile; and they, not memory or the loads of a row, are what takes longest.

    ``code`` is the callback of a row, ``event`` what starts it.
    """
    sums = [n for n, one in enumerate(code) if mode(one) is Mode.REDUCE]
    if not sums:
        return False
    gap = LANE - min(beats(code[n]) for n in sums)
    behind = sum(beats(one) for one in code[sums[-1] + 1 :] if one["op"] not in STORES)
    fetches = [op for op in event.body.block.ops if isinstance(op, dlc.FetchOp)]
    lines = sum(-(-op.bytes.value.data // config.bus_bytes) for op in fetches)
    lanes = sum(_cycles(one, beats(one), config) for one in code)
    return behind < gap and gap + lanes > max(ROW_CYCLES, lines)


def _cycles(code: Instruction, beats: int, config: Config) -> int:
    """Cycles of the lanes for an instruction: partial results of a sum wait for each other."""
    around, loop = max(1, PARTIAL_SUMS // config.lanes), config.accumulate_cycles
    if mode(code) is not Mode.REDUCE or code.get("octets") or around >= loop:
        return beats
    return beats + ((beats - 1) // around) * (loop - around)


@dataclass(frozen=True)
class LateRows:
    """The fetches of a nest's only event that come a row later.

    Attributes
    ----------
    nest
        The nest.
    late
        Which of the event's fetches these are, by number.
    """

    nest: slc.ForOp
    late: frozenset[int]

    @staticmethod
    def of(nest: slc.ForOp, event: dlc.EventOp, stages: Stages) -> "LateRows | None":
        """Those that the stages ask for, perhaps none; None if they cannot come later."""
        fetches, late = [op for op in event.body.block.ops if isinstance(op, dlc.FetchOp)], set[int]()
        for queue in range(2):
            pops = [step.stage for step in stages.steps for name in step.pops(OperandKind.QUEUE)
                    if operand(step.members, name)[1] == queue]  # fmt: skip
            rows = [n for n, op in enumerate(fetches) if op.queue.data == f"vector{queue}"]
            if len(pops) != len(rows) or pops != sorted(pops):
                return None
            late |= {n for n, stage in zip(rows, pops, strict=True) if stage}
        found = LateRows(nest, frozenset(late))
        if late and (stages.last != LAST or not found._are_plain() or not found._can_move(fetches)):
            return None
        return found

    def _are_plain(self) -> bool:
        """Whether the nest has only loads, checks, sums of integers, and one event."""
        kinds = [type(op) for op in self.nest.walk() if isinstance(op.parent_op(), slc.ForOp)]
        known = {slc.ForOp, slc.AluOp, slc.CheckOp, dlc.LoadOp, dlc.EventOp}
        return set(kinds) <= known and kinds.count(dlc.EventOp) == 1

    def _can_move(self, fetches: Sequence[dlc.FetchOp]) -> bool:
        """Whether where the late rows are follows from the row's number, by sums that the launch knows."""
        chosen = {op for n, op in enumerate(fetches) if n in self.late}
        for op in chosen:
            load = op.index.owner
            if isinstance(load, dlc.LoadOp):
                users = {use.operation for use in load.result.uses if not isinstance(use.operation, slc.CheckOp)}
                if not users <= chosen or not _is_fixed(load.base) or not self._is_row(load.index):
                    return False
            elif not (self._is_row(op.index) and _is_fixed(op.pitch)):
                return False
            if not _is_fixed(op.base):
                return False
        return True

    def _is_row(self, value: SSAValue) -> bool:
        """Whether it is the number of the nest's row: its induction variable, or that of a loop of one turn in it."""
        loop: slc.ForOp | None = self.nest
        while loop is not None:
            if loop.induction is value:
                return loop is self.nest or self._is_row(loop.lower)
            loop = loop.inner
        return False

    def split(self, first: int) -> None:
        """Make the nest several.

        Callbacks from ``first`` on are the stages 0 and 1, 1 and 2, 1, 0, and 2; the nest's own has all.
        """
        rows = self.nest.upper
        one, two = (arith.MinSIOp(rows, _constant(n)).result for n in (1, LAST))
        several = arith.MaxSIOp(arith.AddiOp(two, _constant(-1)).result, _constant(0)).result
        single = arith.AddiOp(one, arith.MuliOp(several, _constant(-1)).result).result
        begin = self._part(_constant(0), one, first + 3, is_late=False)
        second = self._part(one, two, first)
        ends = [self._part(rows, arith.AddiOp(rows, single).result, first + 2, is_early=False)]
        ends += [self._part(rows, arith.AddiOp(rows, several).result, first + 1, is_early=False)]
        left = slc.ForOp(_constant(0), one, _constant(1), name="left")
        left.body.block.add_op(dlc.EventOp("iteration", None, [dlc.PushTokenOp(first + 4)]))
        block = self.nest.parent
        assert block is not None
        block.insert_ops_before([begin, second], self.nest)
        block.insert_ops_after([*ends, left], self.nest)
        self.nest.operands[0] = two
        self._move(self.nest)

    def _part(
        self, lower: SSAValue, upper: SSAValue, token: int, *, is_early: bool = True, is_late: bool = True
    ) -> slc.ForOp:
        """The nest from a row to another one, with that callback, with or without what comes at once or a row later."""
        part = self.nest.clone()
        part.operands[0], part.operands[1] = lower, upper
        (event,) = (op for op in part.walk() if isinstance(op, dlc.EventOp))
        if is_late:
            self._move(part)
        fetches = [op for op in event.body.block.ops if isinstance(op, dlc.FetchOp)]
        late = {op for n, op in enumerate(fetches) if n in self.late}
        for op in list(event.body.block.ops):
            if isinstance(op, dlc.PushTokenOp):
                op.properties["token"] = dlc.PushTokenOp(token).token
            elif not (is_late if op in late else is_early):
                op.detach()
                op.erase()
        for op in reversed([op for op in part.walk() if isinstance(op, dlc.LoadOp)]):
            checks = [use.operation for use in op.result.uses]
            if all(isinstance(check, slc.CheckOp) for check in checks):
                for gone in (*checks, op):
                    gone.detach()
                    gone.erase()
        return part

    def _move(self, nest: slc.ForOp) -> None:
        """Let the late rows of each row be those of the row before."""
        fetches = [op for op in nest.walk() if isinstance(op, dlc.FetchOp)]
        moved = set[Operation]()
        for op in (op for n, op in enumerate(fetches) if n in self.late):
            load = op.index.owner
            if not isinstance(load, dlc.LoadOp):
                back = arith.MuliOp(op.pitch, _constant(-1)).result
                op.operands[0] = arith.AddiOp(op.base, back).result
            elif load not in moved:
                moved.add(load)
                load.operands[0] = arith.AddiOp(load.base, _constant(-load.bytes.value.data)).result


def _is_fixed(value: SSAValue) -> bool:
    """Whether the launch fixes it."""
    return not isinstance(value.type, slc.StreamType)


def _constant(value: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result
