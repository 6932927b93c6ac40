"""Which activations the scheduler says have a context, while others wait for one."""

import random
from collections import deque

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from daedal.hw.access_unit.interleaving.context_scheduler import ContextScheduler, first_of
from tests.unit.harness import ODD

ACTIVATIONS = 150


@pytest.mark.parametrize("busy", [0.0, 0.6])
def test_placed_are_those_that_have_had_a_context_since_they_came(busy: float) -> None:
    """In the order in which they came: a turn is of one that is placed, and one that comes into an entry is not yet."""
    dut, rng = ContextScheduler(ODD), random.Random(1)
    waiting: deque[int] = deque()
    left: dict[int, int] = {}
    leaving: deque[int] = deque()
    over, most, came = 0, 0, None

    def check_placed(placed: int, came: int | None) -> None:
        assert came is None or not placed >> came & 1, "one that has just come is placed"
        if waiting and placed >> waiting[0] & 1:  # one gets a context in a cycle
            waiting.popleft()
        assert not any(placed >> entry & 1 for entry in waiting), "one that waits is placed"

    async def bench(ctx) -> None:
        nonlocal over, most, came
        entered = 0
        ctx.set(dut.running, 1)
        while over < ACTIVATIONS:
            enters = entered < ACTIVATIONS and bool(ctx.get(dut.room)) and rng.random() >= busy
            bundles, entry, turn = rng.choice((1, 2, 5)), ctx.get(dut.enter_entry), ctx.get(dut.entry)
            ctx.set(dut.enter, enters)
            ctx.set(dut.enter_single, bundles == 1)
            ctx.set(dut.enter_final, entered == ACTIVATIONS - 1)
            moves = bool(ctx.get(dut.valid)) and rng.random() >= busy
            ctx.set(dut.move, moves)
            ctx.set(dut.next_last, bool(ctx.get(dut.comes)) and left[turn] == 2)
            gives = bool(leaving) and rng.random() >= busy
            ctx.set(dut.leave, gives)
            ctx.set(dut.leave_entry, leaving[0] if gives else 0)
            check_placed(ctx.get(dut.placed), came)
            if ctx.get(dut.valid):
                assert turn not in waiting, "a turn is of an activation without a context"
                assert bool(ctx.get(dut.last)) == (left[turn] == 1)
            if moves:
                left[turn] -= 1
                if not left[turn]:
                    leaving.append(turn)
                    over += 1
            if gives:
                leaving.popleft()
            if enters:
                waiting.append(entry)
                left[entry] = bundles
                entered += 1
            came = entry if enters else None
            most = max(most, len(waiting))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run_until(1e-6 * 40_000)
    assert over == ACTIVATIONS and not waiting
    assert most > 1, "none had to wait"


@pytest.mark.parametrize("bits", [1, 5, 16])
def test_first_of_is_the_lowest_bit(bits: int) -> None:
    """Of none, one and two bits, and of many."""
    module, wanted, rng = Module(), Signal(bits), random.Random(1)
    number = first_of(module, wanted, "number")
    values = {(1 << low) | (1 << high) for low in range(bits) for high in range(low, bits)}

    async def bench(ctx) -> None:
        for value in [0, *sorted(values), *(rng.getrandbits(bits) for _ in range(100))]:
            ctx.set(wanted, value)
            lowest = (value & -value).bit_length() - 1 if value else 0
            assert ctx.get(number) == lowest, f"of {value:#x}"

    simulator = Simulator(module)
    simulator.add_testbench(bench)
    simulator.run()
