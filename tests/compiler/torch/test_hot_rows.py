"""Hot rows: tables renumbered by a sample give the bits that they gave, and batches are sorted by what they read."""

import copy
import io
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import daedal
from daedal.compiler.frontends.torch.hot.numbering import places_of

Batch = tuple[Tensor, Tensor, Tensor, Tensor]


class Model(nn.Module):
    """Bags with padding, rows, and bags of int32 of a shared table."""

    def __init__(self) -> None:
        super().__init__()
        self.pooled = nn.EmbeddingBag(300, 16, mode="mean", padding_idx=3, sparse=True)
        self.single = nn.Embedding(50, 8, sparse=True)
        self.shared = nn.EmbeddingBag(300, 16, mode="sum", sparse=True)
        self.shared.weight = self.pooled.weight
        self.top = nn.Linear(40, 1)

    def forward(self, bags: Tensor, offsets: Tensor, rows: Tensor, fixed: Tensor) -> Tensor:
        found = [self.pooled(bags, offsets), self.single(rows), self.shared(input=fixed)]
        result: Tensor = self.top(torch.cat(found, 1))
        return result


def batch(seed: int, size: int = 24) -> Batch:
    """Inputs of a model, with more of the low rows; the last bags are empty."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(rows: int, *shape: int) -> Tensor:
        return (torch.rand(shape, generator=generator) ** 4 * rows).long()

    offsets = (torch.arange(size) * 5).clamp(max=size * 4)
    return drawn(300, size * 4), offsets, drawn(50, size), drawn(300, size, 4).int()


SAMPLE = [batch(seed) for seed in range(6)]


def made() -> Model:
    torch.manual_seed(5)
    return Model()


def test_results_state_and_copies_keep_the_users_numbers() -> None:
    model, plain = made(), made()
    weights = copy.deepcopy(model.state_dict())
    hot = daedal.hot_rows(model, SAMPLE, bytes=4000)
    assert not torch.equal(model.pooled.weight, plain.pooled.weight)
    pickled = io.BytesIO()
    torch.save(model, pickled)
    pickled.seek(0)
    loaded = made()
    loaded.load_state_dict(model.state_dict())
    other = copy.deepcopy(model)
    other.load_state_dict({name: torch.zeros_like(value) for name, value in weights.items()})
    other.load_state_dict(weights)
    for each in (model, loaded, other, copy.deepcopy(model), torch.load(pickled, weights_only=False)):
        for name, value in each.state_dict().items():
            assert torch.equal(value, weights[name]), name
        for inputs in SAMPLE:
            assert torch.equal(each(*inputs), plain(*inputs))
    hot.remove()
    assert torch.equal(model.pooled.weight, plain.pooled.weight) and torch.equal(model(*SAMPLE[0]), plain(*SAMPLE[0]))
    daedal.hot_rows(model, SAMPLE, bytes=4000)


def test_hot_rows_are_the_most_read_ones_that_fit() -> None:
    model = made()
    hot = daedal.hot_rows(model, SAMPLE, bytes=4000)
    shared, single = hot.tables
    assert shared.names == ("pooled", "shared") and single.names == ("single",)
    assert 4000 - 64 < hot.hot_bytes <= 4000 and 0 < hot.share < 1
    reads = torch.cat([flat for bags, _, _, fixed in SAMPLE for flat in (bags[bags != 3], fixed.long().reshape(-1))])
    counts = reads.bincount(minlength=300)
    first = places_of(model.pooled) < shared.hot_rows
    assert shared.lookups == len(reads) and shared.hot_lookups == int(counts[first].sum())
    assert int(counts[first].min()) >= int(counts[~first].max())
    assert "4,000" not in hot.explain() and "pooled, shared: " in hot.explain()


def test_rows_that_nobody_reads_are_not_hot() -> None:
    model = nn.Embedding(100, 4)
    hot = daedal.hot_rows(model, torch.tensor([7, 7, 9]), bytes=1 << 20)
    assert [table.hot_rows for table in hot.tables] == [2] and hot.tables[0].names == ("weight",)
    assert places_of(model)[[7, 9]].tolist() == [0, 1] and hot.share == 1


def test_training_goes_on_with_the_same_bits_and_an_optimizer_follows() -> None:
    model, plain = made(), made()
    before = [torch.optim.Adam(each.top.parameters()) for each in (model, plain)]
    tables = [torch.optim.SparseAdam([each.pooled.weight, each.single.weight], lr=0.05) for each in (model, plain)]

    def step(each: Model, number: int, inputs: Batch) -> None:
        each(*inputs).square().sum().backward()
        for optimizer in (before[number], tables[number]):
            optimizer.step()
            optimizer.zero_grad()

    for number, each in enumerate((model, plain)):
        step(each, number, SAMPLE[0])
    hot = daedal.hot_rows(model, SAMPLE, bytes=4000)
    hot.follow(tables[0])
    for number, each in enumerate((model, plain)):
        for inputs in SAMPLE:
            step(each, number, inputs)
    assert torch.allclose(model.state_dict()["pooled.weight"], plain.pooled.weight, rtol=0, atol=1e-6)
    ours, theirs = (optimizer.state_dict() for optimizer in tables)
    for number in (0, 1):
        assert torch.allclose(ours["state"][number]["exp_avg"], theirs["state"][number]["exp_avg"], rtol=0, atol=1e-6)
    rows = tables[0].state[model.single.weight]["exp_avg"]
    assert not torch.allclose(rows, theirs["state"][1]["exp_avg"], rtol=0, atol=1e-6)
    tables[0].load_state_dict(ours)
    assert torch.equal(tables[0].state[model.single.weight]["exp_avg"], rows)


def test_samples_and_batches_are_sorted_by_what_they_read() -> None:
    model = nn.EmbeddingBag(20, 4, mode="sum")
    data = TensorDataset(torch.tensor([[1, 2], [1, 9], [2, 2], [9, 9], [2, 1], [5, 5], [1, 1]]))
    hot = daedal.hot_rows(model, [torch.tensor([[1, 2], [2, 1], [1, 9]])], bytes=2 * 16)
    assert hot.is_hot(data.tensors[0]).tolist() == [True, False, True, False, True, False, True]
    assert hot.is_hot(torch.tensor([1, 9, 2]), torch.tensor([0, 1, 3])).tolist() == [True, False, True]
    assert hot.lookups(data.tensors[0]) == (9, 14)
    batches = hot.batches(data, 3)
    assert list(batches) == [[0, 2, 4], [6], [1, 3, 5]] and len(batches) == 3 and batches.hot_batches == 2
    drawn = hot.batches(data, 2, shuffle=True, generator=torch.Generator().manual_seed(1))
    for _ in range(3):
        numbers = list(drawn)
        assert sorted(each for one in numbers for each in one) == list(range(7)) and len(numbers) == len(drawn)
        assert all(len({bool(drawn.is_hot[each]) for each in one}) == 1 for one in numbers)
    for (rows,) in DataLoader(data, batch_sampler=batches):
        assert len(set(hot.is_hot(rows).tolist())) == 1


def test_compiled_models_take_them() -> None:
    model, plain = made(), made()
    daedal.hot_rows(model, SAMPLE, bytes=4000)
    with daedal.Device.open("emulator", config="edge") as device:
        executable = daedal.compile(model, SAMPLE[0], device=device)
        for inputs in SAMPLE:
            assert torch.equal(executable(*inputs), plain(*inputs))
        assert executable.stats.launches == 1 and executable.stats.rows > 0


class Tied(nn.Module):
    """A table that is an output layer as well."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(9, 4)

    def forward(self, indices: Tensor) -> Tensor:
        return self.rows(indices) @ self.rows.weight.t()


def _again() -> object:
    model = nn.Embedding(9, 4)
    daedal.hot_rows(model, torch.tensor([1]), bytes=99)
    return daedal.hot_rows(model, torch.tensor([1]), bytes=99)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no module": (lambda: daedal.hot_rows(3, SAMPLE, bytes=99), "torch.nn.Module, not int"),  # type: ignore[arg-type]
    "no table": (lambda: daedal.hot_rows(nn.Linear(3, 3), SAMPLE, bytes=99), "which Linear has not"),
    "bytes": (lambda: daedal.hot_rows(nn.Embedding(9, 4), torch.tensor([1]), bytes=15), "16 or more"),
    "bool": (lambda: daedal.hot_rows(nn.Embedding(9, 4), torch.tensor([1]), bytes=True), "16 or more"),
    "no batch": (lambda: daedal.hot_rows(nn.Embedding(9, 4), [], bytes=99), "a batch of the model's inputs, not none"),
    "index": (lambda: daedal.hot_rows(nn.Embedding(9, 4), torch.tensor([9]), bytes=99), "inputs of the model: index"),
    "inputs": (lambda: daedal.hot_rows(nn.Embedding(9, 4), {"x": 1}, bytes=99), "inputs of the model: "),
    "twice": (_again, "its own numbering: call remove()"),
    "weight": (lambda: daedal.hot_rows(Tied(), torch.tensor([7, 7]), bytes=99), "by their modules alone"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_an_error_in_a_line(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises((daedal.DaedalError, ValueError)) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_refused_model_is_as_it_was() -> None:
    model = Tied()
    weight, state = model.rows.weight.clone(), set(model.__dict__) | set(model.rows.__dict__)
    with pytest.raises(daedal.UnsupportedOperation):
        daedal.hot_rows(model, torch.tensor([7, 7]), bytes=99)
    assert torch.equal(model.rows.weight, weight) and not list(model.rows.named_buffers())
    assert not model.rows._forward_pre_hooks and set(model.__dict__) | set(model.rows.__dict__) == state


def test_batches_want_as_many_samples_as_were_given() -> None:
    model = nn.Embedding(9, 4)
    hot = daedal.hot_rows(model, torch.tensor([1]), bytes=99)
    data = TensorDataset(torch.tensor([[1, 2], [1, 9]]))
    with pytest.raises(daedal.UnsupportedOperation, match="inputs of 2 samples, not of 3"):
        hot.batches(data, 2, collate_fn=lambda samples: torch.tensor([1, 2, 3]))
    with pytest.raises(ValueError, match="batch_size must be a number from 1, not 0"):
        hot.batches(data, 0)
