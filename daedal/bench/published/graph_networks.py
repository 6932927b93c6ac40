"""Graph networks of PyTorch Geometric."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from daedal.bench.published.model import Calls, Door, Made, Published, named, of

NODES, EDGES, COLUMNS, RELATIONS, GRAPHS, HEADS = 300, 1800, 32, 3, 6, 4


def nodes() -> Tensor:
    """Features of all nodes."""
    return torch.randn(NODES, COLUMNS)


def edges() -> Tensor:
    """Sources and destinations, in no order."""
    return torch.randint(NODES, (2, EDGES))


def _layers(kind: str, **options: Any) -> Callable[[], Made]:
    """Two layers of a model that has its layers made by name."""

    def make() -> Made:
        return of("torch_geometric.nn", kind)(COLUMNS, COLUMNS, num_layers=2, **options), (nodes(), edges())

    return make


def _convolution(kind: str, *more: Callable[[], Any], **options: Any) -> Callable[[], Made]:
    """One layer, whose ``forward`` takes what ``more`` make as well."""

    def make() -> Made:
        layer = of("torch_geometric.nn", kind)(COLUMNS, options.pop("out", COLUMNS), **options)
        return layer, (nodes(), edges(), *(each() for each in more))

    return make


def _gin() -> Made:
    layer = nn.Sequential(nn.Linear(COLUMNS, COLUMNS), nn.ReLU(), nn.Linear(COLUMNS, COLUMNS))
    return of("torch_geometric.nn", "GINConv")(layer), (nodes(), edges())


def _edge_convolution() -> Made:
    layer = nn.Sequential(nn.Linear(2 * COLUMNS, COLUMNS), nn.ReLU())
    return of("torch_geometric.nn", "EdgeConv")(layer), (nodes(), edges())


def _light() -> Made:
    model = of("torch_geometric.nn", "LightGCN")(NODES, COLUMNS, 2)
    return Calls(model, lambda model, edge_index: model(edge_index, edge_index)), (edges(),)


def _pooled() -> Made:
    layer, inputs = _gin()
    pool = of("torch_geometric.nn", "global_add_pool")
    batch = torch.arange(NODES) * GRAPHS // NODES

    def call(layer: nn.Module, x: Tensor, edge_index: Tensor, batch: Tensor) -> Any:
        return pool(layer(x, edge_index), batch, size=GRAPHS)

    return Calls(layer, call), (*inputs, batch)


def _adjacency(layout: str) -> Tensor:
    matrix = torch.sparse_coo_tensor(edges(), torch.rand(EDGES), (NODES, NODES)).coalesce()
    return matrix.to_sparse_csr() if layout == "csr" else matrix.to_sparse_csc() if layout == "csc" else matrix


def _sparse(kind: str, layout: str, **options: Any) -> Callable[[], Made]:
    """A layer with a sparse matrix of weights in the place of the edges."""

    def make() -> Made:
        layer = of("torch_geometric.nn", kind)(COLUMNS, COLUMNS, **options)
        return layer, (nodes(), _adjacency(layout))

    return make


def _triples() -> Made:
    model = of("torch_geometric.nn", "kge", "ComplEx")(NODES, RELATIONS, COLUMNS)
    return model, (torch.randint(NODES, (64,)), torch.randint(RELATIONS, (64,)), torch.randint(NODES, (64,)))


def _list() -> list[Published]:
    dense = [
        ("GCN", _layers("GCN")),
        ("GraphSAGE", _layers("GraphSAGE")),
        ("GraphSAGE, max", _layers("GraphSAGE", aggr="max")),
        ("GIN", _gin),
        ("GAT", _layers("GAT", heads=HEADS)),
        ("GATv2", _layers("GAT", v2=True, heads=HEADS)),
        ("TransformerConv", _convolution("TransformerConv", heads=HEADS, out=COLUMNS // HEADS)),
        ("EdgeConv", _edge_convolution),
        ("GraphConv, weighted", _convolution("GraphConv", lambda: torch.rand(EDGES))),
        ("SGConv", _convolution("SGConv", K=2)),
        ("ChebConv", _convolution("ChebConv", K=3)),
        ("RGCNConv", _convolution("RGCNConv", lambda: torch.randint(RELATIONS, (EDGES,)), num_relations=RELATIONS)),
        ("LightGCN", _light),
        ("GIN, pooled by graph", _pooled),
        ("ComplEx", _triples),
    ]
    sparse = [
        ("GCNConv, CSR", _sparse("GCNConv", "csr", normalize=False)),
        ("SAGEConv, CSR", _sparse("SAGEConv", "csr", aggr="sum")),
        ("GraphConv, COO", _sparse("GraphConv", "coo")),
        ("SAGEConv, CSR, mean", _sparse("SAGEConv", "csr")),
        ("SAGEConv, CSC, sum", _sparse("SAGEConv", "csc", aggr="sum")),
    ]
    package = "torch-geometric", "torch_geometric"
    return named(*package, dense) + named(*package, sparse, door=Door.EXPORT)


MODELS = _list()
