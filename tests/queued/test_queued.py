"""Queued launches on every DRAM, with register accesses while they run: all give and count what each gives alone."""

import pytest

from tests.queued.traffic import traffic
from tests.system.test_rtl_configs import CONFIGS

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

MACHINES = [
    ("ddr3", "litedram-ddr3-x16", 100),
    ("broad", "litedram-ddr4-x64", 60),
    ("edge", "ideal:latency=60,stall=0.1,seed=3,mixed=0", 60),
    *(
        pytest.param(*machine, 500, marks=pytest.mark.full)
        for machine in (
            ("ddr3", "litedram-ddr3-x16:stall=0.2,seed=3,checks=1"),
            ("broad", "litedram-ddr3-x64"),
            ("broad", "litedram-ddr4-x64:stall=0.1,seed=5"),
            ("edge", "litedram-ddr3-x16"),
            ("small", "ideal:latency=3"),
        )
    ),
]


@pytest.mark.parametrize(("config", "memory", "count"), MACHINES)
def test_launches_with_register_accesses(config: str, memory: str, count: int, seed: int) -> None:
    with traffic(CONFIGS[config], memory, [seed, count]) as machine:
        machine.run(count)
    assert machine.launches >= count
    assert machine.accesses.keys() == {"done", "read", "write", "clear"}
    assert machine.accesses.total() > 2 * count, "the machine must be at work"
