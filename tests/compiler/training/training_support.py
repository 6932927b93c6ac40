"""What tests of training share: samples with duplicates, and kernels that are run on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.python.function import KernelFunction
from tests.compiler.kernels.kernel_support import floats


@dataclass
class Batch:
    """Bags of samples: rows of a table, the bag of each sample, a weight each, and a gradient of the bags."""

    table: NDArray[np.float32]
    indices: NDArray[np.int64]
    offsets: NDArray[np.int64]
    bags: NDArray[np.int64]
    lengths: NDArray[np.int64]
    weights: NDArray[np.float32]
    grad: NDArray[np.float32]

    @property
    def reciprocals(self) -> NDArray[np.float32]:
        """Of the size of each sample's bag, as PyTorch has them."""
        return (1.0 / self.lengths[self.bags].astype(np.float64)).astype(np.float32)


def batch(rng: np.random.Generator, samples: int, width: int = 12, rows: int = 0, bags: int = 9) -> Batch:
    """So many samples in bags, some of them empty, and a few samples of each row."""
    rows = rows or max(2, samples // 4)
    ends = np.sort(rng.integers(0, samples + 1, bags - 1))
    offsets = np.concatenate([[0], ends, [samples]])
    lengths = np.diff(offsets)
    return Batch(
        floats(rng, rows, width), rng.integers(0, rows, samples), offsets, np.repeat(np.arange(bags), lengths),
        lengths, floats(rng, samples), floats(rng, bags, width),
    )  # fmt: skip


def run(device: daedal.Device, kernel: KernelFunction, *arguments: Any) -> Any:
    """The first argument, which the kernel fills."""
    daedal.compile(kernel, arguments, device=device)(*arguments)
    return arguments[0]


def sorted_order(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order in which PyTorch adds up."""
    return torch.from_numpy(indices).sort()[1].numpy()
