"""A wrong bit of a program is noticed, and nothing is written outside of the store window."""

from collections import Counter
from dataclasses import replace

import pytest

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause
from tests.fuzz.bit_flips import Flips, Unnoticed, run
from tests.fuzz.snapshots import Snapshot, snapshots

TOTAL = [
    pytest.param(("emulator", "minimum", 150), id="emulator-minimum"),
    pytest.param(("emulator", "ddr3", 150), id="emulator-ddr3"),
    pytest.param(("verilator", "minimum", 100), id="verilator", marks=[pytest.mark.rtl, pytest.mark.slow]),
    pytest.param(("verilator", "edge", 150), id="verilator-edge", marks=[pytest.mark.rtl, pytest.mark.full]),
]
KNOWN: dict[str, list[Snapshot]] = {}
"""By configuration; compiled once."""


def known(name: str) -> list[Snapshot]:
    if name not in KNOWN:
        KNOWN[name] = list(snapshots(Config.preset(name)))
    return KNOWN[name]


@pytest.mark.parametrize("total", TOTAL)
def test_wrong_bits_are_noticed(total: tuple[str, str, int], seed: int) -> None:
    target, name, count = total
    with Flips(Config.preset(name), target) as flips:
        ends = run(flips, known(name), count, seed)
    assert ends[Cause.PROGRAM.name] > count // 2
    assert sum(ends.values()) == count


def test_more_wrong_bits_are_noticed(seed: int) -> None:
    ends = Counter[str]()
    with Flips(Config.preset("edge"), "emulator") as flips:
        for wrong in (2, 3, 8, 64):
            ends += run(flips, known("edge"), 40, seed, wrong)
    assert sum(ends.values()) == 160


def test_programs_are_found_behind_their_blocks_and_elsewhere() -> None:
    listed = known("minimum")
    names = {snapshot.name for snapshot in listed}
    assert {"gather", "gather by address", "sum by address", "weighted by address"} <= names
    for snapshot in listed:
        assert snapshot.first < snapshot.end
        assert snapshot.memory[snapshot.first : snapshot.end] != snapshot.after[snapshot.first : snapshot.end]
        assert snapshot.outside(snapshot.memory) == snapshot.outside(snapshot.after)


def test_what_is_not_noticed_is_told() -> None:
    """A bit that is not flipped; a byte beside the window; a program that does something else as a whole."""
    snapshot = known("minimum")[0]
    with Flips(Config.preset("minimum"), "emulator") as flips:
        with pytest.raises(Unnoticed, match=r"emulator minimum: .* with wrong bits .* must not be DONE"):
            flips.flipped(snapshot)
        with pytest.raises(Unnoticed, match="must be DONE as on the emulator, not DONE"):
            flips.whole(replace(snapshot, after=bytes(len(snapshot.after))))
        with pytest.raises(Unnoticed, match="must not write outside of its window"):
            flips.flipped(replace(snapshot, record=snapshot.record + 64), 64 * (snapshot.words - 1))
