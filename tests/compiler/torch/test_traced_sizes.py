"""Modules that read sizes are traced without ``torch.export``, and work as PyTorch does for all sizes."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from daedal.compiler.frontends.torch.trace.plain_trace import plain_trace
from tests.compiler.layers.compiler_support import ddr3, same_bits
from tests.compiler.torch.test_plain_traces import exports

__all__ = ["ddr3", "exports"]

ROWS, DIM = 20, 4

Forward = Callable[["Model", Tensor, list[Tensor]], Any]


class Model(nn.Module):
    """Two tables of the same bags, and what becomes of dense features and pooled rows."""

    def __init__(self, rest: Forward, tables: int = 2) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, DIM, mode="sum") for _ in range(tables))
        self.rest = rest

    def forward(self, dense: Tensor, indices: list[Tensor], offsets: list[Tensor]) -> Any:
        pooled = [self.tables[k](indices[k], offsets[k]) for k in range(len(self.tables))]
        return self.rest(self, dense, pooled)


def inputs(bags: int, tables: int = 2) -> tuple[Any, ...]:
    indices = [torch.randint(0, ROWS, (2 * bags,)) for _ in range(tables)]
    return torch.randn(bags, DIM), indices, [torch.arange(0, 2 * bags, 2) for _ in range(tables)]


def interaction(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    """As in DLRM."""
    batch, width = x.shape
    rows = torch.cat([x, *pooled], dim=1).view((batch, -1, width))
    products = torch.bmm(rows, torch.transpose(rows, 1, 2))
    _, n, m = products.shape
    li = torch.tensor([i for i in range(n) for j in range(i)])
    lj = torch.tensor([j for i in range(m) for j in range(i)])
    return torch.cat([x, products[:, li, lj]], dim=1)


def stacked(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    rows = torch.stack([x, *pooled], 1)
    batch, count = rows.size(0), rows.size(-2)
    return (rows @ rows.mT).reshape(batch, count * count) / math.sqrt(x.shape[-1])


def halves(model: Model, x: Tensor, pooled: list[Tensor]) -> tuple[Tensor, ...]:
    n = x.shape[0]
    return x[: n // 2], pooled[0][n // 2 :], pooled[1][-n:], x[(n + 1) // 2 - 1]


def made(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    """Tensors of numbers, of sizes of others."""
    n = pooled[0].size(dim=0)
    ones = torch.ones(n, 1) + torch.arange(n, dtype=x.dtype, device=x.device).unsqueeze(-1)
    return torch.cat([x.new_zeros(n, 2), ones, torch.full((n, 1), 3.0), pooled[1].expand(n, -1)], 1)


def shapes(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    assert x.shape == pooled[0].shape and x.dim() == x.ndim == 2 and x.dtype is torch.float32
    return pooled[0].reshape(*x.shape[:-1], 2, x.shape[-1] // 2).flatten(1).view(x.size()).contiguous()


def of_own(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    """Sizes of the module's own tensors."""
    rows, width = model.tables[0].weight.shape
    return (pooled[0] * width).view(-1, width) + torch.zeros(x.size(0), width).add(rows)


def layers(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    """Functions that are written in Python, some of which do nothing."""
    found = functional.layer_norm(pooled[0], x.shape[-1:])
    return functional.softmax(functional.dropout(functional.gelu(found), 0.5, training=False), dim=-1) * x


OPEN = (interaction, stacked, halves, made, shapes, of_own, layers)
"""These have one trace for all numbers of bags."""


def above(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    return pooled[0] if x.shape[0] > 5 else pooled[0] + x


def of_results(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    """What is asked cannot be told from the inputs' sizes."""
    both = torch.cat(pooled)
    return both if len(both) > 10 else both * 2


def looped(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    return torch.cat([pooled[0][k : k + 1] * k for k in range(x.shape[0])])


def in_words(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    return pooled[0] * len(f"{x.size(0)} bags") + int(str(x.size(0)))


def combined(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    n = x.shape[0]
    if n % 3 == 0 or -n < -8:
        return pooled[0] - max(n, 7)
    return pooled[0] * (1 if (n + 2) * 2 - 1 != 9 and n in (2, 4) else 3) + int(n) + float(n)


def caught(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    try:
        return pooled[0] if x.shape[0] > 3 else pooled[0] * 2
    except Exception:
        return pooled[0] * 3


def elements(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    return pooled[0] + x.numel() + 1 / x.shape[0]


def an_option(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
    """Whether the end of the last bag is among the offsets."""
    indices, offsets = torch.arange(x.shape[0]), torch.arange(0, x.shape[0], 2)
    found = functional.embedding_bag(
        indices, model.tables[0].weight, offsets, mode="sum", include_last_offset=x.shape[0] > 5
    )
    return torch.cat([found.sum(0, keepdim=True), pooled[0]])


FIXED = (an_option, above, of_results, looped, in_words, combined, caught, elements)
"""These are not the same for all numbers of bags."""


@pytest.mark.parametrize("rest", OPEN)
def test_one_trace_for_all_sizes(ddr3: daedal.Device, exports: list[nn.Module], rest: Forward) -> None:
    module = Model(rest)
    with torch.no_grad():
        executable = daedal.compile(module, inputs(4), device=ddr3)
        for bags in (4, 3, 1, 50, 4, 2):
            given = inputs(bags)
            ours, theirs = executable(*given), module(*given)
            pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
            assert all(same_bits(a, b) and a.shape == b.shape for a, b in pairs)
            assert executable.stats.launches == 1
        assert executable.offloaded == ("embedding_bag", "embedding_bag_1")
    assert not exports


@pytest.mark.parametrize("rest", OPEN)
def test_a_trace_is_plain_and_linear(rest: Forward) -> None:
    nodes = []
    for tables in (2, 12, 22):
        with torch.no_grad():
            found = plain_trace(Model(rest, tables), inputs(4, tables))
        assert found is not None
        nodes.append(len(found[0].graph.nodes))
    assert nodes[2] - nodes[1] == nodes[1] - nodes[0] <= 10 * 4


@pytest.mark.parametrize("rest", FIXED)
def test_what_depends_on_sizes(ddr3: daedal.Device, rest: Forward) -> None:
    module = Model(rest)
    with torch.no_grad():
        executable = daedal.compile(module, inputs(4), device=ddr3)
        for bags in (4, 3, 9, 12, 2, 4, 1, 6, 3, 9):
            given = inputs(bags)
            ours, theirs = executable(*given), module(*given)
            assert same_bits(ours, theirs) and ours.shape == theirs.shape


class Chosen(nn.Module):
    """Which of two tables is looked at depends on how many bags there are; one has fewer rows."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.EmbeddingBag(3, DIM, mode="sum"), nn.EmbeddingBag(ROWS, DIM, mode="sum")

    def forward(self, indices: Tensor, offsets: Tensor) -> Tensor:
        both = self.large(indices, offsets)
        return torch.cat([both, self.small(indices, offsets) if offsets.shape[0] < 3 else both], 1)


def test_sizes_are_checked_before_launches(ddr3: daedal.Device) -> None:
    """The launch of another number of bags would have an index that the small table does not have."""
    module, few = Chosen(), (torch.tensor([0, 2, 1]), torch.tensor([0, 2]))
    many = torch.tensor([19, 2, 1, 7]), torch.tensor([0, 2, 3])
    with torch.no_grad():
        executable = daedal.compile(module, few, device=ddr3)
        for given in (few, many, few, many):
            assert same_bits(executable(*given), module(*given))
        with pytest.raises(daedal.IndexOutOfRange, match="index 7 is out of range"):
            executable(torch.tensor([7, 2, 1]), few[1])


def test_bags_that_do_not_fit_each_other(ddr3: daedal.Device) -> None:
    """What PyTorch says of sizes is PyTorch's to say."""
    module = Model(interaction)
    with torch.no_grad():
        executable = daedal.compile(module, inputs(4), device=ddr3)
        dense, indices, offsets = inputs(4)
        for given in ((dense[:3], indices, offsets), (dense, indices, [offsets[0], offsets[1][:2]])):
            with pytest.raises(RuntimeError) as theirs:
                module(*given)
            with pytest.raises(RuntimeError) as ours:
                executable(*given)
            assert str(ours.value) == str(theirs.value)
        assert same_bits(executable(dense, indices, offsets), module(dense, indices, offsets))


HASHED: dict[str, Callable[[int, int], bool]] = {
    "set": lambda a, b: len({a, b}) == 1,
    "member": lambda a, b: a in {b},
    "dictionary": lambda a, b: {a: True}.get(b, False),
    "hash": lambda a, b: hash(a) == hash(b),
}


@pytest.mark.parametrize("name", HASHED)
def test_hashed_sizes_are_refused(name: str, ddr3: daedal.Device) -> None:
    """No trace would find equal sizes the same."""

    def both(model: Model, x: Tensor, pooled: list[Tensor]) -> Tensor:
        same = HASHED[name](pooled[0].shape[0], pooled[1].shape[0])
        return torch.cat(pooled, 1) if same else pooled[0]

    with pytest.raises(daedal.UnsupportedOperation, match=r"cannot be traced: TypeError: .*; torch.compile"):
        daedal.compile(Model(both), inputs(3), device=ddr3)
