"""What tests of optimizers share: a model and its twin that PyTorch trains, batches, and both trained together."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

import daedal

Batch = tuple[Tensor, ...]


class Pooled(nn.Module):
    """A table, and a layer on top that is PyTorch's."""

    def __init__(self, table: nn.Module, width: int) -> None:
        super().__init__()
        self.table = table
        self.top = nn.Linear(width, 2)

    def forward(self, *inputs: Any) -> Tensor:
        found: Tensor = self.top(self.table(*inputs))
        return found


def pooled(rows: int = 60, width: int = 16, seed: int = 1, **options: Any) -> Pooled:
    torch.manual_seed(seed)
    return Pooled(nn.EmbeddingBag(rows, width, **{"mode": "sum", "sparse": True, **options}), width)


def bags(rows: int, samples: int, count: int, generator: torch.Generator) -> Batch:
    """Indices with many duplicates, in bags and across them, and offsets; some bags are empty."""
    indices = torch.randint(0, rows, (samples,), generator=generator)
    ends = torch.randint(0, samples + 1, (count - 1,), generator=generator).sort()[0]
    return indices, torch.cat([torch.zeros(1, dtype=torch.int64), ends])


def compiled(model: nn.Module, device: daedal.Device, **options: Any) -> Callable[..., Tensor]:
    found: Callable[..., Tensor] = torch.compile(
        model, backend="daedal", dynamic=True, options={"device": device, **options}
    )
    return found


class Twins:
    """A model whose tables a device trains, and the same that PyTorch trains."""

    def __init__(self, model: nn.Module, device: daedal.Device, make: Any = None, **options: Any) -> None:
        options = options or {"lr": 0.05}
        self.model, self.plain, self.device = model, copy.deepcopy(model), device
        self.fast = compiled(model, device)
        self.optimizer = (make or daedal.optim.SGD)(model.parameters(), device=device, **options)
        self.reference = torch.optim.SGD(self.plain.parameters(), **options)

    def step(self, *batches: Iterable[Any]) -> None:
        """One step, of a backward pass for each batch, whose losses must be the same."""
        self.optimizer.zero_grad()
        self.reference.zero_grad()
        for batch in batches:
            self.backward(*batch)
        self.optimizer.step()
        self.reference.step()

    def backward(self, *inputs: Any) -> None:
        losses = [loss_of(run(*inputs)) for run in (self.fast, self.plain)]
        assert same(losses[0].detach(), losses[1].detach())
        for each in losses:
            each.backward()

    def check(self) -> None:
        """All parameters are the same bits."""
        self.optimizer.sync()
        for (name, a), b in zip(self.model.named_parameters(), self.plain.parameters(), strict=True):
            assert same(a.detach(), b.detach()), name


def loss_of(output: Tensor) -> Tensor:
    weights = torch.linspace(-1, 1, output.numel()).reshape(output.shape)
    return ((output - weights) ** 2).sum() * 0.1


def same(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.view(torch.int32), b.view(torch.int32))
