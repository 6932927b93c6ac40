"""What the compiler's system tests share: devices, comparison bit for bit, random inputs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import daedal
from daedal.bench.workloads.runner import same_bits
from daedal.runtime.kernel import Kernel
from daedal.runtime.kernel_launch import run_kernel

__all__ = ["CONFIGS", "ddr3", "device", "random_bags", "run", "same_bits", "wild_table"]

CONFIGS = ("ddr3", "edge")


@pytest.fixture(scope="module", params=CONFIGS)
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    """The golden model in every preset."""
    with daedal.Device.open("emulator", config=request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def ddr3() -> Iterator[daedal.Device]:
    """The golden model in configuration ``ddr3``."""
    with daedal.Device.open("emulator", config="ddr3") as opened:
        yield opened


def wild_table(rows: int, width: int, rng: np.random.Generator) -> Tensor:
    """A table whose sums depend on order and rounding: many magnitudes, signed zeros, subnormals."""
    scale = np.exp2(rng.integers(-30, 30, (rows, width))).astype(np.float32)
    table = (rng.standard_normal((rows, width)).astype(np.float32) * scale).astype(np.float32)
    table[rng.random((rows, width)) < 0.05] = -0.0
    table[rng.random((rows, width)) < 0.02] = 1e-42
    return torch.from_numpy(table)


def random_bags(
    rows: int, bags: int, rng: np.random.Generator, *, longest: int = 9, types: tuple[Any, Any]
) -> tuple[Tensor, Tensor]:
    """Indices, and offsets with one entry more than there are bags; a third of the bags is empty."""
    lengths = rng.integers(0, longest, bags) * (rng.random(bags) > 0.3)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, rows, int(offsets[-1]))
    return torch.from_numpy(indices).to(types[0]), torch.from_numpy(offsets).to(types[1])


def run(device: daedal.Device, kernel: Kernel, *, values: dict[str, int] | None = None, **buffers: Any) -> Any:
    """The buffer ``out`` after a run of ``kernel``."""
    return run_kernel(device, kernel, buffers, values).outputs["out"]
