"""Records: what a launch stored, then its record, whatever makes either wait."""

import pytest

from daedal.hw.config.core import Config
from daedal.hw.control.records.records import Records
from tests.unit.harness import CONFIGS, run_cocotb


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_records(config: Config) -> None:
    run_cocotb(Records(config), "records", "tests.unit.control.records.bench_records", parameters={"config": config})
