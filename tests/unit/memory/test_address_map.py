"""The hardware's mapping of addresses, and back: an error is reported at the program's address."""

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator

from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import CLASSES, in_class
from daedal.hw.memory.address_map import memory_value, program_value
from tests.reference.mapping import memory_place
from tests.unit.harness import CONFIGS


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_there_and_back(config: Config) -> None:
    rng, m = random.Random(1), Module()
    address, there, back = (Signal(config.address_bits, name=name) for name in ("address", "there", "back"))
    m.d.comb += [there.eq(memory_value(address, config)), back.eq(program_value(there, config))]
    moved = set()

    async def bench(ctx):
        for mapping in range(CLASSES):
            for _ in range(200):
                value = in_class(rng.getrandbits(rng.choice((16, 24, config.place_bits - 1))), mapping, config)
                ctx.set(address, value)
                await ctx.delay(1e-9)
                assert ctx.get(back) == value
                place = value % (1 << config.place_bits)
                assert ctx.get(there) == in_class(memory_place(place, mapping, config), mapping, config)
                if ctx.get(there) != value:
                    moved.add(mapping)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert len(moved) > 1 or config.banks == 1
