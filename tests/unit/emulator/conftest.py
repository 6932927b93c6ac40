"""The emulator, open on some memory, with a bench to place data and programs."""

from collections.abc import Iterator

import pytest

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config import Config
from tests.unit.emulator.programs import Bench

MEMORY_BYTES = 1 << 24


@pytest.fixture(params=["ddr3", "edge"])
def config(request: pytest.FixtureRequest) -> Config:
    return Config.preset(request.param)


@pytest.fixture
def bench(config: Config) -> Iterator[Bench]:
    with EmulatorTarget(config, MEMORY_BYTES, trace=True) as target:
        yield Bench(target, config)
