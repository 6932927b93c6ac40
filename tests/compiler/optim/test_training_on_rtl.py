"""Training on the RTL, where reads run ahead of writes: steps between lookups, on memories of two kinds."""

import pytest
import torch

import daedal
from tests.compiler.optim.training_steps import Twins, bags, pooled
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["fresh"]


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal:stall=0.1,seed=2", "litedram-ddr3-x16"])
def test_steps_on_the_rtl(memory: str) -> None:
    generator = torch.Generator().manual_seed(1)
    with daedal.Device.open("verilator", config="ddr3", memory=memory) as rtl:
        for options in ({}, {"sparse": False, "mode": "mean"}):
            twins = Twins(pooled(60, 16, **options), rtl)
            for _ in range(4):
                twins.step(bags(60, 150, 7, generator))
            assert twins.optimizer._owners[0].is_ahead
            twins.check()
