"""Two tiles in one model, with a memory each: neither knows of the other."""

import pytest
from amaranth import Module
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.lib.reset import RegisteredReset
from daedal.hw.tile import Tile, TilePorts
from tests.fuzz.configs import GATHERER
from tests.unit.harness import run_cocotb

TILES = 2


class Tiles(wiring.Component):
    """So many tiles side by side; the ports of each begin with ``tile0__`` and so on."""

    def __init__(self, config: Config, count: int) -> None:
        self._config, self._count = config, count
        super().__init__({f"tile{number}": Out(TilePorts(config)) for number in range(count)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        for number in range(self._count):
            m.submodules[f"tile{number}"] = tile = Tile(self._config)
            connect(m, tile, flipped(getattr(self, f"tile{number}")))
        return m


CONFIGS = [GATHERER, pytest.param(Config.preset("minimum"), marks=pytest.mark.full)]
"""One that is built in little time, and one that has an execute unit."""


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_two_tiles(config: Config) -> None:
    tiles = RegisteredReset(Tiles(config, TILES))
    run_cocotb(tiles, "tiles", "tests.unit.core.bench_tiles", parameters={"config": config, "tiles": TILES})
