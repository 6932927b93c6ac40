"""cocotb bench of ExecuteUnit: rows of 16-bit elements, popped, stored, and not as they should be."""

import random

import cocotb
import numpy as np

from daedal.hw.isa.elements import UNSTORED
from daedal.hw.isa.instructions import CONVERTED, KEEP, KEPT, OperandKind, VectorOp
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.words import LengthField
from tests.unit.execute_unit.bench_faults import MOVE, Q0, Q1, STORE, check, faulted
from tests.unit.execute_unit.bench_quotients import quotient, run_with
from tests.unit.execute_unit.driver import run
from tests.unit.execute_unit.model import Row
from tests.unit.execute_unit.programs import QUEUE, words
from tests.unit.harness import bench_config

REGISTER1 = {"kind": OperandKind.REGISTER, "number": 1}
ADD = {"op": VectorOp.ADD, "a": Q0, "c": 1, "destination": 1}


def narrow_kinds() -> tuple[LengthField, ...]:
    return tuple(kind for kind in bench_config().length_fields[1:] if kind not in UNSTORED)


@cocotb.test()
@cocotb.parametrize(beats=[1, 3])
async def rows_follow_each_other(dut, beats):
    """Each takes the cycles that it takes in binary32."""
    config = bench_config()
    for kind in narrow_kinds():
        driver = await run(dut, [beats * config.lanes], [[MOVE], [STORE]], [0] * 20 + [1], [kind])
        assert driver.last_beat - driver.first_beat + 1 == 20 * beats


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.5], pause=[0.0, 0.5])
async def every_number_of_elements(dut, idle, pause):
    """Sums that are popped as one type and stored as another."""
    config = bench_config()
    longest = min(6 * config.lanes, config.vl_max)
    kinds = (LengthField.ELEMENTS, *narrow_kinds())
    for elements in range(1, longest + 1):
        lengths = [elements] * len(kinds)
        callbacks = [[ADD | {"length": n}] for n in range(len(kinds))] + [
            [STORE | {"length": n, "clear": n % 2}] for n in range(len(kinds))
        ]
        tokens = [n % len(callbacks) for n in range(5 * len(callbacks))]
        random.Random(elements).shuffle(tokens)
        await run(dut, lengths, callbacks, tokens, kinds, idle=idle, pause=pause)


@cocotb.test()
@cocotb.parametrize(counts=[[0, 1], [7, 1, 511], [513, 0, 3]])
async def quotients_that_are_stored(dut, counts):
    """They are rounded once more, to the type of the length; by each way that a count takes, alone and mixed."""
    config = bench_config()
    kinds = (LengthField.ELEMENTS, *narrow_kinds())
    for elements in (1, 2, config.lanes, 3 * config.lanes - 1, 3 * config.lanes, 3 * config.lanes + 2):
        callbacks = [[ADD | {"length": n}] for n in range(len(kinds))] + [
            [quotient(1, length=n)] for n in range(len(kinds))
        ]
        tokens = [n % len(callbacks) for n in range(3 * len(callbacks))]
        random.Random(elements).shuffle(tokens)
        await run_with(dut, [elements] * len(kinds), callbacks, tokens, counts, kinds, pause=0.3)


@cocotb.test()
@cocotb.parametrize(beats=[1, 3])
async def sums_that_are_rounded(dut, beats):
    """Behind each addition: of what was just written, into the same register or another one; then stored as it is."""
    config = bench_config()
    kinds = (LengthField.ELEMENTS, *narrow_kinds())
    for n in range(len(kinds)):
        lengths = [beats * config.lanes] * len(kinds)
        half = ADD | {"length": n}
        whole = {"op": VectorOp.ROUND, "a": REGISTER1, "destination": 1, "length": n}
        callbacks = [[half, whole], [half, whole | {"destination": 0, "clear": 1}, STORE | {"length": 0}]]
        driver = await run(dut, lengths, callbacks, [0] * 5 + [1, 0, 0, 1], kinds, pause=0.2)
        assert driver.counts["lane_beat"] == 18 * beats
        # Of a row that is popped, of a scalar, and of an empty register.
        others = [{"op": VectorOp.ROUND, "a": a, "destination": 0, "length": n}
                  for a in (Q1, {"kind": OperandKind.SCALAR}, REGISTER1)]  # fmt: skip
        await run(dut, lengths, [[other, STORE | {"length": 0}] for other in others], [0, 1, 2, 0, 1], kinds)


@cocotb.test()
async def rows_that_are_kept(dut):
    """They are kept as binary32, so that they are used with a length of it; two queues are popped in lockstep."""
    config, kind = bench_config(), narrow_kinds()[0]
    keep = {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": KEEP}, "destination": 0}
    use = {"op": VectorOp.ADD, "a": {"kind": QUEUE, "number": KEPT}, "c": 1, "destination": 1, "length": 1}
    both = {"op": VectorOp.MULTIPLY, "a": Q0, "b": Q1, "destination": 1}
    lengths, kinds = [2 * config.lanes] * 2, [kind, LengthField.ELEMENTS]
    await run(dut, lengths, [[keep, both, use, STORE]], [0] * 9, kinds, idle=0.3)


@cocotb.test()
@cocotb.parametrize(value=["more", 0])
async def lengths_that_are_none(dut, value):
    value = bench_config().vl_max + 2 if value == "more" else value
    for kind in narrow_kinds():
        check(await faulted(dut, words([value], [[STORE]], [kind]), [0]), Cause.PROGRAM, Queue.NONE, value)


@cocotb.test()
@cocotb.parametrize(is_narrow=[0, 1], queue=[0, 1])
async def rows_of_another_type(dut, is_narrow, queue):
    """A row of as many elements, of the other size; one with a beat less, or more, of the right one.

    Rows of the second queue are of binary32, whatever the length says.
    """
    config, elements = bench_config(), 2 * bench_config().lanes
    types = [np.uint16 if is_narrow and number in CONVERTED else np.uint32 for number in range(2)]
    right = types[queue]
    wrong = np.uint32 if right is np.uint16 else np.uint16
    kind = narrow_kinds()[-1] if is_narrow else LengthField.ELEMENTS
    code = {"op": VectorOp.MULTIPLY, "a": Q0, "b": Q1, "destination": 1}
    others = [np.ones(elements, wrong), np.ones(elements - 2, right), np.ones(elements + 2, right)]
    others += [np.ones(elements - config.lanes, right), np.ones(elements + config.lanes, right)]
    for other in others:
        rows = {n: [Row(np.ones(elements, types[n])) for _ in range(3)] for n in range(2)}
        rows[queue][1] = Row(other)
        fault = await faulted(dut, words([elements], [[code, STORE]], [kind]), [0, 0, 0], rows)
        check(fault, Cause.FRAMING, (Queue.VECTOR0, Queue.VECTOR1)[queue], elements)
