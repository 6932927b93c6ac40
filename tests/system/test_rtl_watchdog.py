"""A watchdog that is short against what a launch may have to wait for: nothing is taken for a hang that is none."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

import daedal
from daedal.cosim import verilator
from daedal.driver.targets.target_registry import open_target
from daedal.hw.config.core import Config
from daedal.hw.control import launch_controller
from daedal.hw.control.faults import watchdog
from daedal.hw.isa.launch import Cause, State
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import LevelField
from daedal.hw.verilog import generate_verilog
from tests.system.test_rtl_hangs import FETCH, MEMORY_BYTES, assert_usable, callback, reset, steps
from tests.unit.emulator.programs import Bench

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

HASTY = replace(Config.preset("minimum"), name="hasty", vector_beats=1024, lookahead_lines=128, port_outstanding=2)
"""The marks of its vector queues take longer to sweep than its watchdog waits here, and so do the lines of a
look-ahead, two bursts at a time.
"""

PATIENCE = 256
"""Cycles that its watchdog waits here, and its controller for an answer of memory."""


@pytest.fixture(scope="module", autouse=True)
def _short() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for unit in (watchdog, launch_controller):
            patch.setattr(unit, "WATCHDOG_CYCLES", PATIENCE)
        patch.setattr(verilator, "core_verilog", cache(generate_verilog))
        yield


@pytest.fixture(scope="module", params=[30, 140])
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open("verilator", config=HASTY, memory=f"ideal:latency={request.param}") as device:
        yield device


def test_the_first_launch_after_a_reset(device: daedal.Device) -> None:
    module, indices = nn.EmbeddingBag(20, 8, mode="sum"), torch.arange(12).view(3, 4)
    for _ in range(2):
        executable = daedal.compile(module, (indices,), device=device)
        assert torch.equal(executable(indices), module(indices))
        with pytest.raises(daedal.IndexOutOfRange):  # which resets the machine
            executable(indices + 15)


@pytest.mark.parametrize(("width", "length"), [(1, 200), (4, 200), (9, 100)])
def test_lines_of_the_next_launch_go_before_rows(device: daedal.Device, width: int, length: int) -> None:
    module = nn.EmbeddingBag(30, width, mode="sum")
    batches = [torch.randint(30, (4, length)) for _ in range(5)]
    executable = daedal.compile(module, (batches[0],), device=device)
    for future, indices in [(executable.submit(indices), indices) for indices in batches]:
        assert torch.equal(future.result(), module(indices))


def test_a_fault_waits_for_slow_memory() -> None:
    """What the ports still owe takes longer than the watchdog waits for one answer: the record is written."""
    memory = f"ideal:latency={PATIENCE * 3 // 4}"
    target = open_target("verilator", HASTY, memory=memory, memory_bytes=MEMORY_BYTES, wave=None)
    bench = Bench(target, HASTY)
    reset(bench)
    illegal = Word(LevelField.LOWER, HASTY.levels, 0)
    record = bench.run([*callback(), *steps(12, FETCH), illegal])
    assert (record.state, record.cause) == (State.FAULTED, Cause.PROGRAM)
    reset(bench)
    assert_usable(bench)
    target.close()
