"""LiteDRAM's controller that chooses commands with less to wait for: in each cycle what LiteDRAM's own does."""

import random
from collections.abc import Generator
from typing import Any

import pytest
from litedram.core.controller import ControllerSettings, LiteDRAMController
from litedram.modules import M12L64322A, MT41K256M16
from litedram.phy.model import get_sdram_phy_settings
from litex.gen import LiteXModule
from migen import run_simulation

from daedal.errors import InvalidConfig
from daedal.fpga.litedram_patches.command_choice import tell_by_own

CLOCK_HZ = 75e6
CYCLES = 140
ROWS, COLUMNS = 3, 4
SENT = ("ready", "lock", "wdata_ready", "rdata_valid")
COMMANDS = ("address", "bank", "cas_n", "ras_n", "we_n", "rddata_en", "wrdata_en")


def controller(module: Any, rate: str, kind: str) -> LiteDRAMController:
    chip = module(CLOCK_HZ, rate)
    phy = get_sdram_phy_settings(kind, 16, CLOCK_HZ)
    return LiteDRAMController(phy, chip.geom_settings, chip.timing_settings, CLOCK_HZ, ControllerSettings())


class Pair(LiteXModule):
    """Two controllers, of which the second chooses with less to wait for."""

    def __init__(self, module: Any, rate: str, kind: str) -> None:
        self.first, self.second = controller(module, rate, kind), controller(module, rate, kind)
        tell_by_own(self.second)
        self.banks = len([name for name, *_ in self.first.interface.layout if name.startswith("bank")])


def told(made: LiteDRAMController, banks: int) -> Generator[Any, Any, dict[str, int]]:
    """What a controller says to ports and memory in this cycle."""
    values = {}
    for number in range(banks):
        for name in SENT:
            values[f"{name} {number}"] = yield getattr(getattr(made.interface, f"bank{number}"), name)
    for number, phase in enumerate(made.dfi.phases):
        for name in COMMANDS:
            values[f"{name} of phase {number}"] = yield getattr(phase, name)
    return values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "rate", "kind", "demand"),
    [
        pytest.param(MT41K256M16, "1:2", "DDR3", 0.1, marks=pytest.mark.full),
        (MT41K256M16, "1:2", "DDR3", 0.9),
        (M12L64322A, "1:1", "SDR", 0.5),
    ],
)
def test_every_cycle_is_that_of_litedram(module: Any, rate: str, kind: str, demand: float) -> None:
    pair, dice, seen = Pair(module, rate, kind), random.Random(repr((rate, demand))), set()
    columns = 1 << pair.first.settings.geom.colbits - pair.first.interface.address_align

    def drive() -> Generator[Any, Any, None]:
        requests: list[dict[str, int] | None] = [None] * pair.banks
        for cycle in range(CYCLES):
            for number, request in enumerate(requests):
                if request is None or not request["valid"]:  # a request stays until it is taken
                    address = dice.randrange(ROWS) * columns + dice.randrange(COLUMNS)
                    valid, write = int(dice.random() < demand), dice.randint(0, 1)
                    requests[number] = request = {"valid": valid, "we": write, "addr": address}
                for made in (pair.first, pair.second):
                    for name, value in request.items():
                        yield getattr(getattr(made.interface, f"bank{number}"), name).eq(value)
            yield
            first = yield from told(pair.first, pair.banks)
            second = yield from told(pair.second, pair.banks)
            assert second == first, f"cycle {cycle}"
            seen.update(name.split()[0] for name, value in first.items() if value != name.split()[0].endswith("_n"))
            requests = [None if first[f"ready {number}"] else request for number, request in enumerate(requests)]

    run_simulation(pair, drive())
    assert seen >= {*SENT, *COMMANDS}


def test_another_multiplexer_is_refused() -> None:
    changed = controller(MT41K256M16, "1:2", "DDR3")
    tell_by_own(changed)
    with pytest.raises(InvalidConfig, match="litedram"):
        tell_by_own(changed)
