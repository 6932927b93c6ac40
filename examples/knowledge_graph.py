"""A knowledge graph: how well triples of head, relation and tail fit, by TransE.

PyTorch's way has three gathers and then arithmetic on the rows: the gathers are one launch. A kernel of plain loops
does the arithmetic on the device as well, and no row comes back. Run it as ``python examples/knowledge_graph.py``.
"""

import numpy as np
import torch
from torch import Tensor, nn

import daedal
from daedal import f32, i64

D, N, M, T = daedal.dims("D N M T")


class TransE(nn.Module):
    """The distance of head + relation from tail."""

    def __init__(self, entities: int, relations: int, columns: int) -> None:
        super().__init__()
        self.entities, self.relations = nn.Embedding(entities, columns), nn.Embedding(relations, columns)

    def forward(self, heads: Tensor, kinds: Tensor, tails: Tensor) -> Tensor:
        """A distance for each triple."""
        return (self.entities(heads) + self.relations(kinds) - self.entities(tails)).abs().sum(1)


@daedal.kernel
def distances(out: f32[T], entities: f32[N, D], relations: f32[M, D], heads: i64[T], kinds: i64[T], tails: i64[T]):
    """The same in one launch, from rows to distances."""
    for t in range(T):
        score = 0.0
        for d in range(D):
            score += abs(entities[heads[t], d] + relations[kinds[t], d] - entities[tails[t], d])
        out[t] = score


def main() -> None:
    """Run both, and compare them: the kernel adds along a row in an order of its own."""
    torch.manual_seed(1)
    model = TransE(2000, 30, 64).eval()
    triples = torch.randint(2000, (100,)), torch.randint(30, (100,)), torch.randint(2000, (100,))
    with daedal.Device.open("emulator") as device, torch.no_grad():
        run = daedal.compile(model, triples, device=device)
        wanted = model(*triples)
        assert torch.equal(run(*triples), wanted), "equal bit for bit"
        assert run.stats.launches == 1
        print(run.explain().splitlines()[0])
        print("rows from memory to the host:", 3 * len(wanted))
        arguments = [torch.zeros(100), model.entities.weight, model.relations.weight, *triples]
        kernel = daedal.compile(distances, arguments, device=device)
        kernel(*arguments)
        np.testing.assert_allclose(arguments[0], wanted, rtol=1e-5)
        assert kernel.stats.launches == 1
        print(kernel.explain().splitlines()[0])


if __name__ == "__main__":
    main()
