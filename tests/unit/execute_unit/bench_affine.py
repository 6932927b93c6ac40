"""cocotb bench of ExecuteUnit: rows that are taken with their head, weighted or not, and not as they should be."""

import random

import cocotb
import numpy as np

from daedal.hw.execute_unit.latencies import latencies
from daedal.hw.isa.elements import LENGTH_ELEMENTS, UNSIGNED
from daedal.hw.isa.instructions import Mode, OperandKind, VectorOp
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.words import LengthField
from tests.unit.execute_unit.bench_faults import Q0, STORE, check, faulted
from tests.unit.execute_unit.bench_unsigned import head, quantised, stored
from tests.unit.execute_unit.driver import run
from tests.unit.execute_unit.model import Row
from tests.unit.execute_unit.programs import OWN, words
from tests.unit.harness import bench_config

WEIGHT = {"kind": OperandKind.SCALAR}
MOVE = {"op": VectorOp.MOVE, "a": Q0, "destination": 0}


def affine(length: int, **members: object) -> dict[str, object]:
    """A row added to register 1, with its head."""
    return {"op": VectorOp.AFFINE, "a": Q0, "c": 1, "destination": 1, "length": length} | members


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5])
async def every_number_of_elements(dut, idle, pause):
    """Between rows that are taken in parts, by weights of all kinds, and other operations on what they give."""
    longest = min(96, bench_config().vl_max)
    for elements in range(4, longest + 1, 4):
        lengths, kinds = stored(elements)
        own = {"kind": OWN, "number": 2}
        scalar = {"op": VectorOp.MOVE, "a": WEIGHT, "destination": 2, "mode": Mode.SCALAR}
        callbacks = [[STORE | {"length": 0}]]
        for n in range(1, len(lengths)):
            product = {"op": VectorOp.MULTIPLY, "a": {"number": 1}, "b": WEIGHT, "destination": 1, "length": 0}
            add = {"op": VectorOp.ADD, "a": {"number": 2}, "c": 1, "destination": 1, "length": 0}
            callbacks += [
                [affine(n)],
                [affine(n, b=WEIGHT)],
                [scalar, affine(n, b=own)],
                [*quantised(n), MOVE | {"length": n}],
                [affine(n, b=WEIGHT), product, affine(n, c=0, destination=2), add],
            ]
        tokens = list(range(len(callbacks))) * 2 + [0]
        random.Random(elements).shuffle(tokens)
        await run(dut, lengths, callbacks, [*tokens, 0], kinds, idle=idle, pause=pause)


@cocotb.test()
async def rows_follow_each_other(dut):
    """A row takes a cycle for each of its beats, or two, its head none; short ones wait for the sum before."""
    config = bench_config()
    for beats in (1, 4, 16):
        elements = beats * config.lanes
        if elements > config.vl_max:
            continue
        lengths, kinds = stored(elements)
        for n in range(1, len(lengths)):
            for members in ({}, {"b": WEIGHT}):
                driver = await run(dut, lengths, [[affine(n, **members)], [STORE]], [0] * 20 + [1], kinds)
                took = (driver.last_beat - driver.first_beat + 1) / 20
                # A beat of memory may have less than its share of elements behind a head.
                assert driver.counts["lane_beat"] == 20 * beats
                assert took <= (1 + config.two_pass) * max(beats + 1, latencies(config).loop)


@cocotb.test()
async def rows_of_other_bags_do_not_wait(dut):
    """In two passes over a row the second one waits for the first; a row for another register follows at once."""
    config = bench_config()
    for beats in (1, 4):
        lengths, kinds = stored(beats * config.lanes)
        for n in range(1, len(lengths)):
            callbacks = [[affine(n)], [affine(n, c=2, destination=2)], [STORE]]
            driver = await run(dut, lengths, callbacks, [0, 1] * 10 + [2], kinds)
            took = (driver.last_beat - driver.first_beat + 1) / 20
            passes = max(beats, latencies(config).loop) + beats if config.two_pass else max(beats, 5)
            assert took <= passes + 0.5, (beats, n, took)


@cocotb.test()
async def rows_that_do_not_fit(dut):
    """Too short, too long, without a head, with a part of it taken; of elements that have none."""
    for kind in UNSIGNED:
        elements = 16
        size = LENGTH_ELEMENTS[kind].row_bytes(elements)
        for callback in ([affine(0)], [affine(0, b={"kind": OWN, "number": 2})]):
            for wrong in (size, size + 4, size + 12, 4, 8):
                await _misframed(dut, words([elements], [callback], [kind]), wrong, elements)
        for taken in (1, 2):
            program = words([elements], [[*[head(0)] * taken, affine(0)]], [kind])
            await _misframed(dut, program, size + 8, elements)
    for kind in bench_config().length_fields:
        if kind not in UNSIGNED:
            size = LENGTH_ELEMENTS[kind].row_bytes(16)
            await _misframed(dut, words([16], [[affine(0)]], [kind]), size + 8, 16)


@cocotb.test()
async def what_is_no_instruction(dut):
    """Operands that a whole row cannot have."""
    wrong = (
        {"a": {"number": 1}}, {"a": {"kind": OperandKind.QUEUE, "number": 1}}, {"a": {"kind": OperandKind.QUEUE,
        "number": 4}}, {"b": {"number": 1}}, {"b": {"kind": OperandKind.QUEUE, "number": 1}}, {"mode": Mode.SCALAR},
        {"mode": Mode.REDUCE}, {"a": {"kind": OperandKind.QUEUE, "number": 2}},
    )  # fmt: skip
    for members in wrong:
        fault = await faulted(dut, words([16], [[affine(0, **members)]], [LengthField.UNSIGNED8]), [0])
        assert fault.cause == Cause.PROGRAM, members


async def _misframed(dut, listed, size, value) -> None:
    rows = {0: [Row(np.zeros(size, np.uint8))], 1: []}
    check(await faulted(dut, listed, [0], rows), Cause.FRAMING, Queue.VECTOR0, value)
