# amaranth: UnusedElaboratable=no
"""Between lines and the narrower beats of the execute unit."""

import dataclasses

import pytest

from daedal.hw.config import Config
from daedal.hw.queues.cutter import Cutter
from daedal.hw.queues.packer import Packer
from tests.unit.harness import run_cocotb

CONVERTERS = {"cutter": Cutter, "packer": Packer}


@pytest.mark.rtl
@pytest.mark.parametrize(("bus_bytes", "lanes"), [(8, 1), (64, 4)])
@pytest.mark.parametrize("name", CONVERTERS)
def test_converter(name: str, bus_bytes: int, lanes: int) -> None:
    config = dataclasses.replace(Config.preset("ddr3"), bus_bytes=bus_bytes, lanes=lanes)
    parameters = {"config": config, "name": name}
    run_cocotb(CONVERTERS[name](config), name, "tests.unit.queues.bench_converters", parameters=parameters)
