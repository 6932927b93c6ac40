"""Operations over graphs and blocks as modules of PyTorch, for ``daedal.compile(module, inputs)``."""

import torch
from torch import Tensor, nn


class SparseProduct(nn.Module):
    """A sparse matrix, such as a graph's weighted adjacency, times the nodes' features."""

    def __init__(self, features: Tensor) -> None:
        super().__init__()
        self.features = nn.Parameter(features, requires_grad=False)

    def forward(self, adjacency: Tensor) -> Tensor:
        """The product, a row for each row of the matrix in COO."""
        product: Tensor = torch.sparse.mm(adjacency, self.features)
        return product


class GraphConvolution(nn.Module):
    """Weighted messages along edges, added up where they end: how PyTorch Geometric writes a convolution."""

    def __init__(self, features: Tensor, nodes: int) -> None:
        super().__init__()
        self.features = nn.Parameter(features, requires_grad=False)
        self.nodes = nodes

    def forward(self, sources: Tensor, destinations: Tensor, weights: Tensor) -> Tensor:
        """The sums, a row for each node that edges may end at."""
        out = torch.zeros(self.nodes, self.features.shape[1])
        return out.index_add(0, destinations, self.features.index_select(0, sources) * weights.view(-1, 1))


class BlockGather(nn.Module):
    """The blocks of keys and values that each block of queries attends to, as BigBird gathers them."""

    def forward(self, keys: Tensor, values: Tensor, blocks: Tensor) -> tuple[Tensor, Tensor]:
        """A row for each block that ``blocks`` names; so keys and values have a row for each block of tokens."""
        return keys.index_select(0, blocks), values.index_select(0, blocks)
