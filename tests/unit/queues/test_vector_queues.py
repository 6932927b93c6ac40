"""Vector queues: returned in any order, drained in order, never more reserved than there is room for."""

import pytest

from daedal.hw.queues.reorder_buffer import ReorderBuffers
from tests.unit.harness import SMALLER, run_cocotb


@pytest.mark.rtl
@pytest.mark.parametrize("config", SMALLER, ids=lambda config: config.name)
def test_vector_queues(config):
    queues = ReorderBuffers(config)
    run_cocotb(queues, "vector_queues", "tests.unit.queues.bench_vector_queues", parameters={"config": config})
