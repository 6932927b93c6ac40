"""Random kernels that change rows in place: the machine, and every level's interpreter, does what Python does."""

from pathlib import Path

import numpy as np
import pytest

import daedal
from tests.fuzz.kernels.sources import at_levels, run
from tests.fuzz.kernels.updates import random_update, update_arrays

KERNELS, AT_LEVELS, ON_RTL = 12, 2, 60


@pytest.mark.slow
def test_random_updates(seed: int, tmp_path: Path) -> None:
    """Python = emulator; for some = the interpreter of each level, at O0 to O3."""
    with daedal.Device.open("emulator", config="ddr3") as device:
        for number in range(KERNELS):
            data = 1000 * seed + number
            text = random_update(np.random.default_rng(data), octets=True)
            outcomes = [run(text, data, [device], tmp_path, update_arrays)]
            outcomes += [at_levels(text, data, device, tmp_path, update_arrays)] if number < AT_LEVELS else []
            for outcome in outcomes:
                assert outcome.difference is outcome.refusal is None, f"seed {data}:\n{text}\n{outcome}"


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("memory", ["ideal:stall=0.2,seed=4", "litedram-ddr3-x16"])
def test_random_updates_on_the_rtl(memory: str, seed: int, tmp_path: Path) -> None:
    """Where reads run ahead of writes."""
    with daedal.Device.open("verilator", config="ddr3", memory=memory) as rtl:
        for number in range(ON_RTL):
            data = 1000 * seed + KERNELS + number
            text = random_update(np.random.default_rng(data), octets=True)
            outcome = run(text, data, [rtl], tmp_path, update_arrays)
            assert outcome.difference is outcome.refusal is None, f"seed {data}:\n{text}\n{outcome}"
