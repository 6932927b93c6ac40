"""Registers between LiteDRAM and its PHY: what it is told comes a cycle later, what it tells at once."""

import random
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

from litedram.phy import dfi
from migen import run_simulation
from migen.genlib.record import DIR_M_TO_S

from daedal.fpga.litedram_patches.late_phy import LatePhy

READ_LATENCY = 9


def test_all_that_litedram_says_is_a_cycle_late_and_what_comes_back_is_not() -> None:
    dice = random.Random(1)
    phy = SimpleNamespace(
        dfi=dfi.Interface(addressbits=15, bankbits=3, nranks=1, databits=32, nphases=2),
        settings=SimpleNamespace(read_latency=READ_LATENCY, write_latency=3),
    )
    late = LatePhy(phy)
    ways = [(ours, its, name, direction) for ours, its in zip(late.dfi.phases, phy.dfi.phases, strict=True)
            for name, _, direction in ours.layout]  # fmt: skip
    assert {name for _, _, name, direction in ways if direction != DIR_M_TO_S} == {"rddata", "rddata_valid"}

    def drive() -> Generator[Any, Any, None]:
        before: list[int] = []
        for _ in range(20):
            driven = []
            for ours, its, name, direction in ways:
                signal = getattr(ours if direction == DIR_M_TO_S else its, name)
                driven.append(dice.getrandbits(len(signal)))
                yield signal.eq(driven[-1])
            yield
            for number, (ours, its, name, direction) in enumerate(ways):
                if direction == DIR_M_TO_S:
                    seen = yield getattr(its, name)
                    assert not before or seen == before[number], name
                else:
                    assert (yield getattr(ours, name)) == driven[number], name
            before = driven

    run_simulation(late, drive())
    assert (late.settings.read_latency, late.settings.write_latency) == (READ_LATENCY + 1, 3)
    assert phy.settings.read_latency == READ_LATENCY
