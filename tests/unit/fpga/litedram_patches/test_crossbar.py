"""The crossbar with registers for what banks hold: in each cycle what LiteDRAM's own does."""

import random
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from litedram.common import LiteDRAMInterface
from litedram.core.controller import ControllerSettings
from litedram.core.crossbar import LiteDRAMCrossbar
from litedram.modules import MT41K256M16
from litex.gen import LiteXModule
from migen import Mux, Signal, run_simulation

from daedal.fpga.litedram_patches.crossbar import hold_in_registers

CLOCK_HZ = 75e6
ALIGN = 2
CYCLES = 120
MOST_COMMANDS = 3
"""What a bank of the model takes before it answers."""


class Bank(LiteXModule):
    """In place of a bank machine: takes commands when ``willing``, answers the oldest when it is to ``answer``."""

    def __init__(self, bank: Any) -> None:
        self.willing, self.answer, self.holds = (Signal() for _ in range(3))
        count, following = (Signal(max=MOST_COMMANDS + 1) for _ in range(2))
        taken, over, writes, left = Signal(), Signal(), Signal(MOST_COMMANDS), Signal(MOST_COMMANDS)
        self.comb += [
            bank.ready.eq(self.willing & (count < MOST_COMMANDS)),
            bank.lock.eq(count != 0),
            over.eq(self.answer & (count != 0)),
            bank.wdata_ready.eq(over & writes[0]),
            bank.rdata_valid.eq(over & ~writes[0]),
            taken.eq(bank.valid & bank.ready),
            following.eq(count + taken - over),
            self.holds.eq(following != 0),
            left.eq(Mux(over, writes >> 1, writes)),
        ]
        self.sync += [count.eq(following), writes.eq(left | ((taken & bank.we) << (count - over)))]


class System(LiteXModule):
    """Ports, a crossbar, models of banks."""

    def __init__(self, modes: list[str], write_latency: int) -> None:
        chip = MT41K256M16(CLOCK_HZ, "1:2")
        settings = ControllerSettings()
        settings.geom, settings.timing = chip.geom_settings, chip.timing_settings
        settings.phy = SimpleNamespace(nranks=1, nphases=2, dfi_databits=16, read_latency=3,
                                       write_latency=write_latency)  # fmt: skip
        self.controller = LiteDRAMInterface(ALIGN, settings)
        self.crossbar = LiteDRAMCrossbar(self.controller)
        self.ports = [self.crossbar.get_port(mode) for mode in modes]
        self.interfaces = [getattr(self.controller, f"bank{number}") for number in range(self.crossbar.nbanks)]
        self.banks = [Bank(interface) for interface in self.interfaces]
        self.submodules += self.banks

    def told(self) -> Generator[Any, Any, list[tuple[int, ...]]]:
        """What the crossbar says to banks and ports in this cycle; of a command that is not valid only that."""
        values = []
        for bank in self.interfaces:
            valid, place, write = (yield bank.valid), (yield bank.addr), (yield bank.we)
            values.append((valid, place, write) if valid else (0,))
        for port in self.ports:
            told = (yield port.cmd.ready), (yield port.wdata.ready), (yield port.rdata.valid)
            values.append((*told, (yield port.rdata.data) if told[2] else 0))
        values.append(((yield self.controller.wdata), (yield self.controller.wdata_we)))
        return values


class Pair(LiteXModule):
    """Two of them, of which the second has the crossbar with registers."""

    def __init__(self, modes: list[str], own: dict[int, range], write_latency: int) -> None:
        self.first, self.second = System(modes, write_latency), System(modes, write_latency)
        hold_in_registers(self.second.crossbar, [bank.holds for bank in self.second.banks], own)


@pytest.mark.parametrize(("modes", "own", "write_latency"), [
    pytest.param(["both"] * 2, {}, 0, id="two"),
    pytest.param(["both"] * 6, {}, 1, id="six", marks=pytest.mark.full),
    pytest.param(["both", *["read"] * 4, "write"], {1 + port: range(port, 8, 4) for port in range(4)}, 3, id="core"),
])  # fmt: skip
@pytest.mark.parametrize("demand", [0.3, 1.0])
def test_every_cycle_is_that_of_litedram(
    modes: list[str], own: dict[int, range], write_latency: int, demand: float
) -> None:
    ports = len(modes)
    pair, dice = Pair(modes, own, write_latency), random.Random(repr((ports, demand)))
    both, count = (pair.first, pair.second), pair.first.crossbar.nbanks
    columns = pair.first.controller.settings.geom.colbits - ALIGN
    moved: list[tuple[int, ...]] = []

    def drive() -> Generator[Any, Any, None]:
        for cycle in range(CYCLES):
            # Ports often stay with a bank; those that change their mind are no matter to the crossbar.
            reached = [own.get(number, range(count)) for number in range(ports)]
            wanted = [reach[number % len(reach)] if dice.random() < 0.5 else dice.choice(reach)
                      for number, reach in enumerate(reached)]  # fmt: skip
            places = [dice.getrandbits(6) << 12 | bank << columns for bank in wanted]
            flags = [[int(dice.random() < share) for _ in range(ports)] for share in (demand, 0.5)]
            flags[1] = [{"read": 0, "write": 1}.get(mode, write) for mode, write in zip(modes, flags[1], strict=True)]
            words, answering = [dice.getrandbits(32) for _ in range(ports)], dice.randrange(count)
            willing = dice.getrandbits(count) | dice.getrandbits(count)
            for system in both:
                for number, port in enumerate(system.ports):
                    yield port.cmd.addr.eq(places[number])
                    yield port.cmd.valid.eq(flags[0][number])
                    yield port.cmd.we.eq(flags[1][number])
                    yield port.wdata.data.eq(words[number])
                    yield port.wdata.we.eq(words[number] & 0xF)
                yield system.controller.rdata.eq(words[0])
                for number, bank in enumerate(system.banks):
                    yield bank.willing.eq(willing >> number & 1)
                    yield bank.answer.eq(number == answering)  # banks take turns at the data
            yield
            first = yield from pair.first.told()
            second = yield from pair.second.told()
            assert second == first, f"cycle {cycle}"
            moved.extend(first[count:-1])

    run_simulation(pair, drive())
    for number in range(3):
        assert any(one[number] for one in moved) and not all(one[number] for one in moved)
