"""A small DLRM, trained: look-ups and updates of its tables on the device, layers in PyTorch.

PyTorch trains a twin of it, and in the end all parameters are the same bits. Run it as ``python examples/training.py``,
or with another number of steps, as ``python examples/training.py 20``.
"""

import copy
import sys

import torch
from torch import Tensor, nn

import daedal

ROWS, WIDTH, DENSE, BATCH = (3000, 1000, 200, 12), 16, 6, 64


class Recommender(nn.Module):
    """Dense features, bags over tables, interactions of all pairs, and layers on top."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, WIDTH, mode="sum", sparse=True) for rows in ROWS)
        self.bottom = nn.Sequential(nn.Linear(DENSE, WIDTH), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(WIDTH + 10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, dense: Tensor, indices: list[Tensor], offsets: Tensor) -> Tensor:
        """A logit for each sample."""
        x = self.bottom(dense)
        rows = [table(each, offsets) for table, each in zip(self.tables, indices, strict=True)]
        features = torch.stack([x, *rows], 1)
        low, high = torch.tril_indices(len(rows) + 1, len(rows) + 1, -1).unbind()
        pairs = (features @ features.transpose(1, 2))[:, low, high]
        found: Tensor = self.top(torch.cat([x, pairs], 1))
        return found


def batch(taste: Tensor) -> tuple[list[Tensor | list[Tensor]], Tensor]:
    """Inputs, three rows of each table a sample, some of them often, and what came of it."""
    dense = torch.randn(BATCH, DENSE)
    indices: list[Tensor] = [(torch.rand(BATCH * 3) ** 3 * rows).long() for rows in ROWS]
    likes = taste[indices[1]].reshape(BATCH, 3).mean(1, keepdim=True) + dense[:, :1]
    return [dense, indices, torch.arange(0, BATCH * 3, 3)], (likes > 0).float()


def main(steps: int = 200) -> None:
    """Train both, and compare."""
    torch.manual_seed(1)
    model, taste = Recommender(), torch.randn(ROWS[1])
    twin = copy.deepcopy(model)
    with daedal.Device.open("emulator") as device:
        fast = torch.compile(model, backend="daedal", options={"device": device})
        optimizer = daedal.optim.SGD(model.parameters(), lr=0.1, device=device)
        reference = torch.optim.SGD(twin.parameters(), lr=0.1)
        losses = []
        for _ in range(steps):
            inputs, target = batch(taste)
            for run, each in ((fast, optimizer), (twin, reference)):
                each.zero_grad()
                loss = nn.functional.binary_cross_entropy_with_logits(run(*inputs), target)
                loss.backward()
                each.step()
            losses.append(loss.item())
        print(daedal.graphs(device)[-1].explain().splitlines()[0])
        uploads = device.table_uploads
        optimizer.sync()
    assert all(map(torch.equal, model.parameters(), twin.parameters())), "equal bit for bit"
    fifth = max(1, steps // 5)
    print(f"loss: {sum(losses[:fifth]) / fifth:.3f} at first, {sum(losses[-fifth:]) / fifth:.3f} in the end")
    print(f"{uploads} tables went up once, in {steps} steps; all parameters are PyTorch's")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
