"""The store unit: any row to any element, merged, in bursts, at full rate; wrong lengths and errors are faults."""

import pytest

from daedal.hw.memory.store.store_unit import StoreUnit
from tests.unit.harness import SMALLER, run_cocotb


@pytest.mark.rtl
@pytest.mark.parametrize("config", SMALLER, ids=lambda config: config.name)
def test_store_unit(config):
    run_cocotb(StoreUnit(config), "store_unit", "tests.unit.memory.bench_store_unit", parameters={"config": config})
