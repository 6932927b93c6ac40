"""Tables that change on the host in ways that PyTorch does not count: every launch looks, however it is submitted."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from daedal import f32, i64
from daedal.runtime.batch.fast_path import FastPath
from tests.compiler.layers.compiler_support import same_bits
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["fresh"]

INDICES, OFFSETS = torch.tensor([0, 1, 2, 3, 4, 4, 1]), torch.tensor([0, 2, 2, 5])

B, D, N = daedal.dims("B D N")


@daedal.kernel
def rows(out: f32[B, D], table: f32[N, D], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = table[idx[b], d]


@pytest.fixture(scope="module", params=["contents", "versions"])
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open("emulator", table_check=request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def contents() -> Iterator[daedal.Device]:
    """What a simulated target does unless it is told otherwise."""
    with daedal.Device.open("emulator") as opened:
        yield opened


def bags(table: Tensor) -> Tensor:
    return functional.embedding_bag(INDICES, table, OFFSETS, mode="sum")


class Several(nn.Module):
    """Three bags of the same batch: one launch, made ready after the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20, 8, mode="sum") for _ in range(3))

    def forward(self, indices: Tensor, offsets: Tensor) -> Tensor:
        return torch.cat([table(indices, offsets) for table in self.tables], 1)


def scale_data(table: Tensor) -> None:
    table.data.mul_(2)


def scale_array(table: Tensor) -> None:
    table.detach().numpy()[:] *= 3


def scale_last(table: Tensor) -> None:
    """One element, through another parameter in the same memory."""
    nn.Parameter(table.data.view(-1)).data[-1] += 1


def swap_rows(table: Tensor) -> None:
    table.data[[0, 1]] = table.data[[1, 0]]


def change_sign_of_zero(table: Tensor) -> None:
    array = table.detach().numpy()
    array[4] = -0.0 if not np.signbit(array[4, 0]) or array[4, 0] else 0.0


CHANGES = {
    "data": scale_data, "array": scale_array, "one element": scale_last, "rows": swap_rows,
    "sign of zero": change_sign_of_zero,
}  # fmt: skip


def calls_of(kind: str, device: daedal.Device, module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """A call of the kind that is looked at, and of nothing else."""
    if kind == "torch.compile":
        fast = torch.compile(module, backend="daedal", options={"device": device})
        return lambda: fast(INDICES, OFFSETS)
    executable = daedal.compile(module, (INDICES, OFFSETS), device=device)
    if kind == "submit":
        return lambda: executable.submit(INDICES, OFFSETS).result()
    if kind == "prepared":
        executable(INDICES, OFFSETS)
        monkeypatch.setattr(executable, "_start_plan", None)  # the long way is not taken any more
    return lambda: executable(INDICES, OFFSETS)


@pytest.mark.parametrize("kind", ["call", "submit", "torch.compile", "prepared"])
@pytest.mark.parametrize("several", [False, True], ids=["one table", "three tables"])
def test_every_change_is_seen(
    contents: daedal.Device, monkeypatch: pytest.MonkeyPatch, kind: str, several: bool
) -> None:
    module = Several() if several else nn.EmbeddingBag(20, 8, mode="sum")
    with torch.no_grad():
        call = calls_of(kind, contents, module, monkeypatch)
        for _ in range(2):
            assert same_bits(call(), module(INDICES, OFFSETS))
        uploads = contents.table_uploads
        for change in CHANGES.values():
            change(list(module.parameters())[-1])
            assert same_bits(call(), module(INDICES, OFFSETS))
            uploads += 1
            assert contents.table_uploads == uploads
        call()
        assert contents.table_uploads == uploads, "what has not changed is not uploaded"


def test_the_short_way_looks_at_each_table(contents: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    module, found = Several(), []
    start = FastPath.start

    def seen(self: FastPath, sources: Any, *, are_known: bool = False) -> Any:
        found.append(start(self, sources, are_known=are_known))
        return found[-1]

    monkeypatch.setattr(FastPath, "start", seen)
    with torch.no_grad():
        executable = daedal.compile(module, (INDICES, OFFSETS), device=contents)
        executable(INDICES, OFFSETS)
        for table in module.parameters():
            for run in (executable, lambda *inputs: executable.submit(*inputs).result()):
                scale_data(table)
                assert same_bits(run(INDICES, OFFSETS), module(INDICES, OFFSETS))
    assert len(found) == 6 and all(started is not None for started in found)


def test_tables_of_kernels(device: daedal.Device) -> None:
    """NumPy arrays, of which nothing counts the changes, are looked at in any case."""
    out, table, idx = np.zeros((3, 4), np.float32), np.random.default_rng(1).random((9, 4), np.float32), np.arange(3)
    executable = daedal.compile(rows, (out, table, idx), device=device)
    for _ in range(2):
        for run in (executable, lambda *given: executable.submit(*given).result()):
            table[1] += 1
            run(out, table, idx)
            assert same_bits(torch.from_numpy(out), torch.from_numpy(table[idx]))


@pytest.mark.parametrize("how", ["call", "submit"])
def test_what_a_kernel_wrote_is_the_table_of_the_next_launch(device: daedal.Device, how: str) -> None:
    """As a tensor, and as the array in whose memory a tensor is."""
    table, out, idx = torch.randn(6, 4), np.zeros((6, 4), np.float32), np.array([5, 4, 3, 2, 1, 0])
    shared = torch.from_numpy(out)
    bag = daedal.compile(Layer(bags), (shared,), device=device)
    kernel = daedal.compile(rows, (out, table, idx), device=device)
    for given in (out, shared, out):
        assert same_bits(bag(shared), bags(shared))
        table += 1
        if how == "submit":
            kernel.submit(given, table, idx)
        else:
            kernel(given, table, idx)
        assert same_bits(bag(shared), bags(table[torch.from_numpy(idx)]))


def test_tables_of_inference_mode_and_in_shared_memory(device: daedal.Device) -> None:
    layer = Layer(bags)
    with torch.inference_mode():
        table = torch.randn(20, 8)
        executable = daedal.compile(layer, (table,), device=device)
        for change in (lambda: table.mul_(2), lambda: scale_array(table)):
            change()
            assert same_bits(executable(table), bags(table))
    shared = torch.randn(20, 8).share_memory_()
    assert same_bits(executable(shared), bags(shared))
    other = torch.from_numpy(np.frombuffer(memoryview(shared.numpy()), np.float32))
    other += 1
    device.table_changed(other)
    assert same_bits(executable(shared), bags(shared))


def test_tables_of_which_elements_lie_apart(contents: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daedal.driver.tables.table_sources.COMPARED_BYTES", 64)
    for table in (
        torch.randn(8, 20).t(),
        torch.randn(20, 16)[:, ::2],
        torch.randn(20, 8, dtype=torch.cfloat).conj().imag,
    ):
        executable = daedal.compile(Layer(bags), (table,), device=contents)
        for row in (4, 0):
            uploads = contents.table_uploads
            for _ in range(2):
                assert same_bits(executable(table), bags(table))
            assert contents.table_uploads <= uploads + 1
            table.data[row, -1] += 1
            assert same_bits(executable(table), bags(table))


def write_data(table: Tensor) -> None:
    table.data.mul_(2)


def write_array(table: Tensor) -> None:
    table.numpy()[...] = 7


@pytest.mark.parametrize("change", [write_data, write_array, Tensor.zero_])
def test_changes_between_two_operations_of_a_graph(contents: daedal.Device, change: Callable[[Tensor], Any]) -> None:
    def layer(table: Tensor, shared: Tensor) -> tuple[Tensor, Tensor]:
        first = bags(table)
        change(shared)
        return first, bags(table)

    def messages(table: Tensor, shared: Tensor) -> Tensor:
        found = table.index_select(0, INDICES)
        change(shared)
        return torch.zeros(5, 8).index_add(0, INDICES, found)

    for function in (layer, messages):
        for share in (lambda table: table, lambda table: table.data, lambda table: torch.from_numpy(table.numpy())):
            values = torch.randn(20, 8)
            tables = [values.clone() for _ in range(2)]
            with torch.no_grad():
                fast = torch.compile(function, backend="daedal", options={"device": contents})
                got, want = fast(tables[0], share(tables[0])), function(tables[1], share(tables[1]))
            assert all(map(same_bits, got, want))
            torch._dynamo.reset()


class Plain(torch.optim.Optimizer):
    """Steps past PyTorch's count, as optimizers written by hand do."""

    def __init__(self, parameters: Any, *, breaks: bool = False) -> None:
        super().__init__(parameters, {})
        self.breaks = breaks

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.add_(parameter.grad.data, alpha=-1)
                if self.breaks:
                    raise KeyError("a fault of the optimizer")


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "by hand": Plain,
    "fused": lambda weights: torch.optim.Adam(weights, fused=True),
    "foreach": lambda weights: torch.optim.Adagrad(weights, foreach=True),
    "one by one": lambda weights: torch.optim.RMSprop(weights, foreach=False),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_steps_of_optimizers_count(device: daedal.Device, optimizer: Callable[[Any], torch.optim.Optimizer]) -> None:
    module = Several()
    executable = daedal.compile(module, (INDICES, OFFSETS), device=device)
    step = optimizer(module.parameters())
    for _ in range(3):
        assert same_bits(executable(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())
        module(INDICES, OFFSETS).sum().backward()
        step.step()
    assert same_bits(executable(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())


def test_a_step_that_is_interrupted_counts(device: daedal.Device) -> None:
    module = nn.EmbeddingBag(20, 8, mode="sum")
    executable = daedal.compile(module, (INDICES, OFFSETS), device=device)
    executable(INDICES, OFFSETS)
    module(INDICES, OFFSETS).sum().backward()
    with pytest.raises(KeyError):
        Plain(module.parameters(), breaks=True).step()
    assert same_bits(executable(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())


PARTS: dict[str, Callable[[Tensor], Any]] = {
    "itself": lambda table: table,
    "data": lambda table: table.data,
    "rows": lambda table: table.detach()[3:5],
    "another row": lambda table: table.data.view(-1)[-1:],
    "array": lambda table: table.detach().numpy()[:2],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_who_says_that_a_table_has_changed(part: Callable[[Tensor], Any]) -> None:
    with daedal.Device.open("emulator", table_check="versions") as device:
        module, other = nn.EmbeddingBag(20, 8, mode="sum"), torch.zeros(4, 4)
        executable = daedal.compile(module, (INDICES, OFFSETS), device=device)
        executable(INDICES, OFFSETS)
        device.bind_table("other", other)
        old, uploads = module(INDICES, OFFSETS).detach(), device.table_uploads
        scale_data(module.weight)
        assert same_bits(executable(INDICES, OFFSETS), old), "nobody has seen it"
        device.table_changed(part(module.weight))
        for run in (executable, lambda *inputs: executable.submit(*inputs).result()):
            assert same_bits(run(INDICES, OFFSETS), module(INDICES, OFFSETS).detach())
        device.bind_table("other", other)
        assert device.table_uploads == uploads + 1
        device.table_changed(torch.zeros(3))
        for wrong in ([1.0], "table"):
            with pytest.raises(TypeError, match="must be a torch tensor or a NumPy array, not"):
                device.table_changed(wrong)


def test_an_upload_that_failed_is_done_again(contents: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.ones((4, 4), np.float32)
    contents.bind_table("half", table)
    table[:] = 2
    with monkeypatch.context() as broken:
        broken.setattr("daedal.driver.tables.table_store.TableStore._write_rows", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            contents.bind_table("half", table)
    found = contents.bind_table("half", table)
    assert contents.memory.read(found.address, 4) == np.float32(2).tobytes()


def test_a_launch_in_work_reads_tables_as_they_were_when_it_was_submitted(contents: daedal.Device) -> None:
    module, futures, want = nn.EmbeddingBag(20, 8, mode="sum"), [], []
    with torch.no_grad():
        executable = daedal.compile(module, (INDICES, OFFSETS), device=contents)
        for _ in range(3):
            futures.append(executable.submit(INDICES, OFFSETS))
            want.append(module(INDICES, OFFSETS))
            scale_data(module.weight)
    assert all(map(same_bits, [future.result() for future in futures], want))


def test_threads_that_change_and_call(contents: daedal.Device) -> None:
    """Each changes a table of its own."""
    wrong: list[int] = []

    def work(number: int) -> None:
        module = nn.EmbeddingBag(20, 8 + number, mode="sum")
        with torch.no_grad():
            executable = daedal.compile(module, (INDICES, OFFSETS), device=contents)
            for _ in range(30):
                scale_data(module.weight)
                module.weight.data.clamp_(-4, 4).add_(0.01)
                if not same_bits(executable(INDICES, OFFSETS), module(INDICES, OFFSETS)):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_boards_count_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    monkeypatch.setattr("daedal.driver.device.open_target", lambda *_, **__: None)
    monkeypatch.setattr(daedal.Device, "__init__", lambda self, target, config, check: found.append(check))
    monkeypatch.setattr(daedal.Device, "close", lambda self: None)
    for target in ("emulator", "verilator", "board-sim", "uart:/dev/ttyUSB0", "etherbone:192.0.2.1"):
        daedal.Device.open(target)
    daedal.Device.open("uart:/dev/ttyUSB0", table_check="contents")
    assert found == ["contents"] * 3 + ["versions"] * 2 + ["contents"]
    with pytest.raises(ValueError, match="table_check must be one of contents, versions, shapes, not 'hash'"):
        daedal.Device.open("emulator", table_check="hash")
