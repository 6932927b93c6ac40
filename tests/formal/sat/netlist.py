"""Netlists of gates as Yosys writes them: AIGER, a text of inputs, registers and AND gates of two inputs.

A signal is a *literal*: twice the number of a variable, and one more for its opposite. 0 is false, 1 is true. Source
of the format: A. Biere, "AIGER 1.9 And Beyond" (2011).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple


class Gate(NamedTuple):
    """``output`` is true if both inputs are."""

    output: int
    left: int
    right: int


class Register(NamedTuple):
    """Its ``output`` begins as ``initial``, 0 or 1 or, if that is the output itself, anything; then it is ``input``."""

    output: int
    input: int
    initial: int


@dataclass(frozen=True)
class Netlist:
    """A machine with properties.

    Attributes
    ----------
    inputs, outputs
        Literals by name, a bit each; what has no name is called ``input`` and its place, or ``output``.
    registers, gates
        No gate stands before one that it depends on.
    names
        Names of registers, by their outputs.
    failures
        Literals of which none may be true: assertions that fail.
    assumptions
        Literals that are always true.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    registers: Sequence[Register]
    gates: Sequence[Gate]
    names: dict[int, str]
    failures: Sequence[int]
    assumptions: Sequence[int]

    def reached_from(self, literals: Iterable[int], *, through_registers: bool) -> set[int]:
        """Variables on which ``literals`` depend, in the same cycle or in whatever cycle before."""
        sources = {gate.output >> 1: (gate.left, gate.right) for gate in self.gates}
        if through_registers:
            sources |= {register.output >> 1: (register.input,) for register in self.registers}
        found: set[int] = set()
        waiting = [literal >> 1 for literal in literals]
        while waiting:
            variable = waiting.pop()
            if variable not in found:
                found.add(variable)
                waiting += (source >> 1 for source in sources.get(variable, ()))
        return found


def read(text: str) -> Netlist:
    """A netlist out of the text form of AIGER.

    Raises
    ------
    ValueError
        It is none, ends too early, has a gate before one that it depends on, or two inputs or outputs of one name.
    """
    lines = iter(text.splitlines())
    head = next(lines, "").split()
    if head[:1] != ["aag"] or not 6 <= len(head) <= 10:
        raise ValueError(f"not a netlist in AIGER's text form: it begins with {' '.join(head)[:40]!r}")
    _, inputs, registers, outputs, gates, failures, assumptions, *others = map(int, [*head[1:], *"0000"][:9])
    if any(others):
        raise ValueError("a netlist with properties of liveness: there may be failures and assumptions only")

    def take(count: int) -> list[list[int]]:
        taken = [list(map(int, line.split())) for line in islice(lines, count)]
        if len(taken) < count:
            raise ValueError(f"the netlist ends too early: {count - len(taken)} lines are missing")
        return taken

    wires = take(inputs)
    held = [Register(output, source, *(rest or [0])) for output, source, *rest in take(registers)]
    ends, wrong, assumed = take(outputs), take(failures), take(assumptions)
    logic = [Gate(*numbers) for numbers in take(gates)]
    _check_order(logic)
    names = _names(lines)
    return Netlist(
        inputs=_by_name([names.get(("i", n), f"input{n}") for n in range(inputs)], wires),
        outputs=_by_name([names.get(("o", n), f"output{n}") for n in range(outputs)], ends),
        registers=held,
        gates=logic,
        names={register.output: names.get(("l", n), f"register{n}") for n, register in enumerate(held)},
        failures=[literal for [literal] in wrong],
        assumptions=[literal for [literal] in assumed],
    )


def _names(lines: Iterable[str]) -> dict[tuple[str, int], str]:
    """The first name of everything that has one, by its kind and place."""
    names = {}
    for line in lines:
        if line == "c":  # comments, to the end
            break
        place, name = line.split()[:2]
        names[place[0], int(place[1:])] = name
    return names


def _by_name(names: Sequence[str], lines: Iterable[Sequence[int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, [literal] in zip(names, lines, strict=True):
        if name in found:
            raise ValueError(f"two inputs or outputs are called {name}")
        found[name] = literal
    return found


def _check_order(gates: Sequence[Gate]) -> None:
    coming = {gate.output >> 1 for gate in gates}
    for gate in gates:
        for source in (gate.left, gate.right):
            if source >> 1 in coming:
                raise ValueError(f"the gate of literal {gate.output} stands before that of {source}")
        coming.remove(gate.output >> 1)
