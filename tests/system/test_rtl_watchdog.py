"""A watchdog that is short against what a launch may have to wait for: nothing is taken for a hang that is none."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import nn

import daedal
from daedal.hw.config.core import Config

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

HASTY = replace(
    Config.preset("minimum"), name="hasty", vector_beats=1024, lookahead_lines=128, port_outstanding=2, watchdog=256
)
"""The marks of its vector queues take longer to sweep than its watchdog waits, the shortest there can be, and so do the
lines of a look-ahead, two bursts at a time.
"""


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
