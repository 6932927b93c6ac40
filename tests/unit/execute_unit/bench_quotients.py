"""cocotb bench of ExecuteUnit: divisions by counts whose quotients are stored."""

import random
from collections.abc import Sequence

import cocotb

from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.words import LengthField
from tests.unit.execute_unit.bench_directed import accumulate, beat_cycles, store
from tests.unit.execute_unit.driver import Driver, run
from tests.unit.execute_unit.model import Model
from tests.unit.execute_unit.programs import QUEUE, REGISTER, Code, Token, row, words
from tests.unit.harness import bench_config


def quotient(register: int = 0, **more: object) -> Code:
    return {"op": VectorOp.STORE_QUOTIENT, "a": {"kind": REGISTER, "number": register}, **more}


def divide(register: int = 0, destination: int = 0, **more: object) -> Code:
    own = {"kind": REGISTER, "number": register}
    return {"op": VectorOp.DIVIDE_COUNT, "a": own, "destination": destination, "clear": 1, **more}


def means(config: Config, rows: list[int], bags: int) -> list[Token]:
    """Bags of so many rows each, by turns, in as many contexts as the machine has; a bag follows at once."""
    contexts = config.context_count
    left, begun = [rows[n % len(rows)] for n in range(contexts)], contexts
    tokens: list[Token] = []
    while any(left):
        for context in range(contexts):
            if not left[context]:
                continue
            tokens.append((0, context))
            left[context] -= 1
            if not left[context]:
                tokens.append((1, context))
                left[context], begun = (rows[begun % len(rows)], begun + 1) if begun < bags else (0, begun)
    return tokens


async def run_with(dut, lengths: list[int], callbacks: list[list[Code]], tokens: list[Token], counts: list[int],
                   kinds: Sequence[LengthField] | None = None, **options: float) -> Driver:  # fmt: skip
    """Run the tokens with these counts, over and over; the bits above a count are any."""
    config, rng = bench_config(), random.Random(11)
    model, drawn = Model(config, lengths, kinds), 0

    def count(is_count: bool, below: int) -> int:
        nonlocal drawn
        drawn += 1
        return counts[(drawn - 1) % len(counts)] | rng.getrandbits(16) << 24

    for token in tokens:
        callback, context = token if isinstance(token, tuple) else (token, 0)
        for code in callbacks[callback]:
            model.execute(code, lambda elements: row(rng, elements), count, context)
    driver = Driver(dut, config, **options)
    await driver.begin(words(lengths, callbacks, kinds))
    driver.feed(tokens, model)
    await driver.check(model)
    return driver


@cocotb.test()
@cocotb.parametrize(beats=[1, 2, 4], rotates=[0, 1], idle=[0.0, 0.4])
async def means_of_bags_by_turns(dut, beats, rotates, idle):
    """Each count is another one, of all kinds: a bag that got its neighbour's would be wrong."""
    config = bench_config()
    beats = min(beats, config.context_beats)
    callbacks = [[accumulate()], [quotient(rotate=rotates)]]
    counts = [3, 1, 5, 700, 2, 0, 511, 512, 7, (1 << 24) - 1, 6, 1 << 20, 510]
    tokens = means(config, [3, 1, 2, 5, 1], 40)
    await run_with(dut, [beats * config.lanes - 1], callbacks, tokens, counts, idle=idle, pause=idle)


@cocotb.test()
@cocotb.parametrize(beats=[1, 3])
async def passes_of_several_bags_overlap(dut, beats):
    """A bag of three rows takes the beats of four, and not a cycle for the result of the last one."""
    config = bench_config()
    beats, bags = min(beats, config.context_beats), 64
    callbacks = [[accumulate()], [quotient(rotate=1)]]
    driver = await run_with(dut, [beats * config.lanes], callbacks, means(config, [3], bags), [3])
    if config.context_count == 8:
        assert beat_cycles(driver) < 1.1 * bags * max(4 * beats, 4) + 30, driver.counts


@cocotb.test()
async def bags_of_one_row_take_no_pass(dut):
    """Two tokens for each row, as for a sum."""
    config = bench_config()
    callbacks = [[accumulate()], [quotient(rotate=1)]]
    driver = await run_with(dut, [config.lanes], callbacks, means(config, [1], 40), [1])
    assert beat_cycles(driver) <= 2 * 40, (beat_cycles(driver), driver.counts)


@cocotb.test()
@cocotb.parametrize(count=[2, 9, 511, 512, 777, 70_001, (1 << 24) - 1])
async def a_long_row_takes_one_pass_or_two(dut, count):
    """Rows that fill a register follow each other without a gap but for the division."""
    config = bench_config()
    beats, bags, rows = config.register_beats, 4, 3
    callbacks = [[accumulate()], [quotient(rotate=1)]]
    driver = await run_with(dut, [beats * config.lanes], callbacks, ([0] * rows + [1]) * bags, [count])
    passes = 1 if count < 512 else 2
    if config.register_beats >= 16 and count < 512:
        assert beat_cycles(driver) <= (rows * bags + passes * (bags - 1)) * beats + 20, driver.counts


@cocotb.test()
async def what_comes_behind_a_quotient(dut):
    """Its register written again, also by a long row; stores, and divisions that stay in a register, in their order."""
    config = bench_config()
    short, lengths = {"length": 1}, [config.register_beats * config.lanes, config.lanes]
    own = {"kind": REGISTER, "number": 0}
    whole = {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": 0}, "destination": 0}
    copy = {"op": VectorOp.MOVE, "a": own, "destination": 1}
    callbacks = [
        [accumulate() | short], [quotient(**short)], [whole], [quotient()], [store(**short)], [divide(**short)],
        [divide(0, 1, **short), store(1, clear=1, **short)], [copy | short, store(1, **short)], [store()],
    ]  # fmt: skip
    rng, contexts = random.Random(5), config.context_count
    tokens: list[Token] = []
    for _ in range(150):
        callback = rng.choice([0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8])
        tokens.append((callback, 0 if callback in (2, 3, 8) else rng.randrange(contexts)))
    tokens = [(2, 0), *((0, context) for context in range(contexts)), *tokens]
    await run_with(dut, lengths, callbacks, tokens, [3, 1, 7, 600, 2])


@cocotb.test()
async def empty_bags(dut):
    """No rows: +0.0, whatever the count is."""
    await run(dut, [bench_config().lanes], [[accumulate()], [quotient()]], [1, 0, 1, 1, 1, 0, 0, 1, 1] * 5)
