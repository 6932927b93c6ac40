# amaranth: UnusedElaboratable=no
"""The execute unit against a model of its instructions."""

import pytest

from daedal.hw.execute_unit.execute_unit import ExecuteUnit
from tests.unit.harness import CONFIGS, run_cocotb

BENCHES = ("bench_directed", "bench_execute_unit", "bench_faults")


@pytest.mark.rtl
@pytest.mark.parametrize("bench", BENCHES)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_execute_unit(config, bench):
    run_cocotb(ExecuteUnit(config), "execute_unit", f"tests.unit.execute_unit.{bench}", parameters={"config": config})
