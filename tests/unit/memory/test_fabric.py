"""The read fabric: the right port, everything comes back, at full rate; errors are reported."""

import pytest

from daedal.hw.config import Config
from daedal.hw.memory.fabric import ReadFabric
from daedal.hw.memory.steering import port_of
from tests.unit.harness import CONFIGS, run_cocotb


@pytest.mark.rtl
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
def test_fabric(config):
    run_cocotb(ReadFabric(config), "read_fabric", "tests.unit.memory.bench_fabric", parameters={"config": config})


@pytest.mark.parametrize("pitch", [256, 512, 1024, 4096, 1 << 14, 1 << 20])
def test_every_pitch_reaches_all_ports(pitch):
    config = Config()
    rows = [port_of(n * pitch, config) for n in range(config.ports)]
    assert sorted(rows) == list(range(config.ports))


def test_a_granule_stays_at_its_port():
    config = Config()
    assert len({port_of(0x12345600 + n, config) for n in range(256)}) == 1
