"""Vector queues: returned in any order, drained in order, never more reserved than there is room for."""

import pytest

from daedal.hw.queues.vector_queues import VectorQueues
from tests.unit.harness import CONFIGS, run_cocotb

LARGEST = pytest.param(CONFIGS[0], marks=pytest.mark.full)
"""With more ports and longer queues than the next one, `edge`."""


@pytest.mark.rtl
@pytest.mark.parametrize("config", [LARGEST, *CONFIGS[1:]], ids=lambda config: config.name)
def test_vector_queues(config):
    queues = VectorQueues(config)
    run_cocotb(queues, "vector_queues", "tests.unit.queues.bench_vector_queues", parameters={"config": config})
