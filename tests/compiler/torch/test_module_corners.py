"""Modules and inputs that PyTorch takes and that a trace may stumble over."""

import copy
from collections.abc import Iterator
from threading import Barrier, Thread
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.nn import functional

import daedal
from daedal.compiler.frontends.torch.ops import pooled_lookups
from daedal.compiler.frontends.torch.trace.guards import with_guards


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", config="ddr3") as device:
        yield device


class Added(nn.Module):
    def forward(self, rows: Tensor, keys: Tensor) -> Tensor:
        return rows.new_zeros(5, rows.shape[1]).index_add(0, keys, rows)


class LookedUp(nn.Module):
    def forward(self, table: Tensor, indices: Tensor) -> Tensor:
        return functional.embedding(indices, table) * 2


@pytest.mark.parametrize("module", [Added(), LookedUp()], ids=["added", "looked-up"])
def test_examples_that_are_views(device: daedal.Device, module: nn.Module) -> None:
    view, whole, keys = torch.randn(17, 4)[:, :2], torch.randn(17, 2), torch.randint(5, (17,))
    for example, other in ((view, whole), (whole, view)):
        executable = daedal.compile(module, (example, keys), device=device)
        for table in (example, other, example):
            assert torch.equal(executable(table, keys), module(table, keys))


def test_a_program_exported_with_a_view(device: daedal.Device) -> None:
    view, keys = torch.randn(17, 4)[:, :2], torch.randint(5, (17,))
    executable = daedal.compile(torch.export.export(Added(), (view, keys)), (view, keys), device=device)
    assert torch.equal(executable(view, keys), Added()(view, keys))
    assert torch.equal(executable(view.clone(), keys), Added()(view, keys))


def test_a_graph_without_checks_gets_its_own() -> None:
    examples = torch.randn(5, 2), torch.randint(5, (4,))
    graph = with_guards(torch.export.export(LookedUp(), examples).module(check_guards=False), examples)
    assert graph(torch.ones(5, 2), torch.tensor([1, 2, 3, 4])).shape == (4, 2)
    with pytest.raises(AssertionError, match=r"must be torch\.int64 with 1 dimensions, not torch\.int64 with 2"):
        graph(torch.ones(5, 2), torch.tensor([[1, 2], [3, 4]]))


class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(10, 8))

    def forward(self, indices: Tensor) -> Tensor:
        return functional.embedding_bag(indices, self.table, mode="sum")


def test_a_size_of_0_that_the_trace_divides_by(device: daedal.Device) -> None:
    """PyTorch has no result for it in this form of the call; of bags in offsets it gives zeros."""
    indices = torch.randint(10, (3, 2))
    executable = daedal.compile(Bags(), (indices,), device=device)
    assert torch.equal(executable(torch.zeros(3, 0, dtype=torch.int64)), torch.zeros(3, 8))
    assert executable(indices).shape == (3, 8)


class Scaled(nn.Embedding):
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() == 2:
            input = input.reshape(-1)
        return super().forward(input) * 2


@pytest.mark.parametrize("module", [Scaled(10, 8), nn.Sequential(Scaled(10, 8))], ids=["bare", "inside"])
def test_a_layer_of_ones_own_that_is_an_embedding(device: daedal.Device, module: nn.Module) -> None:
    executable = daedal.compile(module, (torch.randint(10, (5,)),), device=device)
    for shape in ((5,), (3, 2)):
        indices = torch.randint(10, shape)
        assert torch.equal(executable(indices), module(indices))


class ByKind(nn.Module):
    """Does something else for every kind of indices; PyTorch's own checks of a trace let all of them pass."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(10, 8))

    def forward(self, indices: Tensor, scale: Tensor) -> Tensor:
        factor = {1: 2.0, 2: 3.0, 3: 5.0}[indices.dim()] + (7.0 if indices.dtype == torch.int32 else 0.0)
        rows = functional.embedding(indices, self.table).unsqueeze(-1) * factor
        return rows * 2 if scale.dtype == torch.float64 else rows


def test_other_kinds_of_tensors_lead_to_another_trace(device: daedal.Device) -> None:
    module = ByKind()
    executable = daedal.compile(module, (torch.randint(10, (5,)), torch.ones(1)), device=device)
    for dtype in (torch.int64, torch.int32):
        for shape in ((4,), (3, 2), (2, 2, 2), (7,)):
            for scale in (torch.ones(1), torch.ones(1, dtype=torch.float64)):
                batch = torch.randint(10, shape, dtype=dtype), scale
                assert torch.equal(executable(*batch), module(*batch))


class Branching(nn.Module):
    """Does what Python sees of its second input."""

    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(50, 8, mode="sum")

    def forward(self, indices: Tensor, x: Any = None) -> tuple[Tensor, Any]:
        rows = self.bag(indices)
        if x is None:
            return rows, None
        if isinstance(x, Tensor):
            return rows * (1 if x.is_contiguous() else 2), rows * 3 if x.requires_grad else rows
        return indices * x, torch.zeros(1) * x


INPUTS = [
    None, 2, 2.0, True, 1.0, 0.0, -0.0, 0, False, torch.zeros(4, 4), torch.zeros(5, 4).t(), torch.ones(1),
    torch.ones(2, requires_grad=True),
]  # fmt: skip


@pytest.mark.parametrize("first", range(len(INPUTS)))
def test_other_kinds_of_inputs_lead_to_another_trace(device: daedal.Device, first: int) -> None:
    module, indices = Branching(), torch.randint(50, (4, 3))
    executable = daedal.compile(module, (indices, INPUTS[first]), device=device)
    with torch.no_grad():
        for x in INPUTS:
            for ours, theirs in zip(executable(indices, x), module(indices, x), strict=True):
                assert type(ours) is type(theirs)
                if theirs is not None:
                    assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist()), x
                    assert torch.equal(ours.signbit(), theirs.signbit()), x


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_a_forward_that_was_replaced(device: daedal.Device, kind: type[nn.Module]) -> None:
    module, indices = kind(10, 4), torch.tensor([[1, 2]])
    plain = module.forward
    module.forward = lambda indices: plain(indices) * 2
    assert torch.equal(daedal.compile(module, indices, device=device)(indices), module(indices))


def test_hooks_of_all_modules(device: daedal.Device) -> None:
    module, indices = nn.Embedding(10, 4), torch.tensor([[1, 2]])

    def twice(module: nn.Module, inputs: Any, output: Any) -> Any:
        return output * 2 if type(module) is nn.Embedding else None

    hook = nn.modules.module.register_module_forward_hook(twice)
    try:
        assert torch.equal(daedal.compile(module, indices, device=device)(indices), module(indices))
    finally:
        hook.remove()


class Pooled(nn.Module):
    def forward(self, table: Tensor, indices: Tensor) -> Tensor:
        return functional.embedding(indices, table).sum(1)


class Segments(nn.Module):
    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        return torch.segment_reduce(rows, "sum", lengths=lengths)


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (Added(), (torch.randn(3, 4), torch.tensor([0, 2, 0]))),
        (Pooled(), (torch.randn(9, 4), torch.tensor([[0, 2, 8] * 7]))),
        (Segments(), (torch.randn(5, 4), torch.tensor([2, 0, 3]))),
        (LookedUp(), (torch.randn(9, 4), torch.tensor([0, 2]))),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_where_new_tensors_are_on_another_device(device: daedal.Device, module: nn.Module, inputs) -> None:
    wanted = module(*inputs)
    pooled_lookups._is_so.cache_clear()
    torch.set_default_device("meta")
    try:
        found = daedal.compile(module, inputs, device=device)(*inputs)
    finally:
        torch.set_default_device(None)
    assert torch.equal(found, wanted)


def test_the_programs_of_the_last_call_stay_if_the_next_is_refused(device: daedal.Device) -> None:
    executable = daedal.compile(nn.EmbeddingBag(10, 4, mode="sum"), torch.tensor([[1, 2]]), device=device)
    program, text = executable.program, executable.ir("scf")
    with pytest.raises(daedal.DaedalError):
        executable(torch.tensor([[1.0, 2.0]]))
    assert program
    assert (executable.program, executable.ir("scf")) == (program, text)


def test_there_is_no_program_to_show_of_what_was_left_to_pytorch(device: daedal.Device) -> None:
    class Scattered(nn.Module):
        def forward(self, index: Tensor, rows: Tensor) -> Tensor:
            return torch.zeros(3, 4).scatter_add(0, index, rows)

    index, rows = torch.tensor([[2, 0, 1, 2], [0, 0, 1, 1]]), torch.randn(2, 4)
    executable = daedal.compile(Scattered(), (index, rows), device=device)
    assert torch.equal(executable(index, rows), Scattered()(index, rows))
    with pytest.raises(daedal.DaedalError, match="the last call left everything to PyTorch"):
        executable.ir("scf")


def test_traces_are_kept(device: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ByKind()
    kinds = [torch.randint(10, shape, dtype=dtype) for shape in ((4,), (3, 2)) for dtype in (torch.int64, torch.int32)]
    executable = daedal.compile(module, (kinds[0], torch.ones(1)), device=device)
    for indices in kinds:
        executable(indices, torch.ones(1))
    monkeypatch.setattr(torch.export, "export", None)
    for indices in kinds * 2:
        assert torch.equal(executable(indices, torch.ones(1)), module(indices, torch.ones(1)))


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("table", torch.randn(10, 8))

    def forward(self, indices: Tensor, offsets: Tensor) -> Tensor:
        return self.norm(functional.embedding_bag(indices, self.table, offsets, mode="sum"))


def spectral() -> nn.Module:
    return torch.nn.utils.parametrizations.spectral_norm(nn.EmbeddingBag(10, 8, mode="sum"))


@pytest.mark.parametrize("make", [lambda: fx.symbolic_trace(Normed()), spectral], ids=["traced", "parametrized"])
def test_what_a_module_keeps_is_changed_by_calls_only(device: daedal.Device, make) -> None:
    module = make()
    reference = copy.deepcopy(module)
    batch = torch.randint(10, (6,)), torch.tensor([0, 2, 4])
    executable = daedal.compile(module, batch, device=device)
    for _ in range(3):
        for (name, ours), theirs in zip(module.state_dict().items(), reference.state_dict().values(), strict=True):
            assert torch.equal(ours, theirs), name
        assert torch.equal(executable(*batch), reference(*batch))


def test_several_threads_wait_for_one_result(device: daedal.Device) -> None:
    module = nn.EmbeddingBag(100, 16, mode="sum")
    batch = torch.randint(100, (200,)), torch.arange(0, 200, 4)
    executable, wanted = daedal.compile(module, batch, device=device), module(*batch)
    results: list[object] = []
    barrier = Barrier(4)

    def wait(future: daedal.runtime.futures.Submitted) -> None:
        barrier.wait()
        try:
            results.append(torch.equal(future.result(), wanted))
        except Exception as error:
            results.append(error)

    for _ in range(25):
        future = executable.submit(*batch)
        threads = [Thread(target=wait, args=(future,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert future.stats.rows == 200
    assert results == [True] * 100
