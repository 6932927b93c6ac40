"""A netlist in one cycle after the other, as one question for a SAT solver.

What has the same inputs is the same, and what is constant is no question: from the first cycle on, much of a machine is
still as it was after the reset.
"""

import faulthandler
import sys
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from pysat.solvers import Solver

from tests.formal.sat.netlist import Netlist, Register

SOLVER = "cadical153"
"""Of the solvers that python-sat has, CaDiCaL took least for the longest proofs."""

LIMIT = 300.0
"""Seconds that one question may take. The solver lets neither Python nor pytest's own limit in: the process ends."""

TRUE, FALSE = 1, -1
"""As in all literals of the solver, the opposite has the other sign."""


class Unrolled:
    """The cycles of ``netlist`` that have been asked for, and the solver that knows them.

    Parameters
    ----------
    netlist
        The machine; only what its properties and ``goals`` depend on is looked at.
    goals
        Further literals that questions are about.
    from_reset
        The first cycle is the one after the reset; otherwise any state may be the first.

    Attributes
    ----------
    found
        What was asked for last is possible.
    """

    def __init__(self, netlist: Netlist, goals: Sequence[int] = (), *, from_reset: bool) -> None:
        properties = [*netlist.failures, *netlist.assumptions, *goals]
        looked_at = netlist.reached_from(properties, through_registers=True)
        self.netlist = netlist
        self._inputs = [literal for literal in netlist.inputs.values() if literal >> 1 in looked_at]
        self._registers = [register for register in netlist.registers if register.output >> 1 in looked_at]
        self._gates = [gate for gate in netlist.gates if gate.output >> 1 in looked_at]
        self._literals = 2 * (max(looked_at, default=0) + 1)
        self._from_reset = from_reset
        self._known: dict[tuple[int, int], int] = {}
        self._variables = 1
        self._solver = Solver(name=SOLVER, bootstrap_with=[[TRUE]])
        self._cycles: list[list[int]] = []
        self.found = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._solver.delete()

    def __len__(self) -> int:
        return len(self._cycles)

    def extend(self, cycles: int) -> None:
        """Make it so many cycles, unless it is as long."""
        while len(self) < cycles:
            self._cycles.append(self._next_cycle())
            self._solver.append_formula([[self._cycles[-1][literal]] for literal in self.netlist.assumptions])

    def possible(self, literals: Iterable[int], cycles: Iterable[int]) -> bool:
        """Whether one of ``literals`` is true in one of ``cycles``, if assumptions hold in all cycles that there are.

        What is not possible is no question any more.
        """
        asked, ends = self._variable(), self._ends(literals, cycles)
        self._solver.add_clause([-asked, *ends])
        self.found = self._solve(asked)
        if not self.found:
            self._solver.append_formula([[-end] for end in ends])
        return self.found

    def exclude(self, literals: Iterable[int], cycles: Iterable[int]) -> None:
        """Let none of ``literals`` be true in one of ``cycles``."""
        self._solver.append_formula([[-end] for end in self._ends(literals, cycles)])

    def example(self) -> Callable[[int], list[int] | None]:
        """Of what was possible last: what a literal is, in each cycle; None if it does not matter."""
        true = {literal for literal in self._solver.get_model() if literal > 0}

        def values(literal: int) -> list[int] | None:
            found = [cycle[literal] if literal < self._literals else 0 for cycle in self._cycles]
            # A variable that the solver has not met is as good as false.
            return [int((abs(end) in true) == (end > 0)) for end in found] if all(found) else None

        return values

    def _solve(self, asked: int) -> bool:
        """Whether ``asked`` can be true; where it was asked goes to stderr if that takes too long."""
        faulthandler.dump_traceback_later(LIMIT, exit=True, file=sys.__stderr__)
        try:
            return bool(self._solver.solve([asked]))
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _ends(self, literals: Iterable[int], cycles: Iterable[int]) -> list[int]:
        """The solver's literals of ``literals`` in ``cycles``, each once."""
        wanted = list(literals)
        return list(dict.fromkeys(self._cycles[cycle][literal] for cycle in cycles for literal in wanted))

    def _variable(self) -> int:
        self._variables += 1
        return self._variables

    def _both(self, left: int, right: int, clauses: list[list[int]]) -> int:
        """A literal that is true if both are; ``clauses`` get what it takes."""
        if FALSE in (left, right) or left == -right:
            return FALSE
        if left in (TRUE, right):
            return right
        if right == TRUE:
            return left
        key = (left, right) if left < right else (right, left)
        both = self._known.get(key)
        if both is None:
            self._known[key] = both = self._variable()
            clauses += [-both, left], [-both, right], [both, -left, -right]
        return both

    def _next_cycle(self) -> list[int]:
        """The solver's literals by the netlist's, in the cycle after the last one."""
        cycle = [0] * self._literals
        cycle[:2] = FALSE, TRUE
        begins = [(literal, self._variable()) for literal in self._inputs]
        begins += [(register.output, self._held(register)) for register in self._registers]
        for literal, value in begins:
            cycle[literal], cycle[literal ^ 1] = value, -value
        clauses: list[list[int]] = []
        for output, left, right in self._gates:
            value = self._both(cycle[left], cycle[right], clauses)
            cycle[output], cycle[output ^ 1] = value, -value
        self._solver.append_formula(clauses)
        return cycle

    def _held(self, register: Register) -> int:
        """What ``register`` has in the cycle after the last one."""
        if self._cycles:
            return self._cycles[-1][register.input]
        if not self._from_reset or register.initial == register.output:
            return self._variable()
        return TRUE if register.initial else FALSE


def holds_for(run: Unrolled, cycles: int) -> bool:
    """Whether no assertion fails in the first ``cycles`` cycles of ``run``; those it has already are known to be so."""
    known = len(run)
    run.extend(cycles)
    return not run.possible(run.netlist.failures, range(known, cycles))


def holds_for_ever(run: Unrolled, induction: int) -> bool:
    """Whether no assertion ever fails, by an induction over at most so many cycles.

    What has not failed for some cycles, whatever the state they began in, does not fail in the next one; nor does it in
    the first ones of ``run``. Another induction may close where this one does not: ``run.found`` tells.
    """
    failures = run.netlist.failures
    with Unrolled(run.netlist, from_reset=False) as anywhere:
        for cycles in range(1, induction + 1):
            if not holds_for(run, cycles):
                return False
            anywhere.extend(cycles + 1)
            anywhere.exclude(failures, [cycles - 1])
            if not anywhere.possible(failures, [cycles]):
                return True
    return False
