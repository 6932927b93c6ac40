"""LiteDRAM's bank machines that decide from registers: in each cycle what LiteDRAM's own do."""

import random
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from litedram.core.bankmachine import BankMachine
from litedram.core.controller import ControllerSettings
from litedram.modules import M12L64322A, MT41K256M16
from litex.gen import LiteXModule
from migen import Signal, run_simulation

from daedal.errors import InvalidConfig
from daedal.fpga.litedram_patches.bank_machines import decide_from_registers

CLOCK_HZ = 75e6
CYCLES = 400
ROWS, COLUMNS = 3, 4
ADDRESS_BITS = 22
SENT = ("ready", "lock", "wdata_ready", "rdata_valid")
ASKED = ("valid", "a", "ba", "cas", "ras", "we", "is_cmd", "is_read", "is_write")


def machine(module: Any, rate: str, **settings: Any) -> Any:
    chip = module(CLOCK_HZ, rate)
    made = ControllerSettings(**settings)
    made.geom, made.timing = chip.geom_settings, chip.timing_settings
    made.phy = SimpleNamespace(cwl=5, nphases=2)
    return BankMachine(1, address_width=ADDRESS_BITS, address_align=3, nranks=1, settings=made)


class Pair(LiteXModule):
    """Two bank machines, of which the second decides from registers."""

    def __init__(self, module: Any, rate: str, **settings: Any) -> None:
        self.first, self.second = machine(module, rate, **settings), machine(module, rate, **settings)
        self.soon, late = Signal(), Signal()
        decide_from_registers(SimpleNamespace(_submodules=[("", self.second)]), self.soon)
        self.sync += late.eq(self.soon)
        self.comb += [machine.refresh_req.eq(late) for machine in (self.first, self.second)]


def told(bank: Any) -> Generator[Any, Any, dict[str, int]]:
    """What a bank machine says in this cycle; of a command that is not valid nothing but that."""
    values = {}
    for name in SENT:
        values[name] = yield getattr(bank.req, name)
    for name in ASKED:
        values[name] = yield getattr(bank.cmd, name)
    values["refresh_gnt"] = yield bank.refresh_gnt
    return values


@pytest.mark.parametrize("settings", [{}, {"with_auto_precharge": False}])
@pytest.mark.parametrize(("module", "rate"), [(MT41K256M16, "1:2"), (M12L64322A, "1:1")])
@pytest.mark.parametrize("demand", [0.2, 1.0])
def test_every_cycle_is_that_of_litedram(module: Any, rate: str, settings: dict[str, Any], demand: float) -> None:
    pair, dice, seen = Pair(module, rate, **settings), random.Random(repr((rate, settings, demand))), set()
    columns = 1 << module(CLOCK_HZ, rate).geom_settings.colbits - 3

    def drive() -> Generator[Any, Any, None]:
        refreshing, waits = False, False
        for cycle in range(CYCLES):
            if not waits:  # a request stays until it is taken, as the crossbar's do
                address = dice.randrange(ROWS) * columns + dice.randrange(COLUMNS)
                request = {"valid": int(dice.random() < demand), "we": dice.randint(0, 1), "addr": address}
            refreshing = dice.random() < (0.9 if refreshing else 0.01)
            yield pair.soon.eq(refreshing)
            accepts = int(dice.random() < 0.7)
            for bank in (pair.first, pair.second):
                for name, value in request.items():
                    yield getattr(bank.req, name).eq(value)
                yield bank.cmd.ready.eq(accepts)
            yield
            first = yield from told(pair.first)
            second = yield from told(pair.second)
            assert second == first, f"cycle {cycle}"
            seen.update(name for name, value in first.items() if value)
            waits = bool(request["valid"] and not first["ready"])

    run_simulation(pair, drive())
    assert seen >= {*SENT, "cas", "ras", "we", "is_read", "is_write", "refresh_gnt"}


def test_another_bank_machine_is_refused() -> None:
    changed = machine(MT41K256M16, "1:2")
    decide_from_registers(SimpleNamespace(_submodules=[("", changed)]), Signal())
    with pytest.raises(InvalidConfig, match="litedram"):
        decide_from_registers(SimpleNamespace(_submodules=[("", changed)]), Signal())
