"""cocotb bench of ExecuteUnit: throughput, empty registers, division, stalls, halting."""

import random

import cocotb
from cocotb.triggers import RisingEdge

from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.operations import OPERATIONS
from tests.unit.execute_unit.driver import Driver, run
from tests.unit.execute_unit.programs import ON_ROWS, QUEUE, REGISTER, SCALAR, WITH_B, Code, run_model, words
from tests.unit.harness import bench_config

Q0, Q1 = {"kind": QUEUE, "number": 0}, {"kind": QUEUE, "number": 1}


def accumulate(register: int = 0, **more: object) -> Code:
    return {"op": VectorOp.ADD, "a": Q0, "c": register, "destination": register, **more}


def store(register: int = 0, **more: object) -> Code:
    return {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": register}, **more}


def beat_cycles(driver: Driver) -> int:
    """Cycles from the first to the last beat in the lanes, both included."""
    return driver.last_beat - driver.first_beat + 1


@cocotb.test()
async def moves_and_stores(dut):
    config = bench_config()
    move = {"op": VectorOp.MOVE, "a": Q0, "destination": 1}
    await run(dut, [config.lanes + 1], [[move, store(1)]], [0] * 5)


@cocotb.test()
@cocotb.parametrize(beats=[8, 7, 6, 5])
async def accumulates_at_one_beat_per_cycle(dut, beats):
    """Bags of rows at least as long as the loop, each ended by a callback that stores: not a cycle lost."""
    config = bench_config()
    tokens = ([0] * 7 + [1]) * 8
    driver = await run(dut, [beats * config.lanes], [[accumulate()], [store(clear=1)]], tokens)
    assert beat_cycles(driver) == 8 * 7 * beats, driver.counts
    assert driver.counts["stall_hazard"] == 0


@cocotb.test()
@cocotb.parametrize(beats=[1, 2, 4])
async def short_rows_wait_for_the_loop(dut, beats):
    config = bench_config()
    rows = 20
    driver = await run(dut, [beats * config.lanes], [[accumulate()], [store()]], [0] * rows + [1])
    assert beat_cycles(driver) == (rows - 1) * latencies(bench_config()).loop + beats
    assert driver.counts["stall_hazard"] == (rows - 1) * (latencies(bench_config()).loop - beats)


@cocotb.test()
@cocotb.parametrize(beats=[1, 2])
async def interleaved_bags(dut, beats):
    """Short rows of as many bags as there are contexts, in turn: at one beat per cycle if these fill the loop."""
    config = bench_config()
    contexts, rows = config.context_count, 12
    tokens = [(0, context) for _ in range(rows) for context in range(contexts)]
    tokens += [(1, context) for context in range(contexts)]
    driver = await run(dut, [beats * config.lanes], [[accumulate()], [store(clear=1)]], tokens)
    turn = contexts * beats
    assert beat_cycles(driver) == (rows - 1) * max(turn, latencies(bench_config()).loop) + turn, driver.counts


@cocotb.test()
async def short_rows_behind_a_long_one(dut):
    """A stored row that fills a whole register is read to its end before bags in turn write their parts of it."""
    config = bench_config()
    contexts = config.context_count
    whole = {"op": VectorOp.MOVE, "a": Q0, "destination": 0}
    short, lengths = {"length": 1}, [config.register_beats * config.lanes, config.lanes]
    callbacks = [[whole, store(clear=1)], [accumulate() | short], [store(clear=1, **short)]]
    tokens = [(0, 0)]
    for turn in (range(contexts), reversed(range(contexts))):
        tokens += [token for context in turn for token in ((1, context), (1, context), (2, context))] + [(0, 0)]
    await run(dut, lengths, callbacks, tokens)


@cocotb.test()
@cocotb.parametrize(shortest=[0, 1])
async def rows_of_contexts_within_a_long_one(dut, shortest):
    """A context's part of a register is read right after a long row wrote it, the long row after the context did."""
    config = bench_config()
    contexts = config.context_count
    long = min(config.context_beats + 1, config.register_beats) if shortest else config.register_beats
    own = {"kind": REGISTER, "number": 0}
    whole, short = {"op": VectorOp.MOVE, "a": Q0, "destination": 0}, {"length": 1}
    copy = {"op": VectorOp.MOVE, "a": own, "destination": 1}
    callbacks = [
        [whole], [accumulate()], [accumulate() | short], [copy | short, store(1, **short)], [store()], [store(**short)],
    ]  # fmt: skip
    tokens = [(0, 0)] + [(2, context) for context in range(contexts)]
    for context in range(contexts):
        for use in (2, 3):
            tokens += [(0, 0), (use, context), (5, context), (1, 0), (use, context), (1, 0), (4, 0)]
    await run(dut, [long * config.lanes, config.lanes], callbacks, tokens)


@cocotb.test()
async def one_token_per_cycle(dut):
    """Callbacks of one instruction on one beat, each for a register of its own."""
    registers = 8
    callbacks = [[accumulate(n)] for n in range(registers)] + [[store(n)] for n in range(registers)]
    tokens = list(range(registers)) * 10 + list(range(registers, 2 * registers))
    driver = await run(dut, [1], callbacks, tokens)
    assert beat_cycles(driver) == registers * 10


@cocotb.test()
async def bags_of_one_row(dut):
    """Two tokens for each row, so two cycles: the store costs its token, the empty accumulator no wait."""
    driver = await run(dut, [1], [[accumulate()], [store(clear=1)]], [0, 1] * 20)
    assert beat_cycles(driver) == 39


@cocotb.test()
async def gathers_at_full_rate(dut):
    """A copy of one-beat rows: both instructions take a cycle in front of the lanes."""
    move = {"op": VectorOp.MOVE, "a": Q0, "destination": 1}
    config = bench_config()
    driver = await run(dut, [2 * config.lanes], [[move, store(1)]], [0] * 20)
    assert beat_cycles(driver) == 40


@cocotb.test()
async def empty_registers(dut):
    """An empty bag is +0.0; a maximum starts with its first row, a sum with +0.0, also for -0.0."""
    config = bench_config()
    length = [config.lanes + 1]
    largest = {"op": VectorOp.MAX, "a": Q0, "c": 1, "destination": 1}
    negated = {
        "op": VectorOp.SUBTRACT,
        "a": {"kind": REGISTER, "number": 2},
        "c": 3,
        "destination": 4,
        "clear": 1,
    }
    nothing = {"op": VectorOp.NOP, "a": {"kind": REGISTER, "number": 1}, "clear": 1}
    callbacks = [
        [store()],
        [largest, nothing],
        [store(1, clear=1)],
        [accumulate()],
        [store(clear=1)],
        [negated, store(4)],
    ]
    tokens = [0, 2, 5, 1, 2, 1, 1, 1, 2, 3, 4, 0, 2]
    rng = random.Random(3)
    model = run_model(config, length, callbacks, tokens, rng)
    driver = Driver(dut, config)
    await driver.begin(words(length, callbacks))
    driver.feed(tokens, model)
    await driver.check(model)
    await driver.load(words(length, callbacks))  # a new launch finds all registers empty
    driver.sink.got.clear()
    driver.counts["lane_beat"] = 0
    again = run_model(config, length, callbacks, [5, 0, 1, 4], rng)
    driver.feed([5, 0, 1, 4], again)
    await driver.check(again)


@cocotb.test()
async def negative_zero_bags(dut):
    """A sum of -0.0 is +0.0: it starts from the empty register's zero."""
    config = bench_config()
    model = run_model(config, [1], [[accumulate(), store()]], [0], random.Random(1))
    model.rows[0][0].bits[:] = 1 << 31
    model.stores[0].bits[:] = 0
    driver = Driver(dut, config)
    await driver.begin(words([1], [[accumulate(), store()]]))
    driver.feed([0], model)
    await driver.check(model)


@cocotb.test()
@cocotb.parametrize(in_place=[0, 1], beats=[1, 3, 0])
async def divides(dut, in_place, beats):
    """Sums divided by counts, 0 among them, from registers that may be empty, while rows are stored. 0: the longest,
    which are still under way when the next division has its reciprocal.
    """
    config = bench_config()
    beats = beats or config.register_beats
    result = 0 if in_place else 2
    divide = {"op": VectorOp.DIVIDE_COUNT, "a": {"kind": REGISTER, "number": 0}, "destination": result,
              "clear": 1}  # fmt: skip
    callbacks = [[accumulate()], [divide, store(result, clear=1)]]
    tokens = [0, 0, 0, 1, 1, 0, 1] * 6
    await run(dut, [beats * config.lanes - 1], callbacks, tokens)


@cocotb.test()
@cocotb.parametrize(name=[op.name for op in ON_ROWS if op is not VectorOp.NOP and not OPERATIONS[op].register_a])
async def every_operation_on_rows(dut, name):
    """Into an empty register, and with the row that is in it."""
    op = VectorOp[name]
    code = {"op": op, "a": Q0, "c": 1, "destination": 1, **({"b": Q1} if op in WITH_B else {})}
    await run(dut, [bench_config().lanes + 1], [[code], [store(1, clear=1)]], [0, 1, 0, 0, 1, 0, 0, 0, 1])


@cocotb.test()
async def scalars_are_popped_once(dut):
    config = bench_config()
    weighted = {"op": VectorOp.FMA, "a": Q0, "b": {"kind": SCALAR}, "c": 0, "destination": 0}
    product = {"op": VectorOp.MUL_ADD, "a": Q0, "b": Q1, "c": 0, "destination": 0, "last": 0}
    callbacks = [[weighted], [product, store(clear=1)]]
    driver = await run(dut, [5 * config.lanes], callbacks, ([0] * 4 + [1]) * 4)
    assert beat_cycles(driver) == 4 * 5 * 5


@cocotb.test()
async def stores_wait_for_room(dut):
    """With nobody to take the stores the queue fills, the unit stalls and says so; then all goes on."""
    config = bench_config()
    move = {"op": VectorOp.MOVE, "a": Q0, "destination": 1}
    length, tokens = [config.vl_max], [0] * (config.store_beats // config.register_beats + 4)
    model = run_model(config, length, [[move, store(1)]], tokens, random.Random(2))
    driver = Driver(dut, config, pause=1.0)
    await driver.begin(words(length, [[move, store(1)]]))
    driver.feed(tokens, model)
    for _ in range(8 * config.store_beats):
        await RisingEdge(dut.clk)
    assert driver.counts["stall_store_full"] > config.store_beats
    assert not dut.idle.value
    full_rows = config.store_beats // config.register_beats
    assert int(dut.report__mark_store_data.value) == full_rows * config.register_beats
    driver.sink.pause = 0.0
    await driver.check(model)


@cocotb.test()
async def says_why_it_waits(dut):
    config = bench_config()
    weighted = {"op": VectorOp.FMA, "a": Q0, "b": {"kind": SCALAR}, "c": 0, "destination": 0}
    model = run_model(config, [1], [[weighted, store()]], [0], random.Random(2))
    driver = Driver(dut, config)
    await driver.begin(words([1], [[weighted, store()]]))
    waits = []
    for give in (
        lambda: driver.sources["tokens"].start([{"callback": 0}]),
        lambda: driver.sources["scalars"].start([{"value": model.scalars[0]}]),
        lambda: driver.feed_rows(0, model.rows[0]),
    ):
        before = dict(driver.counts)
        for _ in range(20):
            await RisingEdge(dut.clk)
        waits.append({name for name, count in driver.counts.items() if count - before[name] > 8})
        give()
    assert waits == [{"stall_token_empty"}, {"stall_scalar_empty"}, {"stall_vector_empty"}]
    await driver.check(model)


@cocotb.test()
async def halts(dut):
    config = bench_config()
    callbacks, tokens = [[accumulate()], [store()]], [0] * 10 + [1]
    model = run_model(config, [3 * config.lanes], callbacks, tokens, random.Random(2))
    driver = Driver(dut, config)
    await driver.begin(words([3 * config.lanes], callbacks))
    driver.feed(tokens, model)
    for _ in range(20):
        await RisingEdge(dut.clk)
    dut.halt.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    before = driver.counts["lane_beat"]
    for _ in range(40):
        await RisingEdge(dut.clk)
        assert not dut.tokens__ready.value
        assert not dut.vector0__ready.value
    assert 0 < before == driver.counts["lane_beat"] < model.beats
    dut.halt.value = 0
    await driver.check(model)
