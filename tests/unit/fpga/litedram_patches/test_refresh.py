"""LiteDRAM's refresher behind registers: the same commands, as far from each other."""

import random
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from litedram.core.refresher import Refresher
from litedram.modules import M12L64322A, MT41K256M16
from migen import run_simulation

from daedal.fpga.litedram_patches.refresh import LateRefresher

CLOCK_HZ = 50e6
REFRESHES = 4
COMMAND = ("ras", "cas", "we", "a", "ba")


def seen_by_a_controller(refresher: Any, seed: int) -> list[list[tuple[int, tuple[int, ...]]]]:
    """For each refresh what comes between the cycle of ``ready`` and that of ``last``: ``(cycle, command)``."""
    dice, refreshes = random.Random(seed), []

    def controller() -> Generator[Any, Any, None]:
        for _ in range(REFRESHES):
            while not (yield refresher.cmd.valid):
                assert not (yield refresher.cmd.last)
                yield
            for _ in range(dice.randint(0, 20)):  # the banks finish what they are at
                yield
                assert (yield refresher.cmd.valid)
            yield refresher.cmd.ready.eq(1)
            commands: list[tuple[int, tuple[int, ...]]] = []
            for cycle in range(1000):
                yield
                word = []
                for name in COMMAND:
                    word.append((yield getattr(refresher.cmd, name)))
                if any(word):
                    commands.append((cycle, tuple(word)))
                if (yield refresher.cmd.last):
                    assert not (yield refresher.cmd.valid), "banks go on when the refresh is over"
                    commands.append((cycle, ()))
                    break
                assert (yield refresher.cmd.valid)
            yield refresher.cmd.ready.eq(0)
            yield
            refreshes.append(commands)

    run_simulation(refresher, controller())
    return refreshes


@pytest.mark.parametrize(("module", "rate"), [(MT41K256M16, "1:2"), (M12L64322A, "1:1")])
def test_commands_and_the_times_between_them_are_those_of_litedram(module: Any, rate: str) -> None:
    chip = module(CLOCK_HZ, rate)
    settings = SimpleNamespace(
        phy=SimpleNamespace(nranks=1), geom=chip.geom_settings, timing=chip.timing_settings, with_refresh=True
    )
    made = [seen_by_a_controller(kind(settings, CLOCK_HZ, 1.0, 1), 1) for kind in (Refresher, LateRefresher)]
    relative = [
        [[(cycle - refresh[0][0], command) for cycle, command in refresh] for refresh in refreshes]
        for refreshes in made
    ]
    assert relative[1] == relative[0]
    assert {late[0][0] - early[0][0] for early, late in zip(*made, strict=True)} == {1}
    apart = [later[0] - earlier[0] for earlier, later in zip(made[1][0], made[1][0][1:], strict=False)]
    assert apart[0] >= chip.timing_settings.tRP
    assert apart[1] >= chip.timing_settings.tRFC
