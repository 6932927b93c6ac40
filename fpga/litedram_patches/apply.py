"""Which patches there are, what each needs, and where they are put in."""

from collections.abc import Collection, Mapping
from typing import Any

from litedram.core.controller import ControllerSettings
from migen import Signal

from daedal.fpga.litedram_patches.bank_machines import decide_from_registers
from daedal.fpga.litedram_patches.command_choice import tell_by_own
from daedal.fpga.litedram_patches.crossbar import hold_in_registers
from daedal.fpga.litedram_patches.late_phy import LatePhy
from daedal.fpga.litedram_patches.refresh import LateRefresher

REFRESH, BANK_MACHINES, COMMAND_CHOICE, CROSSBAR, LATE_PHY = (
    "refresh", "bank_machines", "command_choice", "crossbar", "late_phy",
)  # fmt: skip
"""Names of the patches: those of their files."""

NEEDS = {REFRESH: (), BANK_MACHINES: (REFRESH,), COMMAND_CHOICE: (), CROSSBAR: (BANK_MACHINES,), LATE_PHY: ()}
"""Patch -> those that it builds on."""


def check(patches: Collection[str]) -> None:
    """ValueError unless there are such patches, each with those that it builds on."""
    for patch in patches:
        if patch not in NEEDS:
            raise ValueError(f"litedram_patches must be some of {', '.join(NEEDS)}, not {patch!r}")
        for needed in NEEDS[patch]:
            if needed not in patches:
                raise ValueError(f"litedram_patches with {patch!r} must have {needed!r} too: add it")


def phy_of(phy: Any, patches: Collection[str]) -> Any:
    """What the controller speaks to; a module of its own if it is not ``phy``."""
    return LatePhy(phy) if LATE_PHY in patches else phy


def settings_of(patches: Collection[str]) -> ControllerSettings:
    """Those of the controller."""
    return ControllerSettings(refresh_cls=LateRefresher) if REFRESH in patches else ControllerSettings()


def change_controller(controller: Any, patches: Collection[str]) -> list[Signal]:
    """Change a LiteDRAMController that is not finalized yet.

    Returns for each bank whether it has commands in the next cycle; nothing without the patch that knows. Raises
    InvalidConfig if its modules are not those of the release that pyproject.toml names.
    """
    if COMMAND_CHOICE in patches:
        tell_by_own(controller)
    return decide_from_registers(controller, controller.refresher.soon) if BANK_MACHINES in patches else []


def change_crossbar(
    crossbar: Any, locks: list[Signal], own: Mapping[int, Collection[int]], patches: Collection[str]
) -> None:
    """Change a LiteDRAMCrossbar that is not finalized yet; ``locks`` and ``own`` as in ``hold_in_registers``."""
    if CROSSBAR in patches:
        hold_in_registers(crossbar, locks, own)
