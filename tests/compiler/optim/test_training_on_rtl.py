"""Training on the RTL, where reads run ahead of writes: steps between lookups, on memories of two kinds."""

from typing import Any

import pytest
import torch

import daedal
from tests.compiler.optim.test_rowwise_adagrad import ROWS, Rule
from tests.compiler.optim.training_steps import Twins, bags, pooled
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["fresh"]


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal:stall=0.1,seed=2", "litedram-ddr3-x16"])
def test_steps_on_the_rtl(memory: str) -> None:
    generator = torch.Generator().manual_seed(1)
    with daedal.Device.open("verilator", config="ddr3", memory=memory) as rtl:
        kinds: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({}, {}), ({"sparse": False, "mode": "mean"}, {}), ({"sparse": False}, {"lr": 0.01, "momentum": 0.9})
        ]  # fmt: skip
        for options, more in kinds:
            twins = Twins(pooled(60, 16, **options), rtl, **more)
            for _ in range(4):
                twins.step(bags(60, 150, 7, generator))
            assert twins.optimizer._owners[0].is_ahead
            twins.check()
        run = Rule(rtl, pooled(ROWS, 16))
        for _ in range(3):
            run.step(bags(ROWS, 150, 7, generator))
        run.check()
