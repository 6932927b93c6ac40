"""A graph network: multi-head attention over the edges of a graph, as PyTorch Geometric's GAT computes it.

Gathers and sums by destination run on the device, with a weight for each edge and head, and messages never go through
memory. Run it as ``python examples/graph_network.py``.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal


def edge_softmax(scores: Tensor, target: Tensor, nodes: int) -> Tensor:
    """The softmax of each edge's scores among the edges that end at the same node."""
    zeros = torch.zeros(nodes, scores.shape[1])
    column = target.view(-1, 1).expand_as(scores)
    most = zeros.scatter_reduce(0, column, scores, "amax", include_self=False)
    weights = (scores - most.index_select(0, target)).exp()
    total = torch.zeros(nodes, scores.shape[1]).index_add(0, target, weights)
    return weights / (total.index_select(0, target) + 1e-16)


class GraphAttention(nn.Module):
    """A layer of ``heads`` heads of ``width`` columns each."""

    def __init__(self, columns: int, heads: int, width: int) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.linear = nn.Linear(columns, heads * width, bias=False)
        self.source, self.target = (nn.Parameter(torch.randn(1, heads, width)) for _ in range(2))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Rows of nodes, from rows of nodes and the source and target of each edge."""
        source, target = edges[0], edges[1]
        z = self.linear(x).view(-1, self.heads, self.width)
        of_source, of_target = (z * self.source).sum(-1), (z * self.target).sum(-1)
        scores = functional.leaky_relu(of_source.index_select(0, source) + of_target.index_select(0, target), 0.2)
        weights = edge_softmax(scores, target, len(x))
        messages = z.index_select(0, source) * weights.unsqueeze(-1)
        return torch.zeros_like(z).index_add(0, target, messages).flatten(1)


def main() -> None:
    """Compile, run graphs of several sizes, and compare with PyTorch."""
    torch.manual_seed(1)
    model = GraphAttention(24, heads=4, width=8).eval()
    with daedal.Device.open("emulator") as device, torch.no_grad():
        run = None
        for nodes, edges in ((100, 600), (30, 90), (500, 2000)):
            inputs = torch.randn(nodes, 24), torch.randint(nodes, (2, edges))
            run = run or daedal.compile(model, inputs, device=device)
            assert torch.equal(run(*inputs), model(*inputs)), "equal bit for bit"
        assert run is not None
        print("\n".join(run.explain().splitlines()[:8]))


if __name__ == "__main__":
    main()
