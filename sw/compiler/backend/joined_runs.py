"""Lets the end of a loop's run come behind the beginning of its next run.

A loop that weighs rows by sums along them keeps some rows for later (``KeptRows``), and its end waits for the last
sum's tree. The loop around it has work of its own then that does not: its next row, and the first rows of the next run.
So the end of each run is done by the callback of an iteration of the next run, so late that the tree has ended, or, if
that run has fewer, by the callback of its end; the last run's end comes at the end of the loop around. Which iteration
it is, and how many there are, the access unit computes as the number of the callback. Rows are kept in their order, so
those of the run before go first, and what is left of the next one stays.

Places of results are known before their rows are. What the first run ends, before there is anything, goes to the first
row, which is stored again later.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from daedal.compiler.analysis.row_loops import loop_name
from daedal.compiler.backend.joints import Joint
from daedal.compiler.backend.operands import SCALAR, VECTOR, Code, mode, number, operands, reads_addend, written
from daedal.compiler.backend.row_pipelining import Parts
from daedal.compiler.dialects import dlc, slc
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode, VectorOp

NONE: Code = [{"op": VectorOp.NOP, "destination": 0, "length": 0, "last": 1}]
"""The callback of nothing."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")
"""Names of iterations."""


@dataclass(frozen=True)
class Joined:
    """Callbacks of a program in which a loop's runs are joined.

    Attributes
    ----------
    others, joint
        Callbacks by token: those that are as before, and the loop's, which must be the machine's first ones in this
        order, since the access unit computes which of them it starts.
    distance
        By how many iterations the second use of a row is delayed.
    late
        Which iteration of a run ends the run before.
    """

    others: dict[int, Code]
    joint: dict[int, Code]
    distance: int
    late: int

    def choice(self, loop: slc.ForOp) -> str:
        """What was chosen, in words."""
        return f"{loop_name(loop)}: its run ends behind the {ORDINALS[self.late]} iteration of the next run"


@dataclass(frozen=True)
class JoinedRuns:
    """Joins the runs of a loop that keeps rows.

    Parameters
    ----------
    config
        The machine.
    constants
        How many scalar registers, the last ones, are constants.
    events
        Token of a callback -> the event that starts it.
    """

    config: Config
    constants: int
    events: Mapping[int, dlc.EventOp]

    @property
    def longest(self) -> int:
        """The most iterations by which the second use of a row can be delayed: weights have one name more."""
        return self.config.rotating_scalars - 2

    def joined(self, loop: slc.ForOp, parts: Parts, codes: dict[int, Code]) -> Joined | None:
        """The callbacks for runs that are joined, and the events that start them changed.

        ``codes`` are those in which no row is kept. None, with nothing changed, if the runs cannot be joined.
        """
        joint = Joint.of(loop, self.events.values())
        if joint is None:
            return None
        tokens = {event: token for token, event in self.events.items()}
        begin, end = codes[tokens[joint.begin]] if joint.begin else [], codes[tokens[joint.end]]
        if not self._may_trade_places(parts, begin, end):
            return None
        others = {
            token: code for token, code in codes.items() if self.events[token] not in (joint.iteration, joint.end)
        }
        most = min(parts.distance, self.longest)
        # What is left of the next run behind the joint is no more than its iterations leave.
        for late in range(most - 1, -1, -1):
            for distance in range(most, late, -1):
                made = [parts.iteration(distance), parts.joint(end, distance, late), NONE]
                made += [parts.end(end, distance, left) for left in range(late, -1, -1)]
                if joint.begin:
                    others[tokens[joint.begin]] = parts.begin(begin, distance)
                instructions = sum(map(len, [*made, *others.values()]))
                if instructions <= self.config.instructions and len(made) + len(others) <= self.config.callbacks:
                    first = max(codes) + 1
                    joint.rewrite(first, late)
                    return Joined(others, dict(enumerate(made, first)), distance, late)
        return None

    def _may_trade_places(self, parts: Parts, begin: Code, end: Code) -> bool:
        """Whether a run's end may come behind what begins the next: they share no registers and no queue."""
        early, late = [*begin, *parts.first], [*parts.second(1), *end]
        is_plain = all(mode(code) is Mode.VECTOR and not code.get("rotate") for code in (*begin, *end))
        scalars = {n for code in (*begin, *end) for kind, n in operands(code) if kind is SCALAR}
        pops = any(kind not in (VECTOR, SCALAR) for code in end for kind, _ in operands(code))
        constants = range(self.config.scalars - self.constants, self.config.scalars)
        return is_plain and not pops and not scalars - {*constants} and not _vectors(early) & _vectors(late)


def _vectors(code: Code) -> set[int]:
    """The vector registers that it reads or writes."""
    found = {n for one in code for kind, n in (*operands(one), *written(one)) if kind is VECTOR}
    return found | {number(one, "c") for one in code if reads_addend(one) and mode(one) is Mode.VECTOR}
