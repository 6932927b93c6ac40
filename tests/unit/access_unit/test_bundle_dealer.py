"""Bundles leave the dealer in the order of the contract, whatever comes late and whatever is refused."""

import random
from dataclasses import dataclass

import pytest
from amaranth.sim import Simulator, SimulatorContext

from daedal.hw.access_unit.events.bundle_dealer import BLOCKS, BundleDealer
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.spec.dealing import deal
from tests.unit.harness import ODD

LEVEL = 1


@dataclass(frozen=True)
class Place:
    """A bundle, as the reference looks at it; ``number`` of those that came before it."""

    number: int
    begin: frozenset[int]
    end: frozenset[int]
    fault: object | None = None


def bundles_of(lengths: list[int], *, poisoned: bool = False, alone: int = 0) -> list[Place]:
    """Activations with so many bundles; ``alone`` of the bundles before them are in none. The last may be poisoned."""
    own, none = frozenset([LEVEL]), frozenset[int]()
    marks = [(none, none)] * alone
    for length in lengths:
        marks += [(own if n == 0 else none, own if n == length - 1 else none) for n in range(length)]
    places = [Place(number, *mark) for number, mark in enumerate(marks)]
    if poisoned:
        places[-1] = Place(len(places) - 1, *marks[-1], fault=Cause.INDEX)
    return places


def expected(places: list[Place], config: Config, deals: bool) -> list[tuple[int, int]]:
    """Numbers and contexts in order."""
    if not deals:
        return [(place.number, 0) for place in places]
    dealt = deal(places, LEVEL, config.context_count, config.dealt_bundles)
    return [(place.number, 0 if place.fault else context) for place, context in dealt]


def run(
    places: list[Place], deals: bool, seed: int, idle: float, refuse: float, hold: int = -1, lag: int = 3
) -> list[tuple[int, int]]:
    """What leaves, with random idle and back-pressure; after ``hold`` bundles it waits for 200 cycles.

    ``lag``: cycles from ``take`` to ``valid``.
    """
    chance, dut, left = random.Random(seed), BundleDealer(ODD), []
    ended = []

    async def bench(ctx: SimulatorContext) -> None:
        coming = list(places)
        pipeline: list[Place | None] = [None] * lag
        released: list[int] = []
        pause = 0
        ctx.set(dut.deal, deals)
        for _ in range(200 * len(places) + 4000):
            takes = bool(coming) and bool(ctx.get(dut.ready)) and chance.random() >= idle
            ctx.set(dut.take, takes)
            present = pipeline.pop(0)
            ctx.set(dut.valid, present is not None)
            if present is not None:
                ctx.set(dut.i.fault_level, present.number % 8)
                ctx.set(dut.i.marks, present.number // 8 % 64)
                ctx.set(dut.i.poisoned, present.fault is not None)
                ctx.set(dut.place.begins, LEVEL in present.begin)
                ctx.set(dut.place.ends, LEVEL in present.end)
                ctx.set(dut.place.last, present is places[-1] and present.fault is None)
            if takes:
                entry = ctx.get(dut.take_entry)
                assert entry == coming[0].number % ODD.dealt_bundles
                assert coming[0].number - ODD.dealt_bundles not in held(released), "its entry is still wanted"
            pipeline.append(coming.pop(0) if takes else None)
            pause += len(released) == hold
            ready = chance.random() >= refuse and not (len(released) == hold and pause < 200)
            ctx.set(dut.o.ready, ready)
            ctx.set(dut.settled, ready)
            _, _, valid, payload = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            if valid and ready:
                low = payload.judged.fault_level + 8 * payload.judged.marks
                number = next(n for n in range(low, len(places), 512) if n not in released)
                assert payload.entry == number % ODD.dealt_bundles
                released.append(number)
                left.append((number, 0 if payload.judged.poisoned else payload.judged.context))
            if len(left) == len(places) and ctx.get(dut.empty):
                break
        assert ctx.get(dut.empty)
        ended.append(True)

    def held(released: list[int]) -> set[int]:
        return set(range(len(places))) - set(released)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert ended
    return left


LENGTHS = {
    "one each": [1] * 60,
    "short ones": [1, 2, 3, 1, 1, 3, 2] * 9,
    "a long one among short ones": [2, 200, 1, 1, 2, 3] + [1, 2] * 50,
    "long ones": [130, 115],
    "none but one": [1],
    "as long as the window": [ODD.dealt_bundles * (BLOCKS - 1) // BLOCKS, 20, 1],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize(("idle", "refuse"), [(0.0, 0.0), (0.1, 0.5)])
def test_bundles_are_dealt_in_the_contracts_order(name: str, idle: float, refuse: float) -> None:
    for poisoned in (False, True):
        places = bundles_of(LENGTHS[name], poisoned=poisoned, alone=2)
        assert run(places, True, 3, idle, refuse) == expected(places, ODD, True)


@pytest.mark.parametrize("poisoned", [False, True])
def test_without_dealing_bundles_keep_their_order(poisoned: bool) -> None:
    places = bundles_of(LENGTHS["short ones"], poisoned=poisoned)
    assert run(places, False, 5, 0.2, 0.3) == expected(places, ODD, False)


@pytest.mark.slow
def test_entries_are_kept_while_bundles_wait() -> None:
    """When a long activation ends the window moves far, but what was handed out last may still wait."""
    places = bundles_of([90, *[1] * 300])
    order = expected(places, ODD, True)
    last = order.index((89, 0))
    for hold in (last - 1, last, last + 1):
        assert run(places, True, 7, 0.0, 0.0, hold=hold) == order


@pytest.mark.slow
def test_random_lengths() -> None:
    chance = random.Random(11)
    for seed in range(5):
        longest = chance.choice([3, 20, 60])
        lengths = [chance.randint(1, longest) for _ in range(150 // longest + 8)]
        places = bundles_of(lengths, poisoned=chance.random() < 0.3, alone=chance.choice([0, 1, 5]))
        order = run(places, True, seed, chance.choice([0, 0.4]), chance.choice([0, 0.5]))
        assert order == expected(places, ODD, True)


def test_the_window_lets_a_long_activation_pass() -> None:
    """With a long activation first, the others have gone as far as the window lets them before it is at its end."""
    places = bundles_of([400] + [1] * 300)
    order = [number for number, _ in expected(places, ODD, True)]
    window = ODD.dealt_bundles * (BLOCKS - 1) // BLOCKS
    assert all(
        number < min(set(range(700)) - set(order[:k]), default=700) // ODD.dealt_block * ODD.dealt_block + window
        for k, number in enumerate(order)
    )
    assert order != sorted(order)
