"""The contract of every stream of every unit: what is offered stays, unchanged, until it is taken.

And nothing is offered only because it is wanted: no ``valid`` depends on its ``ready`` in the same cycle.
"""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tests.formal.sat.prover import Result, examine
from tests.formal.streams import Watch
from tests.formal.units import CASES, Case


def prove(watch: Watch, depth: int, induction: int, *, abstract: bool = True) -> Result:
    asked = {"goals": watch.goals, "unrelated": watch.unrelated, "abstract": abstract}
    return examine(watch, watch.ports, depth, induction=induction, **asked)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_streams_keep_the_contract(case: Case):
    result = prove(case.watch(), case.depth, case.induction, abstract=case.abstract)
    assert result.holds, f"see {result.log}"
    assert not result.missed, f"no traffic passes in {case.depth} cycles, so nothing is proved; see {result.log}"
    assert not result.loops, f"valid depends on ready; see {result.log}"


class Faulty(wiring.Component):
    """A register between two streams, with a mistake."""

    i: In(stream.Signature(2))
    o: Out(stream.Signature(2))

    def __init__(self, mistake: str) -> None:
        self._mistake = mistake
        super().__init__()

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        mistake, held = self._mistake, Signal()
        m.d.comb += [self.i.ready.eq(~held | self.o.ready), self.o.valid.eq(held)]
        with m.If(self.i.ready | (mistake == "changes")):
            m.d.sync += self.o.payload.eq(self.i.payload)
        with m.If(self.i.ready | (mistake == "drops")):
            m.d.sync += held.eq(self.i.valid)
        if mistake == "waits":
            m.d.comb += self.o.valid.eq(held & self.o.ready)
        if mistake == "blocks":
            m.d.comb += self.i.ready.eq(0)
        return m


@pytest.mark.parametrize("mistake", ["none", "changes", "drops", "waits", "blocks"])
@pytest.mark.parametrize("induction", [0, 3])
def test_the_proof_can_fail(mistake, induction):
    watch = Watch(Faulty(mistake))
    result = prove(watch, 6, induction)
    assert result.holds == (mistake not in ("changes", "drops"))
    assert result.loops == ((("o_r", "o_v"),) if mistake == "waits" else ())
    assert result.missed == (("traffic_passes",) if mistake == "blocks" else ())
    assert bool(result) == (mistake == "none")
