"""A machine with one level and no execute unit: gathers as PyTorch's, all else refused, on RTL and emulator."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.driver.targets.target_registry import open_target
from daedal.errors import IndexOutOfRange, UnsupportedOperation
from daedal.hw.isa.launch import Cause, Queue, State
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import CallbackField, InstructionField, LengthField, StepField
from tests.compiler.layers.compiler_support import same_bits, wild_table
from tests.fuzz.configs import GATHERER
from tests.system.test_rtl_hangs import (
    COPY,
    DIM,
    FETCH,
    FETCH1,
    MEMORY_BYTES,
    ONCE,
    OUT,
    PUSH,
    ROW,
    TOKEN,
    reset,
    steps,
)
from tests.system.test_rtl_layers import Pair
from tests.unit.emulator.programs import Bench

MEMORY = "ideal:latency=20,stall=0.2,seed=3"
TARGETS = ["emulator", pytest.param("verilator", marks=[pytest.mark.rtl, pytest.mark.slow])]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with (
        daedal.Device.open("verilator", config=GATHERER, memory=MEMORY) as rtl,
        daedal.Device.open("emulator", config=GATHERER) as emulator,
    ):
        yield Pair(rtl, emulator)


@pytest.fixture(params=TARGETS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    target = open_target(request.param, GATHERER, memory=MEMORY, memory_bytes=MEMORY_BYTES, wave=None)
    bench = Bench(target, GATHERER)
    reset(bench)
    yield bench
    target.close()


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 3, 4, 7, 16, 33, 300])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_gathers(pair: Pair, width: int, kind: torch.dtype, rng: np.random.Generator) -> None:
    words = nn.Embedding.from_pretrained(wild_table(50, width, rng), padding_idx=7)
    for count in (1, 6, 70):
        pair.check(words, torch.from_numpy(rng.integers(0, 50, count)).to(kind))


def test_a_bad_index_is_found_and_nothing_is_lost(rng: np.random.Generator) -> None:
    words = nn.Embedding.from_pretrained(wild_table(50, 8, rng))
    indices = torch.from_numpy(rng.integers(0, 50, 20))
    with daedal.Device.open("emulator", config=GATHERER) as device:
        exe = daedal.compile(words, (indices,), device=device)
        with pytest.raises(IndexOutOfRange, match="index 50 is out of range"):
            exe(torch.tensor([3, 50]))
        assert same_bits(exe(indices), words(indices))


def test_what_computes_is_refused(rng: np.random.Generator) -> None:
    bag = nn.EmbeddingBag.from_pretrained(wild_table(50, 8, rng), mode="sum")
    inputs = torch.arange(6), torch.tensor([0, 3])
    message = "configuration gatherer has no execute unit (its instructions are 0): it gathers rows as they are"
    with (
        daedal.Device.open("emulator", config=GATHERER) as device,
        pytest.raises(UnsupportedOperation, match=re.escape(message)),
    ):
        daedal.compile(bag, inputs, device=device)


@pytest.mark.parametrize("token", [0, 1, 63])
def test_any_token_is_a_fault(bench: Bench, token: int, rng: np.random.Generator) -> None:
    record = bench.run([Word(StepField.TOKEN, 0, token), *steps(ONCE, TOKEN)])
    assert (record.state, record.cause, record.queue, record.value) == (
        State.FAULTED, Cause.PROGRAM, Queue.TOKEN, token,
    )  # fmt: skip
    assert_copies(bench, rng)


@pytest.mark.parametrize("field", [LengthField.ELEMENTS, CallbackField.START, InstructionField.CODE], ids=str)
def test_words_for_an_execute_unit_are_illegal(bench: Bench, field, rng: np.random.Generator) -> None:
    record = bench.run([Word(field, 0, 1), *steps(ONCE, COPY)])
    assert (record.state, record.cause) == (State.FAULTED, Cause.PROGRAM)
    assert_copies(bench, rng)


@pytest.mark.parametrize(
    ("step", "queue"), [(FETCH, Queue.VECTOR0), (FETCH1, Queue.VECTOR1), (PUSH, Queue.SCALAR)], ids=["0", "1", "scalar"]
)
def test_what_nobody_takes_is_a_hang_that_names_its_queue(
    bench: Bench, step: dict[str, object], queue: Queue, rng: np.random.Generator
) -> None:
    record = bench.run(steps(ONCE, step))
    assert (record.state, record.cause, record.queue) == (State.FAULTED, Cause.HANG, queue)
    assert_copies(bench, rng)


def assert_copies(bench: Bench, rng: np.random.Generator) -> None:
    """After a reset a row is copied as it is."""
    reset(bench)
    row = rng.standard_normal(DIM, dtype=np.float32)
    bench.target.mem_write(ROW, row.tobytes())
    assert bench.run(steps(ONCE, COPY)).state is State.DONE
    assert np.array_equal(bench.floats(OUT, (DIM,)), row)
