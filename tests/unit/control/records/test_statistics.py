"""Counters of launches that overlap: each stage's counts go to the launch that it is at."""

import random
from collections import Counter as Tally
from dataclasses import dataclass

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS
from daedal.hw.control.launch_controller import SETTLE_CYCLES
from daedal.hw.control.records.statistics import COUNTED, MARKS, Stage, Statistics, stage_of
from daedal.hw.isa.launch import Counter
from daedal.hw.reports import ACCESS_STALLS, EXECUTE_STALLS

LAUNCHES = 5


@dataclass
class Plan:
    """Cycles at which things happen to one launch; ``spans`` in which each stage works on it."""

    begin: int
    take: int
    flip: int
    stop: int
    end: int
    spans: dict[Stage, range]


def plans(rng: random.Random) -> list[Plan]:
    """Launches that begin while the one before is at work, or some time after it."""
    found: list[Plan] = []
    for _ in range(LAUNCHES):
        before = found[-1] if found else Plan(0, 0, 5, 5, 5, dict.fromkeys(Stage, range(0, 5)))
        begin = rng.choice([rng.randrange(before.take + 2, before.flip), before.stop + 10, before.end + 30])
        take = max(before.end + 1, begin + 2)
        read = range(begin + 1, max(take, before.flip) + rng.randrange(20, 300))
        access = range(max(begin + 5, before.spans[Stage.ACCESS].stop + 3), read.stop)
        flip = max(read.stop, before.flip + 1) + 10
        execute = range(before.flip + 1 if before.flip > begin else begin + 1, flip - 8)
        store = range(take + 1, flip + 60)
        stop = store.stop + SETTLE_CYCLES
        spans = {Stage.READ: read, Stage.ACCESS: access, Stage.EXECUTE: execute, Stage.STORE: store}
        found.append(Plan(begin, take, flip, stop, stop + 4 * len(Counter), spans))
    return found


def test_what_each_stage_counts():
    """Requests are told apart by whose they are, lines that come back by their tags, and so on down the machine."""
    assert {stage: {counter for counter in COUNTED if stage_of(counter) is stage} for stage in Stage} == {
        Stage.READ: {Counter.LINES_READ},
        Stage.ACCESS: {Counter.ROWS, Counter.LOOKUPS, Counter.BUNDLES, Counter.TOKENS, Counter.BOUNDS_WARNINGS,
                       *(c for c in COUNTED if c.name.lower() in ACCESS_STALLS)},
        Stage.EXECUTE: {Counter.LANE_BEATS, *(c for c in COUNTED if c.name.lower() in EXECUTE_STALLS)},
        Stage.STORE: {Counter.LINES_WRITTEN, Counter.BYTES_WRITTEN},
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_every_launch_has_its_own_counts(seed):
    config, rng = PRESETS["edge"], random.Random(seed)
    launches, dut = plans(rng), Statistics(config)
    expected: list[Tally] = [Tally() for _ in launches]
    found: list[dict] = [{} for _ in launches]

    def at(stage: Stage, cycle: int) -> int | None:
        return next((n for n, plan in enumerate(launches) if cycle in plan.spans[stage]), None)

    async def bench(ctx):
        marks, rung = dict.fromkeys(MARKS, 0), 0
        for cycle in range(launches[-1].end + 1):
            rung = int(any(plan.begin == cycle for plan in launches))
            for stage in Stage:
                launch = at(stage, cycle)
                if launch is not None:
                    ctx.set(getattr(dut, f"side_{stage.value}"), launch % 2)
                for counter in COUNTED:
                    if stage_of(counter) is stage:
                        most = {Counter.BYTES_WRITTEN: config.bus_bytes, Counter.BOUNDS_WARNINGS: config.levels}
                        count = rng.randrange(most.get(counter, 1) + 1) if launch is not None else 0
                        ctx.set(getattr(dut, f"count_{counter.name.lower()}"), count)
                        if launch is not None:
                            expected[launch][counter] += count
            ended = next((n for n, plan in enumerate(launches) if plan.stop < cycle <= plan.end), None)
            if ended is not None:  # its record is written, which is not counted
                ctx.set(dut.side_store, ended % 2)
                ctx.set(dut.count_lines_written, 1)
                ctx.set(dut.count_bytes_written, config.bus_bytes)
            present = max((n for n, plan in enumerate(launches) if plan.take < cycle), default=0)
            plan = launches[present]
            for mark in MARKS:
                marks[mark] = rng.randrange(1000)
                ctx.set(getattr(dut, mark.name.lower()), marks[mark])
            if cycle == plan.flip:
                expected[present].update(marks)
            begins = next((n for n, other in enumerate(launches) if other.begin == cycle), None)
            acknowledged = int(cycle in plan.spans[Stage.STORE] and rng.random() < 0.1)
            if acknowledged or cycle == plan.spans[Stage.STORE].stop - 1:
                acknowledged, expected[present]["last"] = 1, cycle
            for name, value in {
                "begin": begins is not None, "begin_side": (begins or 0) % 2, "rung": rung,
                "take": any(other.take == cycle for other in launches), "side": present % 2,
                "flip": cycle == plan.flip, "stop": plan.stop <= cycle <= plan.end, "acknowledged": acknowledged,
            }.items():  # fmt: skip
                ctx.set(getattr(dut, name), int(value))
            if plan.stop <= cycle <= plan.end:
                asked, wait = divmod(cycle - plan.stop, 3)
                ctx.set(dut.number, min(asked, len(Counter) - 1))
                ctx.set(dut.ask, wait == 0)
                await ctx.tick()
                ctx.set(dut.ask, 0)
                if asked < len(Counter) and wait == 0:
                    found[present][Counter(asked)] = ctx.get(dut.value)
            else:
                await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    last = 0
    for number, (launch, counts, plan) in enumerate(zip(expected, found, launches, strict=True)):
        start = max(plan.begin, last)
        last = launch.pop("last")
        launch[Counter.CYCLES] = last - start
        assert set(counts) == set(Counter)
        assert {c: n for c, n in counts.items() if n != launch[c]} == {}, number


@pytest.mark.parametrize("side", range(2))
def test_a_cancelled_launch_counts_nothing(side):
    """Its counters are cleared all the same."""
    dut, found = Statistics(PRESETS["edge"]), {}

    async def bench(ctx):
        async def count(cycles):
            for counter in COUNTED:
                ctx.set(getattr(dut, f"count_{counter.name.lower()}"), 1)
            await ctx.tick().repeat(cycles)
            for counter in COUNTED:
                ctx.set(getattr(dut, f"count_{counter.name.lower()}"), 0)

        for stage in Stage:
            ctx.set(getattr(dut, f"side_{stage.value}"), side)
        ctx.set(dut.side, side)
        ctx.set(dut.begin_side, side)
        for cancel in (0, 1):
            ctx.set(dut.begin, 1)
            ctx.set(dut.cancel, cancel)
            await ctx.tick()
            ctx.set(dut.begin, 0)
            await count(50)
            await ctx.tick().repeat(SETTLE_CYCLES)
            for counter in COUNTED:
                ctx.set(dut.number, counter.value)
                ctx.set(dut.ask, 1)
                await ctx.tick()
                ctx.set(dut.ask, 0)
                found[cancel, counter] = ctx.get(dut.value)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert {found[0, counter] for counter in COUNTED} == {50}
    assert {found[1, counter] for counter in COUNTED} == {0}
