"""A module that becomes another one after it was compiled: each call works as the module does at the time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from tests.compiler.layers.compiler_support import same_bits

INDICES = torch.arange(12).view(4, 3)


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    """Which tensor is where a parameter was, is seen without a look at its bytes."""
    with daedal.Device.open("emulator", table_check="versions") as opened:
        yield opened


class Model(nn.Module):
    """Two bags, and a bit of everything that a trace takes from a module."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.EmbeddingBag(50, 8, mode="sum") for _ in range(2))
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("bias", torch.randn(16))
        self.scale, self.factors, self.plain = 2.0, [1.0, 3.0], torch.randn(16)
        self.eval()

    def forward(self, indices: Tensor) -> Tensor:
        both = torch.cat([self.first(indices), self.second(indices)], 1)
        return self.dropout(both) * self.scale * self.factors[1] * self.plain + self.bias


def weights(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape))


def replace(model: Model) -> None:
    model.first.weight = weights(50, 8)


def replace_by_larger(model: Model) -> None:
    model.first.weight = weights(70, 8)


def assign(model: Model) -> None:
    model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()}, assign=True)


def swap(model: Model) -> None:
    torch.utils.swap_tensors(model.first.weight, weights(50, 8))


def convert(model: Model) -> None:
    """With every parameter swapped for another one."""
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.double()
        model.float()
        model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def there_and_back(model: Model) -> None:
    model.half().float()


def share(model: Model) -> None:
    model.first.weight = model.second.weight


def set_data(model: Model) -> None:
    model.second.weight.data = torch.randn(50, 8)


def other_part(model: Model) -> None:
    model.second = nn.EmbeddingBag(50, 8, mode="max")


def other_mode_of_bags(model: Model) -> None:
    model.second.mode = "mean"


def other_buffer(model: Model) -> None:
    model.bias = torch.randn(16)


def other_tensor(model: Model) -> None:
    model.plain = torch.randn(16)


def other_number(model: Model) -> None:
    model.scale = -0.0


def other_factor(model: Model) -> None:
    model.factors[1] = 5.0


def hook(model: Model) -> None:
    model.second.register_forward_hook(lambda part, given, result: result * 2)


CHANGES = [
    replace, replace_by_larger, assign, there_and_back, share, set_data, other_part,
    other_mode_of_bags, other_buffer, other_tensor, other_number, other_factor, hook,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_another_module_than_was_compiled(device: daedal.Device, change: Callable[[Model], Any]) -> None:
    model = Model()
    check(device, model, lambda: change(model))


def check(device: daedal.Device, module: nn.Module, change: Callable[[], Any]) -> None:
    with torch.no_grad():
        executable = daedal.compile(module, (INDICES,), device=device)
        for _ in range(2):
            assert same_bits(executable(INDICES), module(INDICES))
        change()
        assert same_bits(executable(INDICES), module(INDICES))
        assert same_bits(executable.submit(INDICES).result(), module(INDICES))
        traces = list(executable._program._traces)
        executable(INDICES)
        assert executable._program._traces == traces, "it is traced again once"


@pytest.mark.parametrize("change", [replace, assign, swap, convert, there_and_back, other_mode_of_bags, hook])
def test_another_bag_than_was_compiled(device: daedal.Device, change: Callable[[Any], Any]) -> None:
    """Traced without ``torch.export``, which keeps weak references to parameters: PyTorch does not swap these."""
    model = Model()
    model.first = model.second
    check(device, model.second, lambda: change(model))


def test_modes_come_back_without_another_trace(device: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    with torch.no_grad():
        executable = daedal.compile(model, (INDICES,), device=device)
        model.train()
        torch.manual_seed(3)
        got = executable(INDICES)
        torch.manual_seed(3)
        assert same_bits(got, model(INDICES))
        monkeypatch.setattr("daedal.compiler.frontends.torch.traced_module.trace", None)
        for mode in (False, True, False):
            model.train(mode)
            torch.manual_seed(4)
            got = executable(INDICES)
            torch.manual_seed(4)
            assert same_bits(got, model(INDICES))


def test_old_parameters_are_not_kept(device: daedal.Device) -> None:
    model = Model()
    executable = daedal.compile(model, (INDICES,), device=device)
    with torch.no_grad():
        for _ in range(3):
            executable(INDICES)
            replace(model)
    executable(INDICES)
    assert len(executable._program._traces) == 1


def test_compiled_again_it_is_another(device: daedal.Device) -> None:
    """What ``forward`` takes from elsewhere is as it was, as the documentation says, until it is compiled again."""
    factor = [2.0]

    class Scaled(nn.EmbeddingBag):
        def forward(self, indices: Tensor) -> Tensor:
            return super().forward(indices) * factor[0]

    module = Scaled(50, 8, mode="sum")
    with torch.no_grad():
        executable = daedal.compile(module, (INDICES,), device=device)
        old, factor[0] = module(INDICES), 3.0
        assert same_bits(executable(INDICES), old)
        assert same_bits(daedal.compile(module, (INDICES,), device=device)(INDICES), module(INDICES))


def test_nothing_is_left_for_the_device(device: daedal.Device) -> None:
    module = nn.Sequential(nn.EmbeddingBag(50, 8, mode="sum"))
    executable = daedal.compile(module, (INDICES,), device=device)
    module[0] = nn.Flatten()
    with pytest.raises(daedal.UnsupportedOperation, match="must have an embedding operation"):
        executable(INDICES)
    module[0] = nn.EmbeddingBag(50, 8, mode="sum")
    assert same_bits(executable(INDICES), module(INDICES).detach())
