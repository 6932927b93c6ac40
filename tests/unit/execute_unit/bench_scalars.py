"""cocotb bench of ExecuteUnit: scalar operations, reductions, rotation, and what overlaps with them."""

import random

import cocotb
import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.isa.instructions import KEEP, KEPT, PARTIAL_SUMS, Mode, VectorOp
from tests.unit.execute_unit.driver import Driver, run
from tests.unit.execute_unit.model import Row
from tests.unit.execute_unit.programs import (
    ON_SCALARS,
    OWN,
    QUEUE,
    REDUCES,
    REGISTER,
    SCALAR,
    SPECIAL,
    WITH_B,
    Code,
    run_model,
    words,
)
from tests.unit.harness import bench_config

Q0, Q1 = {"kind": QUEUE, "number": 0}, {"kind": QUEUE, "number": 1}
ARITHMETIC = [op for op in ON_SCALARS if op is not VectorOp.STORE]


def on_scalars(op: VectorOp, destination: int = 0, a: int = 0, b: int = 0, c: int = 0) -> Code:
    code = {"op": op, "mode": Mode.SCALAR, "destination": destination, "c": c, "a": {"kind": OWN, "number": a}}
    return code | ({"b": {"kind": OWN, "number": b}} if op in WITH_B else {})


def pop(destination: int) -> Code:
    return {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": {"kind": SCALAR}, "destination": destination}


def store(number: int, **more: int) -> Code:
    return {"op": VectorOp.STORE, "mode": Mode.SCALAR, "a": {"kind": OWN, "number": number}, **more}


def reduce(op: VectorOp, destination: int = 0, partial: int = 1) -> Code:
    code = {"op": op, "mode": Mode.REDUCE, "a": Q0, "c": partial, "destination": destination}
    return code | ({"b": Q1} if op in WITH_B else {})


@cocotb.test()
@cocotb.parametrize(op=[op.name for op in ARITHMETIC])
async def every_operation(dut, op):
    """On registers, on corners; the result is stored, and taken by the next instruction at once."""
    named = VectorOp[op]
    codes = [
        pop(0),
        pop(1),
        pop(2),
        on_scalars(named, 3, 0, 1, 2),
        on_scalars(VectorOp.ADD, 2, 3, c=1),
        store(3),
        store(2),
    ]
    model = run_model(bench_config(), [1], [codes], [0] * 30, random.Random(op))
    rng = random.Random(op)
    chosen = [rng.choice((*SPECIAL, 0x40490FDB, 3, 0x41200000, 0xFFFFFFFD)) for _ in model.scalars]
    values = iter(chosen)
    again = type(model)(bench_config(), [1])
    for _ in range(30):
        for code in codes:
            again.execute(code, None, lambda *_: next(values))
    driver = Driver(dut, bench_config())
    await driver.begin(words([1], [codes]))
    driver.feed([0] * 30, again)
    await driver.check(again)


@cocotb.test()
@cocotb.parametrize(op=[op.name for op in REDUCES])
async def reductions_of_any_length(dut, op):
    """Around every number of beats and of partial results; the register of these is empty afterwards."""
    config = bench_config()
    around = [n + off for n in (config.lanes, 8, 16, 32, 48) for off in (-1, 0, 1)]
    lengths = sorted({min(max(n, 1), config.vl_max) for n in [*around, 2, 3, config.vl_max]})
    kept = {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": 1}}
    for first in range(0, len(lengths), config.lengths):
        some = lengths[first : first + config.lengths]
        callbacks = [[reduce(VectorOp[op]) | {"length": n}, kept | {"length": n}, store(0)] for n in range(len(some))]
        if config.octets:
            octets = [[{**codes[0], "octets": 1}, *codes[1:]] for codes in callbacks]
            callbacks = [codes for pair in zip(callbacks, octets, strict=True) for codes in pair]
        callbacks = callbacks[: config.callbacks]
        await run(dut, some, callbacks, list(range(len(callbacks))) * 2)


@cocotb.test()
async def sums_of_two_operands(dut):
    """ADD and SUBTRACT of ``a`` and ``b``, from wherever they are, whatever is in ``c``."""
    config = bench_config()
    b = [Q1, {"kind": REGISTER, "number": 1}, {"kind": OWN, "number": 0}, {"kind": SCALAR}]
    move = [{"op": VectorOp.MOVE, "a": Q0, "destination": n} for n in range(2)]
    out = {"op": VectorOp.STORE, "a": {"kind": REGISTER}}
    for op in (VectorOp.ADD, VectorOp.SUBTRACT):
        callbacks = [[pop(0), *move, {"op": op, "a": Q0, "b": one}, out] for one in b]
        callbacks += [[pop(0), pop(1), on_scalars(op, 2, 0, c=1) | {"b": {"kind": OWN, "number": 1}}, store(2)]]
        for first in range(0, len(callbacks), config.callbacks):
            some = callbacks[first : first + config.callbacks]
            while sum(map(len, some)) > config.instructions:
                some.pop()
            await run(dut, [min(9, config.vl_max)], some, [*range(len(some))] * 3)


@cocotb.test()
async def sums_of_zeros_and_infinities(dut):
    """A row of -0.0 has the sum -0.0, an empty register +0.0; infinities cancel to the one NaN."""
    config = bench_config()
    empty = reduce(VectorOp.ADD) | {"a": {"kind": REGISTER, "number": 0}}
    callbacks = [[reduce(VectorOp.ADD), store(0)], [empty, store(0)], [reduce(VectorOp.MAX), store(0)]]
    tokens, length = [0, 1, 0, 2], min(19, config.vl_max)
    model = run_model(config, [length], callbacks, tokens, random.Random(1))
    mixed = np.full(length, 0x3F800000, np.uint32)
    mixed[[0, -1]] = 0x7F800000, 0xFF800000
    rows = [np.full(length, 1 << 31, np.uint32), mixed, np.full(length, 0x7FC00001, np.uint32)]
    model.rows[0][:] = [Row(one) for one in rows]
    for stored, bits in zip(model.stores, (1 << 31, 0, 0x7FC00000, 0xFF800000), strict=True):
        stored.bits[:] = bits
    driver = Driver(dut, config)
    await driver.begin(words([length], callbacks))
    driver.feed(tokens, model)
    await driver.check(model)


def cycles_of_a_row(config: Config, beats: int) -> int:
    """Beats of a row that is reduced and of its tree, or its rounds if they are slower."""
    partials = min(PARTIAL_SUMS // config.lanes, 1 << (beats - 1).bit_length())
    tree = sum(max(1, (partials * config.lanes >> level) // config.lanes)
               for level in range(1, (partials * config.lanes).bit_length()))  # fmt: skip
    rounds = (-(-beats // partials) - 1) * max(partials, latencies(config).loop) + partials
    return max(beats + tree, rounds)


@cocotb.test()
async def time_of_reductions(dut):
    """One behind the other, each into a scalar register of its own: as many cycles as all their beats."""
    config, count = bench_config(), 60
    beats = min(64, config.vl_max) // config.lanes
    driver = await run(dut, [beats * config.lanes], [[reduce(VectorOp.FMA) | {"rotate_scalars": 1}]], [0] * count)
    period = (driver.last_beat - driver.first_beat + 1) / count
    under_way = max(1, config.register_beats * config.lanes // PARTIAL_SUMS)
    places = min(under_way, config.rotating_scalars)
    least = max(cycles_of_a_row(config, beats), (beats + 5 * latencies(config).read_after_write) / places)
    cocotb.log.info("a reduction of %d beats every %.1f cycles", beats, period)
    assert period <= 1.1 * least + 2, (period, least)


@cocotb.test()
async def time_of_stored_reductions(dut):
    """Each number is stored at once, which keeps nothing waiting."""
    config, count = bench_config(), 60
    beats = min(64, config.vl_max) // config.lanes
    codes = [reduce(VectorOp.FMA), store(0, rotate_scalars=1)]
    driver = await run(dut, [beats * config.lanes], [codes], [0] * count)
    if config.rotating_scalars == 8 and config.lanes == 4:
        assert (driver.last_beat - driver.first_beat + 1) / count <= 1.15 * cycles_of_a_row(config, beats)


@cocotb.test()
async def time_of_rows_that_others_weigh(dut):
    """A row is weighed by the number that the reduction three callbacks ago gave: all lanes are busy."""
    config, count = bench_config(), 40
    if config.rotating_scalars < 4 or config.vector_registers < 4:
        return
    beats = min(64, config.vl_max) // config.lanes
    row, last = {"kind": QUEUE, "number": 1}, config.vector_registers - 1
    dot = {"op": VectorOp.ADD, "mode": Mode.REDUCE, "a": Q0, "c": last, "destination": 0}
    weigh = {"op": VectorOp.FMA, "a": row, "b": {"kind": OWN, "number": 3}, "c": last - 1, "destination": last - 1,
             "rotate_scalars": 1}  # fmt: skip
    out = {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": last - 1}, "clear": 1}
    driver = await run(dut, [beats * config.lanes], [[dot, weigh], [out]], [0] * count + [1])
    if config.lanes == 4 and config.register_beats > 16:
        assert (driver.last_beat - driver.first_beat + 1) / count <= 1.1 * (cycles_of_a_row(config, beats) + beats)


@cocotb.test()
@cocotb.parametrize(apart=[0, 1, 4])
async def time_of_rows_that_are_kept(dut, apart):
    """A row is weighed by its own sum, so many callbacks later; if these are enough all lanes are busy."""
    config, count = bench_config(), 40
    if config.rotating_scalars <= apart or config.vector_registers < 4 or not config.kept_beats:
        return
    beats = min(64 // config.lanes, config.vl_max // config.lanes, config.kept_beats // (apart + 1))
    last = config.vector_registers - 1
    dot = {"op": VectorOp.ADD, "mode": Mode.REDUCE, "a": {"kind": QUEUE, "number": KEEP}, "c": last, "destination": 0}
    weigh = {"op": VectorOp.MUL_ADD, "c": last - 1, "destination": last - 1}

    def kept(beyond: int, name: int) -> Code:
        operands = {"a": {"kind": QUEUE, "number": KEPT + beyond}, "b": {"kind": OWN, "number": name}}
        return weigh | operands

    out = {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": last - 1}, "clear": 1}
    callbacks = [
        [dot, kept(apart, apart) | {"rotate_scalars": 1}],
        [*(kept(name - 1, name) for name in range(apart, 0, -1)), out],
    ]
    driver = await run(dut, [beats * config.lanes], callbacks, [*[0] * count, 1, 1, 0, 1])
    if config.lanes == 4 and apart == 4 and beats == 16:
        assert (driver.last_beat - driver.first_beat + 1) / count <= 1.1 * (beats + beats + 5) + 5


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.4], seed=[1, 2, 3])
async def reductions_of_all_lengths_in_a_row(dut, idle, seed):
    """Of every operation and length in any order, in any context, with those that use, overwrite and store the result
    and those that need the register of the partial results right behind, and others between.
    """
    config, rng = bench_config(), random.Random(seed)
    share = config.context_beats * config.lanes
    around = [1, 2, config.lanes, config.lanes + 1, 3 * config.lanes, 15, 16, 17, 33, share - 1, share, share + 1]
    lengths = sorted({min(max(n, 1), config.vl_max) for n in around})
    lengths = rng.sample(lengths, min(len(lengths), config.lengths))
    partial, other = config.vector_registers - 1, config.vector_registers - 2
    callbacks = []
    for _ in range(config.callbacks):
        codes, room = [], config.instructions // config.callbacks
        while len(codes) < min(room, 5):
            place = rng.randrange(min(3, config.scalars))
            length = rng.randrange(len(lengths))
            codes.append(rng.choice((
                reduce(rng.choice(REDUCES), place, partial) | {"length": length},
                reduce(rng.choice(REDUCES), place, partial) | {"length": length, "octets": int(config.octets)},
                reduce(rng.choice(REDUCES), place, partial) | {"length": length, "rotate_scalars": 1},
                reduce(rng.choice(REDUCES), place, rng.choice((partial, other))) | {"length": length},
                on_scalars(VectorOp.ADD, place, rng.randrange(min(3, config.scalars)), c=place),
                on_scalars(VectorOp.DIVIDE, place, place, rng.randrange(config.scalars)),
                store(place), store(place, clear=1),
                {"op": VectorOp.MOVE, "a": Q0, "destination": other, "length": 0},
                {"op": VectorOp.MULTIPLY, "a": Q1, "b": {"kind": OWN, "number": place}, "destination": partial},
                {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": rng.choice((partial, other))}, "clear": 1},
            )))  # fmt: skip
        callbacks.append(codes)
    fits = [max(lengths[code.get("length", 0)] for code in codes) <= share for codes in callbacks]
    tokens = [(n, rng.randrange(config.context_count) if fits[n] else 0) for n in
              (rng.randrange(len(callbacks)) for _ in range(80))]  # fmt: skip
    # Registers are read no further than they were written.
    await run(dut, lengths, callbacks, tokens, idle=idle, pause=idle)


@cocotb.test()
async def others_overtake_the_iterative_unit(dut):
    """While a root is computed rows are accumulated at full rate; the root's user waits."""
    config = bench_config()
    beats = min(8, config.register_beats)
    add = {"op": VectorOp.ADD, "a": Q0, "c": 0, "destination": 0}
    codes = [pop(0), on_scalars(VectorOp.SQUARE_ROOT, 1, 0), add, add, add, store(1)]
    driver = await run(dut, [beats * config.lanes], [codes], [0])
    assert (
        driver.last_beat - driver.first_beat
        <= latencies(config).read_after_write + 3 * max(beats, latencies(config).loop) + 4
    )


@cocotb.test()
@cocotb.parametrize(stores=[1, 3])
async def stored_scalars_do_not_wait_for_later_rows(dut, stores):
    """What a row pops may come only when the scalars before it are in memory."""
    config, rng = bench_config(), random.Random(stores)
    moves = [code for n in range(stores) for code in (pop(n), store(n))][: config.instructions - 2]
    codes = [*moves, {"op": VectorOp.MOVE, "a": Q1, "destination": 0}, {"op": VectorOp.STORE, "destination": 0}]
    model = run_model(config, [config.lanes], [codes], [0], rng)
    driver = Driver(dut, config)
    await driver.begin(words([config.lanes], [codes]))
    driver.sources["scalars"].start([{"value": value} for value in model.scalars])
    driver.sources["tokens"].start([{"callback": 0, "context": 0}])
    await driver.sink.wait(len(moves) // 2)
    driver.feed_rows(1, model.rows[1])
    await driver.check(model)


@cocotb.test()
async def rows_overlap_by_rotation(dut):
    """Each callback fetches a row and scales the one before, so that none waits for its own result."""
    config, rows = bench_config(), 12
    if config.rotating_registers < 2:
        return
    beats, last = min(8, config.register_beats), config.vector_registers - 1
    fetch = {"op": VectorOp.MULTIPLY, "a": Q0, "b": Q1, "destination": 0}
    add = {"op": VectorOp.ADD, "a": {"kind": REGISTER, "number": 1}, "c": last, "destination": last, "rotate": 1}
    out = {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": last}}
    driver = await run(dut, [beats * config.lanes], [[fetch, add], [out]], [0] * rows + [1])
    if 2 * beats >= latencies(config).read_after_write:
        assert driver.last_beat - driver.first_beat + 1 == 2 * beats * rows


@cocotb.test()
async def rotation_of_every_context(dut):
    """Each context has names of its own; a launch begins with the registers' own numbers."""
    config = bench_config()
    around, contexts = config.rotating_registers, config.context_count
    move = {"op": VectorOp.MOVE, "a": Q0, "destination": 0, "rotate": 1}
    callbacks = [[move], *([{"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": n}}] for n in range(around))]
    rng = random.Random(3)
    tokens = [(rng.randrange(2), rng.randrange(contexts)) for _ in range(20)]
    tokens += [(1 + n, context) for n in range(min(around, config.callbacks - 1)) for context in range(contexts)]
    driver = await run(dut, [1], callbacks[: config.callbacks], tokens)
    await driver.load(words([1], callbacks[: config.callbacks]))
    driver.sink.got.clear()
    driver.counts["lane_beat"] = 0
    model = run_model(config, [1], callbacks, [0, 1], rng)
    driver.feed([0, 1], model)
    await driver.check(model)


@cocotb.test()
async def scalars_are_empty_at_a_launch(dut):
    config, rng = bench_config(), random.Random(4)
    largest = on_scalars(VectorOp.MAX, 1, 0, c=1)
    codes = [[pop(0), largest, store(1)], [largest, store(1), store(0, clear=1), store(0)]]
    driver = await run(dut, [1], codes, [1, 0, 0, 1])
    await driver.load(words([1], codes))
    driver.sink.got.clear()
    driver.counts["lane_beat"] = 0
    model = run_model(config, [1], codes, [1, 0, 1], rng)
    driver.feed([1, 0, 1], model)
    await driver.check(model)


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.4], pause=[0.0, 0.5])
async def edges_of_a_graph(dut, idle, pause):
    """The dot product of two rows scales the first, which is accumulated: row by row."""
    config = bench_config()
    keep = [{"op": VectorOp.MOVE, "a": Q0, "destination": 0}, {"op": VectorOp.MOVE, "a": Q1, "destination": 1}]
    dot = {"op": VectorOp.FMA, "mode": Mode.REDUCE, "a": {"kind": REGISTER}, "b": {"kind": REGISTER, "number": 1},
           "c": 2, "destination": 0}  # fmt: skip
    weigh = {"op": VectorOp.FMA, "a": {"kind": REGISTER}, "b": {"kind": OWN}, "c": 2, "destination": 2}
    if config.vector_registers < 4:
        return
    dot["c"] = 3
    out = {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": 2}, "clear": 1}
    length = [min(33, config.context_beats * config.lanes)]
    await run(dut, length, [[*keep, dot, weigh], [out]], [0, 0, 0, 1, 0, 1], idle=idle, pause=pause)
