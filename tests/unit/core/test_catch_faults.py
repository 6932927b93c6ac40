"""Whose fault is whose: two launches are at work, and each unit says which one it means."""

from itertools import product
from types import SimpleNamespace

import pytest
from amaranth import Const, Module, Signal
from amaranth.sim import Simulator

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.config.core import PRESETS
from daedal.hw.control import core_faults
from daedal.hw.control.fault_words import FaultWords
from daedal.hw.interfaces import FaultPort
from daedal.hw.isa.launch import Cause

CONFIG = PRESETS["edge"]
UNITS = ("execute", "access", "fabric", "loader")
"""In the order in which one is believed before the next if both have a fault in one cycle."""

CAUSES = {"execute": Cause.FRAMING, "access": Cause.INDEX, "fabric": Cause.MEMORY_ERROR, "loader": Cause.PROGRAM}


def fault_port() -> SimpleNamespace:
    """What a unit with words of a fault shows."""
    made = FaultPort(CONFIG).create()
    return SimpleNamespace(valid=made.valid, fault=made.fault)


class Core(SimpleNamespace):
    """What ``catch_faults`` sees of the core, and a module with its logic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("_progress", "_blocked_queue"):
            monkeypatch.setattr(core_faults, name, lambda *_: Const(0))

        def signals(*names: str) -> SimpleNamespace:
            return SimpleNamespace(**{name: Signal(name=name) for name in names})

        super().__init__(
            config=CONFIG, words=FaultWords(CONFIG), port=SimpleNamespace(cause=Signal(Cause)),
            **{name: Signal(name=name) for name in ("ahead", "taken", "soft_reset")},
            controller=signals("side", "execute_side", "running", "record_phase", "record_error", "fault", "cancel",
                               "clear_fault"),
            loader=SimpleNamespace(**vars(signals("side", "misaligned", "illegal", "begin")),
                                   word_number=Signal(16), program=Signal(CONFIG.address_bits)),
            access=SimpleNamespace(**vars(signals("side", "begins", "warning")), fault=fault_port(),
                                   number=Signal(NEST_BITS), warned_value=Signal(64)),
            execute=SimpleNamespace(fault=fault_port()),
            store=SimpleNamespace(fault=fault_port(), quiet=Signal()),
            fabric=SimpleNamespace(**vars(signals("error", "error_side")), error_address=Signal(CONFIG.address_bits),
                                   idle=Signal(2)),
            watchdog=signals("running", "outstanding", "progress", "hang", "silent"),
        )  # fmt: skip
        self.m = Module()
        self.m.submodules.words = self.words
        core_faults.catch_faults(self.m, self)

    def report(self, ctx, unit: str, side: int) -> None:
        """A unit has a fault from now on."""
        if unit in ("execute", "access"):
            port = getattr(self, unit).fault
            ctx.set(port.valid, 1)
            ctx.set(port.fault.cause, CAUSES[unit])
        where = {"execute": self.controller.execute_side, "access": self.access.side, "fabric": self.fabric.error_side,
                 "loader": self.loader.side}[unit]  # fmt: skip
        ctx.set(where, side)
        if unit == "fabric":
            ctx.set(self.fabric.error, 1)
        if unit == "loader":
            ctx.set(self.loader.illegal, 1)

    async def next_launch(self, ctx) -> None:
        """That of side 1 becomes the present one."""
        ctx.set(self.controller.side, 1)
        ctx.set(self.ahead, 0)
        ctx.set(self.taken, 1)
        await ctx.tick()
        ctx.set(self.taken, 0)
        await ctx.tick().repeat(4)

    def run(self, bench) -> None:
        async def whole(ctx):
            ctx.set(self.controller.running, 1)
            ctx.set(self.ahead, 1)
            for side in (self.access.side, self.loader.side, self.fabric.error_side):
                ctx.set(side, 1)
            await ctx.tick().repeat(3)
            await bench(ctx)
            done.append(True)

        done: list[bool] = []
        simulator = Simulator(self.m)
        simulator.add_clock(1e-6)
        simulator.add_testbench(whole)
        simulator.run()
        assert done


AHEAD = ("access", "fabric", "loader")
"""Those that may be at the next launch while the present one is not over."""


@pytest.mark.parametrize(("first", "second"), [(a, b) for a, b in product(AHEAD, UNITS) if a != b])
@pytest.mark.parametrize("between", [0, 1, 5])
def test_the_first_fault_of_the_next_launch_is_its_fault(monkeypatch, first, second, between):
    """Another unit has one as well, later, or in the same cycle: then the unit further down is believed."""
    core = Core(monkeypatch)
    together = between == 0 and second in AHEAD
    believed = min(first, second, key=UNITS.index) if together else first

    async def bench(ctx):
        core.report(ctx, first, 1)
        if together:
            core.report(ctx, second, 1)
        await ctx.tick().repeat(max(between, 1))
        if second in AHEAD and not together:
            core.report(ctx, second, 1)
        await ctx.tick().repeat(5)
        assert not ctx.get(core.controller.fault), "the present launch has no fault"
        if second == "execute":
            core.report(ctx, second, 1)
        await core.next_launch(ctx)
        assert ctx.get(core.controller.fault)
        assert ctx.get(core.port.cause) == CAUSES[believed]

    core.run(bench)


@pytest.mark.parametrize(("early", "late"), [(a, b) for a, b in product(AHEAD, UNITS[:3]) if a != b])
def test_a_fault_of_the_present_launch_counts_after_one_of_the_next(monkeypatch, early, late):
    """All but the loader may still be at the present one."""
    core = Core(monkeypatch)

    async def bench(ctx):
        core.report(ctx, early, 1)
        await ctx.tick().repeat(5)
        assert not ctx.get(core.controller.fault)
        core.report(ctx, late, 0)
        await ctx.tick().repeat(5)
        assert ctx.get(core.controller.fault), "overlooked"
        assert ctx.get(core.port.cause) == CAUSES[late]

    core.run(bench)
