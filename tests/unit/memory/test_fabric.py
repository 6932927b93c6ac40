"""The read fabric: the right port, everything comes back, at full rate; errors are reported."""

import pytest

from daedal.hw.memory.fabric.fabric import ReadFabric
from tests.unit.harness import CONFIGS, run_cocotb


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_fabric(config):
    run_cocotb(ReadFabric(config), "read_fabric", "tests.unit.memory.bench_fabric", parameters={"config": config})
