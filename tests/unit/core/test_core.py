"""The whole core between AXI memories that know nothing of ours."""

import pytest

from daedal.cosim.rtl import TOP, core_verilog
from daedal.hw.config import Config
from tests.unit.harness import ODD, run_cocotb

SMALLEST, DDR3 = Config.preset("minimum"), Config.preset("ddr3")
OTHERS = [pytest.param(config, marks=pytest.mark.full) for config in (ODD, DDR3)]


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.4], ids=["full-rate", "back-pressure"])
@pytest.mark.parametrize("config", [SMALLEST, *OTHERS], ids=lambda config: config.name)
def test_core(config, pause):
    parameters = {"config": config, "pause": pause}
    run_cocotb(core_verilog(config), TOP, "tests.unit.core.bench_core", parameters=parameters)
