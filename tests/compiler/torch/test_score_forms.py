"""Forms in which people write scores: arguments by name and by position, dimensions turned in every way."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

Form = Callable[[Tensor, Tensor], Tensor]

FORMS: dict[str, Form] = {
    "permute, by name": lambda a, b: torch.bmm(a.unsqueeze(1), torch.permute(b.unsqueeze(1), dims=(0, 2, 1))),
    "permute": lambda a, b: torch.bmm(a.unsqueeze(1), b.unsqueeze(1).permute(0, 2, 1)),
    "permute from behind": lambda a, b: torch.bmm(a.unsqueeze(1), b.unsqueeze(1).permute((0, -1, 1))),
    "permute of other dimensions": lambda a, b: a @ b.permute(1, 0),
    "transpose, by name": lambda a, b: torch.bmm(a.unsqueeze(1), b.unsqueeze(1).transpose(dim0=1, dim1=2)),
    "mT": lambda a, b: torch.bmm(a.unsqueeze(1), b.unsqueeze(1).mT),
    "unsqueeze, by name": lambda a, b: torch.bmm(a.unsqueeze(dim=1), b.unsqueeze(dim=-1)),
    "abs and product, by name": lambda a, b: torch.abs(input=torch.mul(input=a, other=b)).sum(-1),
    "square, by name": lambda a, b: torch.square(input=a - b).sum(dim=-1),
    "norm, by name": lambda a, b: torch.linalg.vector_norm(x=a - b, ord=2, dim=-1),
    "einsum of a list": lambda a, b: torch.einsum("bd,bd->b", [a, b]),
    "einsum of sublists": lambda a, b: torch.einsum(a, [0, 1], b, [0, 1], [0]),
}


class Score(nn.Module):
    """A score of rows of two tables."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.first, self.second, self.form = nn.Embedding(50, 64), nn.Embedding(50, 64), form

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return self.form(self.first(first), self.second(second))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("exact", [True, False])
def test_a_form(name: str, exact: bool, ddr3: daedal.Device) -> None:
    module, inputs = Score(FORMS[name]), (torch.tensor([3, 1, 49]), torch.tensor([3, 7, 0]))
    torch._dynamo.reset()
    with torch.no_grad():
        expected = module(*inputs)
        traced = daedal.compile(module, inputs, device=ddr3, exact=exact)
        compiled = torch.compile(module, backend="daedal", options={"device": ddr3, "exact": exact})
        for found in (traced(*inputs), compiled(*inputs)):
            if exact:
                assert torch.equal(found, expected)
            else:
                assert torch.allclose(found, expected, rtol=1e-4, atol=1e-4)
    if not exact and "other" not in name and "mT" not in name and "sublists" not in name:
        assert traced.stats.launches == 1 and traced.stats.bytes_written < 256, "the rows are copied out"
