"""The emulator, open on some memory, with a bench to place data and programs."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config.core import Config
from tests.unit.emulator.programs import Bench

MEMORY_BYTES = 1 << 24
NARROW = replace(Config.preset("ddr3"), name="narrow", address_bits=32)


@pytest.fixture(params=["ddr3", "edge", "narrow"])
def config(request: pytest.FixtureRequest) -> Config:
    return NARROW if request.param == "narrow" else Config.preset(request.param)


@pytest.fixture
def bench(config: Config) -> Iterator[Bench]:
    with EmulatorTarget(config, MEMORY_BYTES, trace=True) as target:
        yield Bench(target, config)
