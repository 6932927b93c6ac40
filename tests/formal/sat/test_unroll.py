"""The unrolled netlist, by netlists so small that all of their runs can be tried."""

import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.formal.sat.netlist import Gate, Netlist, Register, read
from tests.formal.sat.unroll import Unrolled, holds_for, holds_for_ever
from tests.formal.sat.waveform import write_waveform

INPUTS, REGISTERS, GATES = 2, 3, 9

LONG = 20
"""Cycles after which a machine with so few registers has been everywhere."""

COUNTER = """aag 6 1 2 1 3 1 1
2
4 13
6 8 1
10
7
3
8 6 4
10 5 7
12 4 2
i0 more stop
l0 unit.count[0]
l1 unit.count[2]
o0 none
c
l0 not a name
"""
"""Two registers, of which the second begins as 1 and fails as soon as it is not; the input is assumed to be 0."""


def machine(seed: int) -> Netlist:
    """A random one, by way of its text."""
    chosen = random.Random(seed)
    first = 1 + INPUTS + REGISTERS
    held = [2 * (1 + INPUTS + n) for n in range(REGISTERS)]

    def pick(below: int = first + GATES) -> int:
        return chosen.randrange(2 * below)

    lines = [f"aag {first + GATES - 1} {INPUTS} {REGISTERS} 1 {GATES} 2 1"]
    lines += [str(2 * (1 + n)) for n in range(INPUTS)]
    lines += [f"{output} {pick()} {chosen.choice([0, 0, 1, output])}" for output in held]
    lines += [str(pick()), str(pick()), str(pick()), str(chosen.choice([1, pick()]))]
    lines += [f"{2 * n} {pick(n)} {pick(n)}" for n in range(first, first + GATES)]
    return read("\n".join(lines))


def run_cycle(netlist: Netlist, state: tuple[int, ...], given: tuple[int, ...]) -> dict[int, int]:
    """What every literal is."""
    known = {0: 0, 1: 1}
    outputs = [*netlist.inputs.values(), *(register.output for register in netlist.registers)]
    for literal, value in zip(outputs, (*given, *state), strict=True):
        known |= {literal: value, literal ^ 1: 1 - value}
    for output, left, right in netlist.gates:
        known |= {output: known[left] & known[right], output ^ 1: 1 - (known[left] & known[right])}
    return known


def begins(netlist: Netlist) -> Iterator[tuple[int, ...]]:
    return product(*((0, 1) if r.initial == r.output else (r.initial,) for r in netlist.registers))


def runs(netlist: Netlist, cycles: int) -> set[tuple[tuple[int, ...], bool]]:
    """Where runs of so many cycles end in which the assumptions hold, and whether something failed on the way."""
    ends = {(state, False) for state in begins(netlist)}
    for _ in range(cycles):
        following = set()
        for (state, failed), given in product(ends, product((0, 1), repeat=INPUTS)):
            known = run_cycle(netlist, state, given)
            if all(known[literal] for literal in netlist.assumptions):
                fails = failed or any(known[literal] for literal in netlist.failures)
                following.add((tuple(known[register.input] for register in netlist.registers), fails))
        ends = following
    return ends


def test_a_bound_is_that_of_all_runs():
    results = set()
    for seed in range(300):
        netlist, depth = machine(seed), 1 + seed % 6
        with Unrolled(netlist, from_reset=True) as run:
            found = holds_for(run, depth)
        assert found == (not any(failed for _, failed in runs(netlist, depth))), seed
        results.add((found, depth))
    assert len(results) == 12


def test_an_example_is_a_run():
    replayed = 0
    for seed in range(300):
        netlist = machine(seed)
        with Unrolled(netlist, from_reset=True) as run:
            if holds_for(run, 5):
                continue
            values = run.example()
        given = [values(literal) or [0] * 5 for literal in netlist.inputs.values()]
        held = [values(register.output) for register in netlist.registers]
        state = tuple(
            bits[0] if bits is not None else register.initial % 2
            for bits, register in zip(held, netlist.registers, strict=True)
        )
        assert state in set(begins(netlist)), seed
        failed = False
        for cycle in range(5):
            known = run_cycle(netlist, state, tuple(bits[cycle] for bits in given))
            assert all(known[literal] for literal in netlist.assumptions), seed
            failed |= any(known[literal] for literal in netlist.failures)
            assert all(bits is None or bits[cycle] == now for bits, now in zip(held, state, strict=True)), seed
            state = tuple(known[register.input] for register in netlist.registers)
        assert failed, seed
        replayed += 1
    assert replayed > 50


def test_what_an_induction_proves_is_so():
    found = {"proved": 0, "fails": 0, "open": 0}
    for seed in range(300):
        netlist = machine(seed)
        fails = any(failed for cycles in range(1, LONG) for _, failed in runs(netlist, cycles))
        with Unrolled(netlist, from_reset=True) as run:
            if holds_for_ever(run, 4):
                assert not fails, seed
                found["proved"] += 1
            elif run.found:
                assert fails, seed
                found["fails"] += 1
            else:
                found["open"] += 1
    assert found["proved"] > 50
    assert found["fails"] > 50
    assert found["open"] > 0  # some need more than 4 cycles


def test_goals_of_a_counter():
    netlist = read(COUNTER)
    with Unrolled(netlist, [6, 4], from_reset=True) as run:
        run.extend(3)
        assert not run.possible([4], [0])  # count[0] begins as 0
        assert run.possible([4], range(3))
        assert not run.possible([7], [0])
        assert run.possible([7], [1])
        assert not run.possible([2], range(3))  # assumed to be 0


def test_names_and_properties_are_read():
    netlist = read(COUNTER)
    assert netlist.inputs == {"more": 2}
    assert netlist.outputs == {"none": 10}
    assert netlist.registers == [Register(4, 13, 0), Register(6, 8, 1)]
    assert netlist.gates == [Gate(8, 6, 4), Gate(10, 5, 7), Gate(12, 4, 2)]
    assert netlist.names == {4: "unit.count[0]", 6: "unit.count[2]"}
    assert (netlist.failures, netlist.assumptions) == ([7], [3])
    assert netlist.reached_from([10], through_registers=False) == {5, 2, 3}
    assert netlist.reached_from([8], through_registers=True) == {4, 3, 2, 6, 1}


def test_a_counterexample_as_a_waveform(tmp_path: Path):
    with Unrolled(read(COUNTER), from_reset=True) as run:
        assert not holds_for(run, 4)
        write_waveform(run, tmp_path / "x.vcd")
    lines = (tmp_path / "x.vcd").read_text().splitlines()
    code = next(line.split()[3] for line in lines if " count " in line)
    assert next(line for line in lines if " count " in line).split()[1:3] == ["wire", "3"]
    assert f"b1x0 {code}" in lines[: lines.index("#1")]  # bit 1 has no register


PIGEONS = """
from itertools import combinations
from tests.formal.sat import unroll
from tests.formal.sat.netlist import read
from tests.formal.sat.test_unroll import COUNTER
unroll.LIMIT = 0.5
run = unroll.Unrolled(read(COUNTER), from_reset=True)
run.extend(1)
places = [[1000 + 20 * pigeon + hole for hole in range(13)] for pigeon in range(14)]
run._solver.append_formula(places)
run._solver.append_formula([[-one, -other] for hole in zip(*places) for one, other in combinations(hole, 2)])
print("asked", flush=True)
run.possible([1], [0])
"""
"""More pigeons than holes: no solver of this kind finds out in a lifetime that some hole has two."""


def test_a_question_that_takes_too_long_ends_the_process(root: Path):
    done = subprocess.run([sys.executable, "-c", PIGEONS], cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "asked\n")
    assert "Timeout" in done.stderr
    assert "in possible" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with ''"),
        ("aig 1 0 0 0 1\n", "begins with 'aig 1"),
        ("aag 1 1 0 0 0 0 0 1 0\n2\n", "liveness"),
        ("aag 3 2 0 0 1\n2\n4\n", "1 lines are missing"),
        ("aag 3 1 0 0 2\n2\n4 6 2\n6 2 2\n", "the gate of literal 4 stands before that of 6"),
        ("aag 2 1 0 0 1\n2\n4 4 2\n", "the gate of literal 4 stands before that of 4"),
        ("aag 2 2 0 0 0\n2\n4\ni0 a\ni1 a\n", "two inputs or outputs are called a"),
    ],
)
def test_what_is_no_netlist_is_an_error(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        read(text)
