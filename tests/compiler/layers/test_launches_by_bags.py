"""Operations with different numbers of bags: no launch writes more empty bags than another launch would cost."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.runtime.batch.launches import WORTH_A_LAUNCH


class Tables(nn.Module):
    """Tables, each with bags of its own number, and a gather."""

    def __init__(self, count: int, dim: int) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(40, dim, mode="sum") for _ in range(count))
        self.rows = nn.Embedding(30, dim)

    def forward(self, indices: list[Tensor], words: Tensor) -> list[Tensor]:
        """All results; those with as many bags are joined as well."""
        found = [bag(each) for bag, each in zip(self.bags, indices, strict=True)]
        return [*found, torch.cat([found[0], found[-1]], 1), self.rows(words)]


class Bags(nn.Module):
    """Tables, each with bags of its own number, and nothing else."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(40, 64, mode="sum") for _ in range(count))

    def forward(self, indices: list[Tensor]) -> list[Tensor]:
        """All results."""
        return [bag(each) for bag, each in zip(self.bags, indices, strict=True)]


@pytest.mark.parametrize(
    ("bags", "launches"), [((300, 3, 290, 300), 2), ((8, 5, 2, 8), 1), ((500, 250, 5, 500), 3)], ids=str
)
def test_bags_of_about_one_number_share_a_launch(
    rng: np.random.Generator, bags: tuple[int, ...], launches: int
) -> None:
    model = Tables(len(bags), 64)
    inputs = ([torch.from_numpy(rng.integers(0, 40, (n, 2))) for n in bags], torch.from_numpy(rng.integers(0, 30, 7)))
    with daedal.Device.open("emulator", config="ddr3") as device:
        executable = daedal.compile(model, inputs, device=device)
        for _ in range(2):
            assert all(map(torch.equal, executable(*inputs), model(*inputs)))
        assert executable.stats.launches == launches
        wanted = (sum(bags) + bags[0] + bags[-1] + 7) * 256
        most = wanted + launches * WORTH_A_LAUNCH * device.config.bus_bytes
        assert wanted - (bags[0] + bags[-1]) * 256 <= executable.stats.bytes_written <= most
        futures = [executable.submit(*inputs) for _ in range(3)]
        assert all(torch.equal(a, b) for each in futures for a, b in zip(each.result(), model(*inputs), strict=True))


def test_an_executable_of_a_file_goes_on_with_one_launch(rng: np.random.Generator, tmp_path: Path) -> None:
    """It has the program of all tables together, and no other."""
    model = Bags(3)
    inputs, other = (
        [torch.from_numpy(rng.integers(0, 40, (n, 2))) for n in bags] for bags in ((9,) * 3, (300, 3, 290))
    )
    with daedal.Device.open("emulator", config="ddr3") as device:
        executable = daedal.compile(model, (inputs,), device=device)
        executable(inputs)
        executable.save(tmp_path / "bags.daedal")
        tables = {name: table.detach().numpy() for name, table in executable.tables().items()}
    with daedal.Device.open("emulator", config="ddr3") as device:
        loaded = daedal.load(tmp_path / "bags.daedal", tables=tables, device=device)
        found = loaded([each.numpy() for each in other])
        assert all(np.array_equal(a, b.detach().numpy()) for a, b in zip(found, model(other), strict=True))
