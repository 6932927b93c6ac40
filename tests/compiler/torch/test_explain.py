"""What ``explain()`` says: a summary of at most ten lines first, never nothing, and passes on request."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.runtime.explanation import SUMMARY_LINES, Explanation
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]

INDICES = torch.arange(8)

LEFT: dict[str, tuple[Callable[[Tensor], Tensor], Tensor, str]] = {
    "one dimension": (lambda t: t[INDICES], torch.randn(50), "2 dimensions or more"),
    "columns": (lambda t: t.index_select(1, INDICES), torch.randn(50, 32), "along dim 0, not 1"),
    "indexed columns": (lambda t: t[:, INDICES], torch.randn(50, 32), "in the first place"),
    "two tensors": (lambda t: t[INDICES, INDICES], torch.randn(50, 32), "in the first place"),
    "gather": (lambda t: t.gather(1, t.argsort(1)), torch.randn(50, 32), "along dim 0"),
    "put": (
        lambda t: t.index_put((INDICES,), torch.ones(8, 32), accumulate=True),
        torch.randn(50, 32),
        "zeros made for it",
    ),
    "scatter": (lambda t: t.scatter(0, t.argsort(0), t), torch.randn(9, 4), "one by one"),
    "take": (lambda t: t.take(INDICES), torch.randn(9, 4), "one by one"),
    "onto others": (lambda t: t.index_add(0, INDICES, t[:8]), torch.randn(50, 32), "zeros made for it"),
    "nothing of the kind": (lambda t: (t @ t.T).relu(), torch.randn(5, 4), "it has "),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_stays_has_a_reason(ddr3: daedal.Device, case: str) -> None:
    function, table, reason = LEFT[case]
    compiled = torch.compile(function, backend="daedal", options={"device": ddr3})
    with torch.no_grad():
        assert torch.equal(compiled(table), function(table))
    told = daedal.graphs(ddr3)[-1].explain().splitlines()
    assert reason in told[0] or reason in told[1]


class Many(nn.Module):
    """More tables than a summary names."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(9, 4, max_norm=1.0 if n % 3 == 0 else None) for n in range(30))

    def forward(self, indices: Tensor, offsets: Tensor) -> list[Tensor]:
        return [table(indices, offsets) for table in self.tables]


def test_a_summary_comes_first_and_is_short(ddr3: daedal.Device) -> None:
    module, inputs = Many(), (torch.tensor([1, 2, 3]), torch.tensor([0, 2]))
    executable = daedal.compile(module, inputs, device=ddr3)
    executable(*inputs)
    lines = executable.explain().splitlines()
    assert lines[0] == f"device: 20 of 30 operations, in {executable.stats.launches} launches"
    behind = next(number for number, line in enumerate(lines) if ": on the device" in line)
    assert behind <= SUMMARY_LINES and sum("tables.3.weight" in line for line in lines[behind:]) == 1
    assert any(line.startswith("PyTorch: ") and "max_norm" in line and "more" in line for line in lines[:behind])
    assert not any("pass lower-emb" in line for line in lines) and "pass lower-emb" in executable.explain(passes=True)


def test_a_summary_has_room_for_both() -> None:
    """However many launches and reasons there are."""
    labels = {f"node_{n}": f"node_{n} of table_{n}" for n in range(40)}
    for launches in (0, 1, 4, 20):
        for reasons in (0, 1, 5, 30):
            parts = [[f"node_{2 * n}", f"node_{2 * n + 1}"] for n in range(launches)]
            why = {f"other_{n}": f"reason {n}" for n in range(reasons)}
            summary = Explanation(labels, parts, why).summary
            assert 1 <= len(summary) <= SUMMARY_LINES
            assert any("reason" in line for line in summary[1:]) == (reasons > 0)
            assert any("launch" in line for line in summary[1:]) == (launches > 1)
