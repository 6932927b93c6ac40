"""The whole core between AXI memories that know nothing of ours."""

from functools import cache

import pytest
from amaranth import Signal

from daedal.hw.config.core import Config
from daedal.hw.control import launch_control
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.verilog import TOP, generate_verilog
from tests.unit.core.completed import COMPLETED_AT_FIRST
from tests.unit.harness import ODD, run_cocotb

SMALLEST, DDR3 = Config.preset("minimum"), Config.preset("ddr3")
OTHERS = [pytest.param(config, marks=pytest.mark.full) for config in (ODD, DDR3)]


class WornPort(ControlRegisters):
    """That of a machine which has ended nearly as many launches as COMPLETED can count."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.completed = Signal(32, init=COMPLETED_AT_FIRST)


@cache
def worn_core(config: Config) -> str:
    """The core's Verilog, with such a port."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch_control, "ControlRegisters", WornPort)
        return generate_verilog(config)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.4], ids=["full-rate", "back-pressure"])
@pytest.mark.parametrize("config", [SMALLEST, *OTHERS], ids=lambda config: config.name)
def test_core(config, pause):
    parameters = {"config": config, "pause": pause}
    run_cocotb(worn_core(config), TOP, "tests.unit.core.bench_core", parameters=parameters)
