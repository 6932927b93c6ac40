# amaranth: UnusedElaboratable=no
"""What a queue promises: order, no loss, one per cycle, an honest high-water mark."""

import pytest

from daedal.hw.config.core import Config
from daedal.hw.interfaces import store_address_layout
from daedal.hw.queues.fifo import Fifo
from tests.unit.harness import run_cocotb


@pytest.mark.rtl
@pytest.mark.parametrize("depth", [2, 3, 16, 40])
def test_queue(depth):
    queue = Fifo(store_address_layout(Config()), depth=depth)
    run_cocotb(queue, "queue", "tests.unit.queues.bench_queue", parameters={"depth": depth})


@pytest.mark.parametrize("depth", [1, 0, -3, "8"])
def test_refuses_a_depth_it_cannot_have(depth):
    with pytest.raises(ValueError, match=f"at least 2, not {depth!r}"):
        Fifo(8, depth=depth)
