"""A recommender: tables of users, items and fields, bags of what a user has seen, and layers on top.

All look-ups of a batch are one launch; the layers run in PyTorch. Run it as ``python examples/recommender.py``.
"""

import torch
from torch import Tensor, nn

import daedal


class Recommender(nn.Module):
    """Scores of items for users, from inputs by name as data loaders give them."""

    def __init__(self) -> None:
        super().__init__()
        self.user, self.item = nn.Embedding(1000, 32), nn.Embedding(5000, 32)
        self.fields = nn.ModuleDict({name: nn.Embedding(50, 16) for name in ("country", "device", "hour")})
        self.seen = nn.EmbeddingBag(5000, 32, mode="mean")
        self.top = nn.Sequential(nn.Linear(32 * 3 + 16 * 3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user: Tensor, item: Tensor, fields: dict[str, Tensor], seen: Tensor, starts: Tensor) -> Tensor:
        """One score for each user and item; ``seen`` from each of ``starts`` on is what a user has seen."""
        rows = [self.user(user), self.item(item), self.seen(seen, starts)]
        rows += [table(fields[name]) for name, table in self.fields.items()]
        return torch.sigmoid(self.top(torch.cat(rows, 1))).squeeze(1)


def batch(users: int) -> dict[str, Tensor | dict[str, Tensor]]:
    """Inputs for so many users."""
    lengths = torch.randint(1, 20, (users,))
    return {
        "user": torch.randint(1000, (users,)),
        "item": torch.randint(5000, (users,)),
        "fields": {name: torch.randint(50, (users,)) for name in ("country", "device", "hour")},
        "seen": torch.randint(5000, (int(lengths.sum()),)),
        "starts": lengths.cumsum(0) - lengths,
    }


def main() -> None:
    """Compile, run batches of several sizes, and compare with PyTorch."""
    torch.manual_seed(1)
    model = Recommender().eval()
    with daedal.Device.open("emulator") as device, torch.no_grad():
        run = daedal.compile(model, batch(8), device=device)
        for users in (8, 64, 1):
            inputs = batch(users)
            assert torch.equal(run(**inputs), model(**inputs)), "equal bit for bit"
            assert run.stats.launches == 1
        print(run.explain().splitlines()[0])
        print("tables on the device:", ", ".join(device.tables))


if __name__ == "__main__":
    main()
