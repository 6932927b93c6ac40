"""The whole core between AXI memories that know nothing of ours."""

import pytest

from daedal.cosim.rtl import TOP, core_verilog
from daedal.hw.config import Config
from tests.unit.harness import ODD, run_cocotb


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.4], ids=["full-rate", "back-pressure"])
@pytest.mark.parametrize(
    "config",
    [ODD, *(pytest.param(Config.preset(name), marks=pytest.mark.full) for name in ("ddr3", "minimum"))],
    ids=lambda config: config.name,
)
def test_core(config, pause):
    parameters = {"config": config, "pause": pause}
    run_cocotb(core_verilog(config), TOP, "tests.unit.core.bench_core", parameters=parameters)
