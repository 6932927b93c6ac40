"""LiteDRAM is as it comes unless patches are named, each with those that it builds on."""

from collections.abc import Collection
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from litedram.core.bankmachine import BankMachine
from litedram.core.controller import LiteDRAMController
from litedram.core.crossbar import LiteDRAMCrossbar
from litedram.core.refresher import Refresher
from litedram.modules import MT41K256M16
from litedram.phy import dfi
from litedram.phy.model import get_sdram_phy_settings

from daedal.fpga.boards import BOARDS, find_board
from daedal.fpga.litedram_patches import apply
from daedal.fpga.litedram_patches.late_phy import LatePhy
from daedal.fpga.litedram_patches.refresh import LateRefresher

CLOCK_HZ, BANKS = 75e6, 8
ALL = tuple(apply.NEEDS)


def controller(patches: Collection[str]) -> Any:
    chip = MT41K256M16(CLOCK_HZ, "1:4")
    phy = get_sdram_phy_settings("DDR3", 16, CLOCK_HZ)
    return LiteDRAMController(phy, chip.geom_settings, chip.timing_settings, CLOCK_HZ, apply.settings_of(patches))


def test_without_patches_litedram_is_as_it_comes() -> None:
    plain = controller(())
    assert isinstance(plain.refresher, Refresher)
    machines = [part for _, part in plain._submodules if isinstance(part, BankMachine)]
    before = [list(machine._fragment.comb) for machine in machines]
    assert apply.change_controller(plain, ()) == []
    assert [list(machine._fragment.comb) for machine in machines] == before
    phy = SimpleNamespace()
    assert apply.phy_of(phy, ()) is phy
    phy = SimpleNamespace(dfi=dfi.Interface(15, 3, 1, 32, 4), settings=SimpleNamespace(read_latency=5))
    assert isinstance(apply.phy_of(phy, (apply.LATE_PHY,)), LatePhy)


def test_each_patch_changes_its_own_part() -> None:
    assert isinstance(controller((apply.REFRESH,)).refresher, LateRefresher)
    chosen = controller((apply.REFRESH,))
    apply.change_controller(chosen, (apply.REFRESH, apply.COMMAND_CHOICE))
    assert isinstance(chosen.multiplexer.fsm.do_finalize, partial)
    patches = (apply.REFRESH, apply.BANK_MACHINES)
    decided = controller(patches)
    locks = apply.change_controller(decided, patches)
    assert len(locks) == BANKS
    assert not isinstance(decided.multiplexer.fsm.do_finalize, partial)
    for names, changed in ((patches, False), (ALL, True)):
        crossbar = LiteDRAMCrossbar(decided.interface)
        apply.change_crossbar(crossbar, locks, {}, names)
        assert isinstance(crossbar.do_finalize, partial) == changed


@pytest.mark.parametrize(
    ("patches", "message"),
    [
        (("speed",), "litedram_patches must be some of refresh, bank_machines, .* not 'speed'"),
        (("bank_machines",), "with 'bank_machines' must have 'refresh' too"),
        (("refresh", "crossbar"), "with 'crossbar' must have 'bank_machines' too"),
    ],
)
def test_patches_must_exist_and_have_their_base(patches: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        apply.check(patches)


def test_all_patches_of_all_boards_can_be_put_in() -> None:
    apply.check(ALL)
    for board in map(find_board, BOARDS):
        for fields in ({}, *board.grades.values()):
            apply.check(fields.get("litedram_patches", board.litedram_patches))
