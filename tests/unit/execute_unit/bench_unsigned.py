"""cocotb bench of ExecuteUnit: rows of unsigned elements with and without heads, and not as they should be."""

import random

import cocotb
import numpy as np

from daedal.hw.isa.elements import LENGTH_ELEMENTS, UNSIGNED, UNSTORED
from daedal.hw.isa.instructions import HEAD, KEEP, KEPT, Mode, OperandKind, VectorOp
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.spec.narrow import patterns_in
from daedal.hw.isa.words import LengthField
from tests.unit.execute_unit.bench_faults import MOVE, Q0, Q1, STORE, check, faulted
from tests.unit.execute_unit.driver import Driver, run
from tests.unit.execute_unit.model import Model, Row
from tests.unit.execute_unit.programs import OWN, QUEUE, words
from tests.unit.harness import bench_config

MOVES = {"op": VectorOp.MOVE, "mode": Mode.SCALAR}


def weighted(length: int) -> list[dict[str, object]]:
    """The same of a row with a weight, which is sent twice."""
    weight = {"kind": OperandKind.SCALAR}
    scale, bias, row = quantised(length)
    return [scale | {"op": VectorOp.MULTIPLY, "b": weight}, bias | {"op": VectorOp.MUL_ADD, "b": weight}, row]


def head(register: int, **members: object) -> dict[str, object]:
    """A number of a head to a scalar register."""
    return MOVES | {"a": {"kind": QUEUE, "number": HEAD}, "destination": register} | members


def quantised(length: int) -> list[dict[str, object]]:
    """A row added to register 1: its scale to scalar register 0, then its bias to all elements."""
    return [
        head(0),
        {"op": VectorOp.ADD, "a": {"kind": QUEUE, "number": HEAD}, "c": 1, "destination": 1, "length": 0},
        {"op": VectorOp.FMA, "a": Q0, "b": {"kind": OWN, "number": 0}, "c": 1,
         "destination": 1, "length": length},
    ]  # fmt: skip


def stored(elements: int) -> tuple[list[int], list[LengthField]]:
    """Lengths of all unsigned types that have so many elements, and of binary32 first."""
    kinds = [kind for kind in UNSIGNED if elements % LENGTH_ELEMENTS[kind].multiple == 0]
    return [elements] * (len(kinds) + 1), [LengthField.ELEMENTS, *kinds]


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5])
async def every_number_of_elements(dut, idle, pause):
    """Quantised rows, and rows without heads between them."""
    config = bench_config()
    longest = min(96, config.vl_max)
    for elements in range(4, longest + 1, 4):
        lengths, kinds = stored(elements)
        callbacks = [[STORE | {"length": 0}]]
        for n in range(1, len(lengths)):
            callbacks += [quantised(n), weighted(n), [MOVE | {"length": n}]]
        tokens = list(range(len(callbacks))) * 2 + [0]
        random.Random(elements).shuffle(tokens)
        await run(dut, lengths, callbacks, [*tokens, 0], kinds, idle=idle, pause=pause)


@cocotb.test()
async def every_code(dut):
    """Every byte, in every place of a beat: each code of each type, beside others of every value."""
    config = bench_config()
    for kind in (kind for kind in config.length_fields if kind in UNSTORED):
        elements = 16
        size = patterns_in(elements, kind)
        lengths, kinds = [elements, elements], [LengthField.ELEMENTS, kind]
        model, codes = Model(config, lengths, kinds), [MOVE | {"length": 1}, STORE | {"length": 0}]
        rows = [np.roll(np.arange(first, first + size), shift) for first in range(0, 256, size) for shift in range(4)]
        for row in rows:
            for code in codes:
                model.execute(code, lambda _, row=row: row, lambda *_: 0)
        driver = Driver(dut, config)
        await driver.begin(words(lengths, [codes], kinds))
        driver.feed([0] * len(rows), model)
        await driver.check(model)


@cocotb.test()
async def both_queues_and_rows_that_are_kept(dut):
    """Rows of the second queue are of binary32, and have no heads."""
    lengths, kinds = stored(bench_config().vl_max // 16 * 16)
    both = {"op": VectorOp.MULTIPLY, "a": Q0, "b": Q1, "destination": 0}
    keep = {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": KEEP}, "destination": 0}
    use = {"op": VectorOp.ADD, "a": {"kind": QUEUE, "number": KEPT}, "c": 1, "destination": 1, "length": 0}
    store = STORE | {"length": 0}
    kept = bench_config().kept_beats * bench_config().lanes >= lengths[0]
    for n in range(1, len(lengths)):
        callback = [head(0), head(3), both | {"length": n}, store]
        callback += [head(0), head(1), keep | {"length": n}, use, store] if kept else []
        await run(dut, lengths, [callback], [0] * 5, kinds, idle=0.3)


@cocotb.test()
async def rows_follow_each_other(dut):
    """A quantised row takes a beat for its scale, and its elements twice; weighted or not."""
    config = bench_config()
    elements = min(16 * config.lanes, config.vl_max)
    lengths, kinds = stored(elements)
    for n in range(1, len(lengths)):
        beats = elements // config.lanes
        for row in (quantised, weighted):
            driver = await run(dut, lengths, [row(n), [STORE]], [0] * 20 + [1], kinds)
            took = (driver.last_beat - driver.first_beat + 1) / 20
            assert took <= (2 * beats + 1 if beats >= 12 else 2 * max(beats, 12))


@cocotb.test()
async def lengths_that_are_none(dut):
    for kind in (kind for kind in bench_config().length_fields if kind in UNSTORED):
        multiple = LENGTH_ELEMENTS[kind].multiple
        move = MOVE | {"length": 0}
        for value in (0, 1, multiple - 1, multiple + 2, bench_config().vl_max + multiple):
            check(await faulted(dut, words([value], [[move]], [kind]), [0]), Cause.PROGRAM, Queue.NONE, value)
        for store in (STORE, {"op": VectorOp.STORE_QUOTIENT, "a": {"number": 1}}):
            fault = await faulted(dut, words([multiple], [[store]], [kind]), [0])
            check(fault, Cause.PROGRAM, Queue.NONE, multiple)


@cocotb.test()
async def rows_that_do_not_fit(dut):
    """Too short, too long, with their head, with half of it taken, of another type behind one; too much of a head."""
    move, one, queue = {"op": VectorOp.MOVE, "a": Q0, "destination": 0}, head(0), 0
    for kind in UNSIGNED:
        elements = 16
        size = LENGTH_ELEMENTS[kind].row_bytes(elements)
        listed = words([elements], [[one, one, move]], [kind])
        for wrong in (size + 4, size + 12):
            await _misframed(dut, listed, [wrong], queue, elements if wrong > 8 else 1)
        await _misframed(dut, words([elements], [[move]], [kind]), [size + 8], queue, elements)
        await _misframed(dut, words([elements], [[one, move]], [kind]), [size + 4], queue, elements)
        await _misframed(dut, words([elements], [[one, one, one, move]], [kind]), [size + 12], queue, 1)
        await _misframed(dut, words([elements], [[one, one, move]], [kind]), [8], queue, 1)
        await _misframed(dut, words([elements], [[one, one, move]], [kind]), [4], queue, 1)
    for kind in bench_config().length_fields:
        if kind not in UNSIGNED:
            size = LENGTH_ELEMENTS[kind].row_bytes(16)
            await _misframed(dut, words([16], [[one, one, move]], [kind]), [size + 8], queue, 16)


async def _misframed(dut, listed, sizes, queue, value) -> None:
    rows = {n: [Row(np.zeros(size, np.uint8)) for size in sizes] if n == queue else [] for n in range(2)}
    check(await faulted(dut, listed, [0], rows), Cause.FRAMING, (Queue.VECTOR0, Queue.VECTOR1)[queue], value)
