"""``exact=False``: scores of looked-up rows, in one launch, from which no row comes back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.reduction import reduce
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

Tables = nn.ModuleList
Form = Callable[..., Any]


class Scores(nn.Module):
    """Embeddings of this width, and a function of them and of the inputs."""

    def __init__(self, form: Form, width: int, tables: int = 4) -> None:
        super().__init__()
        self.e = nn.ModuleList([nn.Embedding(30 + n, width) for n in range(tables)])
        self.form = form

    def forward(self, *inputs: Tensor) -> Any:
        return self.form(self.e, *inputs)


def complex_score(e: Tables, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    hr, hi, rr, ri, tr, ti = e[0](h), e[1](h), e[2](r), e[3](r), e[0](t), e[1](t)
    return (hr * rr * tr + hi * rr * ti + hr * ri * ti - hi * ri * tr).sum(-1)


FORMS: dict[str, tuple[Form, tuple[int, ...]]] = {
    "factors": (lambda e, u, i: (e[0](u) * e[1](i)).sum(-1), (1, 1)),
    "factors, 2-D": (lambda e, u, i: torch.mul(e[0](u), e[1](i)).sum(2, keepdim=True), (2, 2)),
    "mean": (lambda e, u, i: (e[0](u) * e[1](i)).mean(dim=1), (1, 1)),
    "bmm": (lambda e, u, i: torch.bmm(e[0](u).unsqueeze(1), e[1](i).unsqueeze(2)).squeeze(), (1, 1)),
    "negatives": (lambda e, u, i: torch.bmm(e[1](i).neg(), e[0](u).unsqueeze(2)).squeeze(2), (1, 2)),
    "matmul": (lambda e, u, i: (e[0](u).unsqueeze(1) @ e[1](i).transpose(1, 2)).squeeze(1), (1, 2)),
    "permute": (lambda e, u, i: torch.bmm(e[0](u).unsqueeze(1), e[1](i).permute(0, 2, 1)), (1, 2)),
    "broadcast": (lambda e, u, i: (e[0](u).unsqueeze(1) * e[1](i)).sum(-1), (1, 2)),
    "einsum": (lambda e, u, i: torch.einsum("bd,bkd->bk", e[0](u), e[1](i)), (1, 2)),
    "DistMult": (lambda e, h, r, t: torch.einsum("bd,bd,bd->b", e[0](h), e[1](r), e[0](t)), (1, 1, 1)),
    "DistMult, tails": (lambda e, h, r, t: ((e[0](h) * e[1](r)).unsqueeze(1) * e[0](t)).sum(-1), (1, 1, 2)),
    "ComplEx": (complex_score, (1, 1, 1)),
    "TransE": (lambda e, h, r, t: -torch.norm(e[0](h) + e[1](r) - e[0](t), p=1, dim=-1), (1, 1, 1)),
    "TransE, 2": (lambda e, h, r, t: (e[0](h) + e[1](r) - e[0](t)).norm(p=2, dim=1), (1, 1, 1)),
    "linalg": (lambda e, h, t: torch.linalg.norm(e[0](h) - e[1](t), ord=1, dim=-1), (1, 1)),
    "vector_norm": (lambda e, h, t: torch.linalg.vector_norm(e[0](h) - e[1](t), dim=-1, keepdim=True), (1, 1)),
    "distance": (lambda e, h, t: 1 - (e[0](h) - e[1](t)).abs().sum(-1), (1, 1)),
    "squares": (lambda e, h, t: ((e[0](h) - e[1](t)) ** 2).sum(-1), (1, 1)),
    "numbers": (lambda e, h, t: (2.0 * e[0](h) * e[1](t) - 0.25).sum(-1), (1, 1)),
    "negative indices": (lambda e, h, t: (e[0].weight[h - 9] * e[1].weight[t]).sum(-1), (1, 1)),
    "one table": (lambda e, h, t: (e[0](h) * e[0](t)).sum(-1), (1, 1)),
}


def inputs_for(dims: tuple[int, ...], rng: np.random.Generator, dtype: Any = np.int64) -> list[Tensor]:
    """Indices of so many dimensions; those of two have seven for each of the first."""
    return [torch.from_numpy(rng.integers(0, 30, (12, 7)[:dim]).astype(dtype)) for dim in dims]


@pytest.mark.parametrize("name", FORMS)
def test_is_one_launch(ddr3: daedal.Device, name: str, rng: np.random.Generator) -> None:
    form, dims = FORMS[name]
    model, inputs = Scores(form, int(rng.integers(64, 130))).eval(), inputs_for(dims, rng)
    with torch.no_grad():
        executable = daedal.compile(model, tuple(inputs), device=ddr3, exact=False)
        for given in (inputs, inputs_for(dims, rng)):
            found, wanted = executable(*given), model(*given)
            assert found.shape == wanted.shape
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
            assert executable.stats.launches == 1
    assert len(executable.offloaded) == 1
    assert "in 1 launch" in executable.explain()


def skip_gram(e: Tables, centre: Tensor, context: Tensor, negatives: Tensor) -> Tensor:
    rows = e[0](centre).unsqueeze(2)
    found = torch.bmm(e[1](context).unsqueeze(1), rows).squeeze(), torch.bmm(e[1](negatives).neg(), rows).squeeze(2)
    return nn.functional.logsigmoid(found[0]) + nn.functional.logsigmoid(found[1]).sum(1)


def test_scores_share_rows(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model, inputs = Scores(skip_gram, 64).eval(), inputs_for((1, 1, 2), rng)
    with torch.no_grad():
        executable = daedal.compile(model, tuple(inputs), device=ddr3, exact=False)
        torch.testing.assert_close(executable(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)
    assert executable.offloaded == ("bmm", "bmm_1")


def test_bits_are_those_of_the_tree(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model = Scores(FORMS["factors"][0], 80).eval()
    users, items = inputs_for((1, 1), rng, np.int32)
    with torch.no_grad():
        found = daedal.compile(model, (users, items), device=ddr3, exact=False)(users, items)
        rows = model.e[0](users).numpy(), model.e[1](items).numpy()
    assert np.array_equal(found.numpy(), reduce(VectorOp.MUL_ADD, *rows))


@pytest.mark.parametrize("name", ["factors", "negatives", "TransE", "matmul", "einsum"])
def test_exact_is_as_before(ddr3: daedal.Device, name: str, rng: np.random.Generator) -> None:
    form, dims = FORMS[name]
    model, inputs = Scores(form, 64).eval(), inputs_for(dims, rng)
    with torch.no_grad():
        executable = daedal.compile(model, tuple(inputs), device=ddr3)
        assert torch.equal(executable(*inputs), model(*inputs))
    assert executable.stats.launches == 1
    assert "PyTorch adds along a row in an order of its own" in executable.explain()
    assert "exact=False" in "\n".join(executable.explain().splitlines()[:10])


LEFT: dict[str, tuple[Form, tuple[int, ...], int]] = {
    "rows that are used again": (lambda e, u, i: (e[0](u) * (x := e[1](i))).sum(-1) + x[:, 0], (1, 1), 64),
    "another power": (lambda e, u, i: torch.norm(e[0](u) - e[1](i), p=3, dim=-1), (1, 1), 64),
    "other dimensions": (lambda e, u, i: (e[0](u) * e[1](i)).sum(0), (1, 1), 64),
    "products of all with all": (lambda e, u, i: torch.bmm(e[0](u), e[1](i).transpose(1, 2)), (2, 2), 64),
    "few elements": (lambda e, u, i: (e[0](u) * e[1](i)).sum(-1), (1, 1), 16),
}


@pytest.mark.parametrize("name", LEFT)
def test_others_are_gathers(ddr3: daedal.Device, name: str, rng: np.random.Generator) -> None:
    form, dims, width = LEFT[name]
    model, inputs = Scores(form, width).eval(), inputs_for(dims, rng)
    with torch.no_grad():
        executable = daedal.compile(model, tuple(inputs), device=ddr3, exact=False)
        assert torch.equal(executable(*inputs), model(*inputs))
    assert all(node.startswith("embedding") for node in executable.offloaded)
    assert executable.stats.launches == 1


def test_a_bad_index_is_named(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model, (heads, kinds, tails) = Scores(FORMS["TransE"][0], 64).eval(), inputs_for((1, 1, 1), rng)
    with torch.no_grad():
        executable = daedal.compile(model, (heads, kinds, tails), device=ddr3, exact=False)
        for position, (bad, rows) in enumerate([(31, 30), (-1, 31), (30, 30)]):
            given = [heads.clone(), kinds.clone(), tails.clone()]
            given[position][5] = bad
            with pytest.raises(daedal.IndexOutOfRange, match=rf"index {bad} .*has {rows} rows\); it is number 5"):
                executable(*given)
        torch.testing.assert_close(executable(heads, kinds, tails), model(heads, kinds, tails), rtol=1e-4, atol=1e-4)


def test_tables_are_read_as_they_are(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    model, inputs = Scores(FORMS["factors"][0], 64).eval(), inputs_for((1, 1), rng)
    with torch.no_grad():
        executable = daedal.compile(model, tuple(inputs), device=ddr3, exact=False)
        for table in (0, 1):
            executable(*inputs)
            model.e[table].weight *= 2
            torch.testing.assert_close(executable(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)
        assert executable(*(each[:0] for each in inputs)).shape == (0,)
    with pytest.raises(daedal.UnsupportedOperation, match="a file cannot hold"):
        executable.save("never.daedal")


def test_with_torch_compile(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    for name in ("factors", "negatives", "TransE", "einsum", "squares"):
        torch._dynamo.reset()
        form, dims = FORMS[name]
        model, inputs = Scores(form, 64).eval(), inputs_for(dims, rng)
        options = {"device": ddr3, "exact": False}
        with torch.no_grad():
            compiled = torch.compile(model, backend="daedal", options=options)
            torch.testing.assert_close(compiled(*inputs), model(*inputs), rtol=1e-4, atol=1e-4)


def test_a_system_has_gathers(rng: np.random.Generator) -> None:
    model, inputs = Scores(FORMS["factors"][0], 64).eval(), inputs_for((1, 1), rng)
    with daedal.System.open("emulator", config="ddr3", tiles=2) as system, torch.no_grad():
        executable = daedal.compile(model, tuple(inputs), device=system, exact=False)
        assert torch.equal(executable(*inputs), model(*inputs))
        assert executable.offloaded == ("embedding", "embedding_1")


@pytest.mark.parametrize(("config", "width", "most"), [("minimum", 64, 0), ("edge", 100, 64)])
def test_a_smaller_machine_has_gathers(config: str, width: int, most: int, rng: np.random.Generator) -> None:
    model, inputs = Scores(FORMS["factors"][0], width).eval(), inputs_for((1, 1), rng)
    with daedal.Device.open("emulator", config=config) as small, torch.no_grad():
        executable = daedal.compile(model, tuple(inputs), device=small, exact=False)
        assert torch.equal(executable(*inputs), model(*inputs))
        assert executable.offloaded == ("embedding", "embedding_1")
        assert f"rows of {width} elements are not added up here, but at most of {most}" in executable.explain()
