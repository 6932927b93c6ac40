# amaranth: UnusedElaboratable=no
"""The whole core between AXI memories that know nothing of ours."""

from functools import cache

import pytest

from daedal.hw.config import Config
from daedal.hw.core import Core
from tests.unit.harness import CONFIGS, run_cocotb

core = cache(Core)
"""One core for both benches: it becomes Verilog once."""


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.4], ids=["full-rate", "back-pressure"])
@pytest.mark.parametrize("config", [*CONFIGS, Config.preset("minimum")], ids=lambda config: config.name)
def test_core(config, pause):
    run_cocotb(core(config), "core", "tests.unit.core.bench_core", parameters={"config": config, "pause": pause})
