"""cocotb bench of ExecuteUnit: every fault, with what it reports, and that nothing goes on after it."""

import random

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from daedal.hw.isa.instructions import KEEP, KEPT, Mode, VectorOp
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import CallbackField, InstructionField, LengthField
from tests.unit.execute_unit.driver import Driver
from tests.unit.execute_unit.model import Row
from tests.unit.execute_unit.programs import OWN, QUEUE, REGISTER, SCALAR, row, run_model, words
from tests.unit.harness import bench_config

Q0, Q1 = {"kind": QUEUE, "number": 0}, {"kind": QUEUE, "number": 1}
MOVE = {"op": VectorOp.MOVE, "a": Q0, "destination": 1}
STORE = {"op": VectorOp.STORE, "a": {"kind": REGISTER, "number": 1}}


async def faulted(dut, config_words: list[Word], tokens: list[int], rows: dict[int, list[Row]] | None = None,
                  *, late: int = 0):  # fmt: skip
    """Run until the fault, rows coming ``late`` cycles after the tokens; then nothing must move any more.

    Returns the fault.
    """
    driver = Driver(dut, bench_config(), pause=0.2)
    await driver.begin(config_words)
    driver.sources["tokens"].start([{"callback": token} for token in tokens])
    for _ in range(late):
        await RisingEdge(dut.clk)
    for queue, given in (rows or {}).items():
        driver.feed_rows(queue, given)
    fault = await driver.fault()
    assert not any(getattr(dut, f"{name}__ready").value for name in ("tokens", "vector0", "vector1"))
    before = dict(driver.counts)
    for _ in range(30):
        await RisingEdge(dut.clk)
    assert driver.counts == before
    return fault


def check(fault, cause: Cause, queue: Queue, value: int) -> None:
    assert (fault.cause, fault.queue, fault.value) == (cause, queue, value)
    assert (fault.address, fault.level) == (0, 0)


@cocotb.test()
@cocotb.parametrize(token=[1, 15, 16, 63])
async def tokens_without_callback(dut, token):
    fault = await faulted(dut, words([1], [[STORE]]), [0, 0, token, 0])
    check(fault, Cause.PROGRAM, Queue.TOKEN, token)


@cocotb.test()
@cocotb.parametrize(launches=[1, 2, 3])
async def callbacks_of_an_earlier_launch(dut, launches):
    """The two sides have tables of their own: it may have been the launch before, or the one before that."""
    config = bench_config()
    driver = Driver(dut, config)
    for number in range(launches):
        model = run_model(config, [1], [[STORE]], [0], random.Random(1))
        await (driver.load if number else driver.begin)(words([1], [[STORE]]))
        driver.feed([0], model)
        await driver.check(model)
        driver.sink.got.clear()
    await driver.load(words([1], []))
    driver.sources["tokens"].start([{"callback": 0}])
    check(await driver.fault(), Cause.PROGRAM, Queue.TOKEN, 0)


ILLEGAL = {
    "operation": {"op": 31},
    "octets_of_a_row": {**MOVE, "octets": 1},
    "destination": {**MOVE, "destination": 15},
    "accumulator": {**MOVE, "c": 8},
    "register_a": {"op": VectorOp.ABS, "a": {"kind": REGISTER, "number": 8}},
    "register_b": {"op": VectorOp.FMA, "a": Q0, "b": {"kind": REGISTER, "number": 8}},
    "queue_a": {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": 4}},
    "queue_a_beyond": {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": 7}},
    "kept_b": {"op": VectorOp.FMA, "a": Q0, "b": {"kind": QUEUE, "number": 8}},
    "queue_b": {"op": VectorOp.FMA, "a": Q0, "b": {"kind": QUEUE, "number": 2}},
    "mode": {**MOVE, "mode": 3},
    "row_operation_on_scalars": {"op": VectorOp.DIVIDE_COUNT, "mode": Mode.SCALAR},
    "scalar_operation_on_rows": {"op": VectorOp.SQUARE_ROOT, "a": Q0},
    "store_of_a_row_as_a_scalar": {"op": VectorOp.STORE, "mode": Mode.SCALAR},
    "store_of_a_scalar_as_a_row": {"op": VectorOp.STORE, "a": {"kind": OWN}},
    "operation_that_does_not_reduce": {"op": VectorOp.SUBTRACT, "mode": Mode.REDUCE, "a": Q0},
    "partial_results_in_a": {"op": VectorOp.ADD, "mode": Mode.REDUCE, "a": {"kind": REGISTER, "number": 2}, "c": 2},
    "partial_results_in_b": {"op": VectorOp.FMA, "mode": Mode.REDUCE, "a": Q0},
    "element_of_a_row": {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": Q0, "indexed": 1},
    "element_for_rows": {"op": VectorOp.MOVE, "indexed": 1},
    "unused_element": {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "element": 1},
    "same_queue": {"op": VectorOp.MULTIPLY, "a": Q1, "b": Q1},
    "same_queue_kept": {"op": VectorOp.MULTIPLY, "a": {"kind": QUEUE, "number": KEEP + 1}, "b": Q1},
    "two_scalars": {"op": VectorOp.MULTIPLY, "a": {"kind": SCALAR}, "b": {"kind": SCALAR, "number": 1}},
    "b_of_a_sum": {"op": VectorOp.ADD, "mode": Mode.REDUCE, "a": Q0, "b": Q1, "c": 1},
    "same_queue_to_add": {"op": VectorOp.SUBTRACT, "a": Q1, "b": Q1},
    "superfluous_b": {**MOVE, "b": {"kind": REGISTER, "number": 1}},
    "store_of_a_row": {"op": VectorOp.STORE, "a": Q0},
    "quotient_of_a_row": {"op": VectorOp.DIVIDE_COUNT, "a": Q0},
}


BEYOND = {
    "scalar_a": {"op": VectorOp.MOVE, "a": {"kind": OWN, "number": 15}},
    "scalar_b": {"op": VectorOp.MULTIPLY, "a": Q0, "b": {"kind": OWN, "number": 15}},
    "scalar_c": {"op": VectorOp.ADD, "mode": Mode.SCALAR, "c": 15},
    "scalar_destination": {"op": VectorOp.ADD, "mode": Mode.SCALAR, "destination": 15},
    "reduced_destination": {"op": VectorOp.ADD, "mode": Mode.REDUCE, "a": Q0, "destination": 15},
    "element": {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "indexed": 1, "element": 15},
}
"""Illegal where there are less than 16 scalar registers."""


@cocotb.test()
@cocotb.parametrize(name=list(BEYOND))
async def scalar_registers_that_do_not_exist(dut, name):
    if bench_config().scalars < 16:
        check(await faulted(dut, words([1], [[STORE, BEYOND[name]]]), [0]), Cause.PROGRAM, Queue.NONE, 1)


@cocotb.test()
async def octets_that_do_not_exist(dut):
    """Eight partial results of a reduction, where the configuration has none of them."""
    reduction = {"op": VectorOp.ADD, "mode": Mode.REDUCE, "a": Q0, "c": 1, "destination": 1, "octets": 1}
    if not bench_config().octets:
        check(await faulted(dut, words([1], [[STORE, reduction]]), [0]), Cause.PROGRAM, Queue.NONE, 1)


@cocotb.test()
@cocotb.parametrize(context=[0, 1], beyond=[0, 1, "all"])
async def elements_that_do_not_exist(dut, context, beyond):
    """The last element that the context has, the one behind it, and the largest index."""
    config = bench_config()
    elements = config.context_beats * config.lanes if context else config.vl_max
    index = 0xFFFFFFFF if beyond == "all" else elements - 1 + beyond
    take = {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": {"kind": REGISTER, "number": 1}, "indexed": 1, "element": 2}
    codes = [MOVE, {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "a": {"kind": SCALAR}, "destination": 2}, take,
             {"op": VectorOp.STORE, "mode": Mode.SCALAR, "a": {"kind": OWN}}]  # fmt: skip
    driver = Driver(dut, config)
    await driver.begin(words([elements], [codes]))
    numbers = np.arange(elements, dtype=np.uint32)
    driver.feed_rows(0, [Row(numbers)])
    driver.sources["scalars"].start([{"value": 3 << 32 | index}])
    driver.sources["tokens"].start([{"callback": 0, "context": context}])
    if beyond:
        check(await driver.fault(5000), Cause.PROGRAM, Queue.NONE, index)
    else:
        (stored,) = await driver.sink.wait(1)
        assert (stored.data & 0xFFFFFFFF, stored.bytes, stored.last) == (index, 4, 1)


@cocotb.test()
@cocotb.parametrize(name=list(ILLEGAL))
async def illegal_instructions(dut, name):
    """The third instruction is wrong; that it pops nothing that is not there must not matter."""
    fault = await faulted(dut, words([1], [[STORE, STORE, ILLEGAL[name], STORE]]), [0])
    check(fault, Cause.PROGRAM, Queue.NONE, 2)


@cocotb.test()
@cocotb.parametrize(value=[0, "more", 1 << 39])
async def lengths_that_are_none(dut, value):
    value = bench_config().vl_max + 1 if value == "more" else value
    check(await faulted(dut, words([value], [[STORE]]), [0]), Cause.PROGRAM, Queue.NONE, value)


@cocotb.test()
@cocotb.parametrize(beats=[0, 1])
async def rows_that_do_not_fit_into_a_context(dut, beats):
    """A row may fill the share of a context and no more; context 0 has no limit of its own."""
    config = bench_config()
    value = config.context_beats * config.lanes + beats
    driver = Driver(dut, config)
    await driver.begin(words([value], [[MOVE, STORE]]))
    driver.sources["tokens"].start([{"callback": 0}, {"callback": 0, "context": config.context_count - 1}])
    driver.feed_rows(0, [Row(np.zeros(value, np.uint32))] * 2)
    if beats:
        check(await driver.fault(), Cause.PROGRAM, Queue.NONE, value)
    else:
        assert len(await driver.sink.wait(2 * config.context_beats)) == 2 * config.context_beats


@cocotb.test()
@cocotb.parametrize(number=[KEEP, KEEP + 1, KEPT, KEPT + 7])
async def rows_kept_by_a_machine_that_keeps_none(dut, number):
    code = {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": number}}
    if not bench_config().kept_beats:
        check(await faulted(dut, words([1], [[STORE, code]]), [0]), Cause.PROGRAM, Queue.NONE, 1)


@cocotb.test()
@cocotb.parametrize(beyond=[0, 1])
async def room_to_keep_rows(dut, beyond):
    """As many rows as there is room for, and one more; before it is waited for."""
    config = bench_config()
    if not config.kept_beats:
        return
    beats = min(2, config.register_beats)
    length, fit = beats * config.lanes, config.kept_beats // beats
    keep = {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": KEEP}, "destination": 1}
    rows = [Row(np.zeros(length, np.uint32))] * fit
    driver = Driver(dut, config)
    await driver.begin(words([length], [[keep], [STORE]]))
    driver.feed_rows(0, rows)
    driver.sources["tokens"].start([{"callback": n} for n in [0] * (fit + beyond) + [1]])
    if beyond:
        check(await driver.fault(5000), Cause.PROGRAM, Queue.NONE, length)
    else:
        assert len(await driver.sink.wait(beats)) == beats


@cocotb.test()
@cocotb.parametrize(difference=["-1", "+1", "-beat", "+beat"])
async def kept_rows_of_another_length(dut, difference):
    config = bench_config()
    if not config.kept_beats:
        return
    kept = 2 * config.lanes + (1 if difference == "-1" else 0)
    used = kept + {"-1": -1, "+1": 1, "-beat": -config.lanes, "+beat": config.lanes}[difference]
    codes = [{"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": KEEP + 1}, "destination": 1},
             {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": KEPT}, "destination": 1, "length": 1}]  # fmt: skip
    rows = {1: [Row(np.zeros(kept, np.uint32))]}
    check(await faulted(dut, words([kept, used], [codes]), [0], rows), Cause.FRAMING, Queue.NONE, used)


@cocotb.test()
async def rows_kept_by_an_earlier_launch(dut):
    """They are gone: a use of them does nothing, and there is room for others."""
    config = bench_config()
    if not config.kept_beats:
        return
    length = config.lanes
    keep = {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": KEEP}, "destination": 1}
    use = {"op": VectorOp.MOVE, "a": {"kind": QUEUE, "number": KEPT}, "destination": 1}
    fit = config.kept_beats
    driver = Driver(dut, config)
    for launch, first in enumerate((1, 1001)):
        await (driver.load if launch else driver.begin)(words([length], [[keep], [use, STORE]]))
        rows = [Row(np.full(length, first + n, np.uint32)) for n in range(fit)]
        driver.feed_rows(0, rows)
        driver.sources["tokens"].start([{"callback": n} for n in [1] + [0] * fit + [1]])
        empty, oldest = (await driver.sink.wait(2 * launch + 2))[-2:]
        assert (empty.data & 0xFFFFFFFF, oldest.data & 0xFFFFFFFF) == (0, first)
        await driver.idle()


@cocotb.test()
async def length_never_written(dut):
    fault = await faulted(dut, words([1], [[STORE, {**STORE, "length": 3}]]), [0])
    check(fault, Cause.PROGRAM, Queue.NONE, 0)


@cocotb.test()
@cocotb.parametrize(beyond=[0, 1])
async def end_of_the_instruction_memory(dut, beyond):
    """The last instruction does not end the callback, or the callback starts after it."""
    end = bench_config().instructions
    code = Word.packed(InstructionField.CODE, end - 1, **STORE)
    listed = [Word(LengthField.ELEMENTS, 0, 1), code, Word(CallbackField.START, 3, end - 1 + beyond)]
    check(await faulted(dut, listed, [3]), Cause.PROGRAM, Queue.NONE, end)


@cocotb.test()
@cocotb.parametrize(queue=[0, 1], difference=["-1", "+1", "-beat", "+beat", "next"])
async def rows_of_another_length(dut, queue, difference):
    config, rng = bench_config(), random.Random(1)
    length = 2 * config.lanes + 1 if difference != "+1" else 2 * config.lanes
    wrong = length + {"-1": -1, "+1": 1, "-beat": -config.lanes, "+beat": config.lanes, "next": 1}[difference]
    code = {"op": VectorOp.MULTIPLY, "a": Q0, "b": Q1, "destination": 1}
    rows = {n: [Row(row(rng, length)) for _ in range(3)] for n in range(2)}
    rows[queue][2 if difference == "next" else 1] = Row(row(rng, wrong))
    fault = await faulted(dut, words([length], [[code, STORE]]), [0, 0, 0], rows)
    check(fault, Cause.FRAMING, (Queue.VECTOR0, Queue.VECTOR1)[queue], length)


@cocotb.test()
@cocotb.parametrize(late=[0, 30])
async def first_fault_counts(dut, late):
    """A row that is misframed is reported, not the bad token after it."""
    config, rng = bench_config(), random.Random(1)
    rows = {0: [Row(row(rng, config.lanes + 1))]}
    fault = await faulted(dut, words([config.lanes], [[MOVE]]), [0, 9], rows, late=late)
    check(fault, Cause.FRAMING, Queue.VECTOR0, config.lanes)
