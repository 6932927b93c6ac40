import pytest
from daedal.hw.access_unit.access_unit import AccessUnit
from daedal.hw.config import Config

from tests.unit.harness import CONFIGS, run_cocotb

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_random_programs_do_what_the_contract_says(config: Config) -> None:
    run_cocotb(
        AccessUnit(config), "access_unit", "tests.unit.access_unit.bench_contract",
        parameters={"config": config, "cases": 20},
    )  # fmt: skip
