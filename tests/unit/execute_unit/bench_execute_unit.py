"""cocotb bench of ExecuteUnit: random programs against the model."""

import random

import cocotb

from daedal.hw.isa.instructions import VectorOp
from tests.unit.execute_unit.driver import Driver
from tests.unit.execute_unit.programs import Code, Generator, run_model, words
from tests.unit.harness import bench_config


def some_callbacks(generator: Generator, most: int) -> list[list[Code]]:
    """Up to ten callbacks, which fit the instruction memory."""
    config = generator.config
    callbacks, room = [], config.instructions
    for _ in range(min(config.callbacks, 10)):
        codes = generator.callback(most)
        if len(codes) <= room:
            callbacks.append(codes)
            room -= len(codes)
    return callbacks or [[{"op": VectorOp.NOP}]]


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5], seed=[1, 2])
async def random_programs(dut, idle, pause, seed):
    config = bench_config()
    rng = random.Random(f"{config.name}{seed}{idle}{pause}")
    generator = Generator(config, rng, longest=min(config.vl_max, 40))
    callbacks = some_callbacks(generator, 4)
    tokens = [rng.randrange(len(callbacks)) for _ in range(60)]
    model = run_model(config, generator.lengths, callbacks, tokens, rng, generator.kinds)
    driver = Driver(dut, config, idle=idle, pause=pause, seed=seed)
    await driver.begin(words(generator.lengths, callbacks, generator.kinds))
    driver.feed(tokens, model)
    await driver.check(model)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5], seed=[1, 2])
async def random_contexts(dut, idle, pause, seed):
    """Tokens of all contexts, each with registers of its own."""
    config = bench_config()
    rng = random.Random(f"contexts{config.name}{seed}{idle}{pause}")
    generator = Generator(config, rng, longest=config.context_beats * config.lanes)
    generator.lengths = [min(n, config.context_beats * config.lanes) for n in generator.lengths]
    callbacks = some_callbacks(generator, 3)
    tokens = [(rng.randrange(len(callbacks)), rng.randrange(config.context_count)) for _ in range(80)]
    model = run_model(config, generator.lengths, callbacks, tokens, rng, generator.kinds)
    driver = Driver(dut, config, idle=idle, pause=pause, seed=seed)
    await driver.begin(words(generator.lengths, callbacks, generator.kinds))
    driver.feed(tokens, model)
    await driver.check(model)
