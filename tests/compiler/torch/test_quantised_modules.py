"""Modules of ``torch.ao.nn.quantized`` on the device: the bits that they give, and the module itself unchanged."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.bench.workloads.runner import same_bits
from tests.compiler.layers.test_quantised_bags import EDGE
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["fresh"]

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per")


@pytest.fixture(scope="module")
def quantised() -> Iterator[daedal.Device]:
    """The golden model of a machine that has such rows."""
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


def quantised_bag(rows: int, width: int, bits: int, **options: Any) -> Any:
    """A bag of random rows, quantised by PyTorch."""
    from torch.ao.nn.quantized import EmbeddingBag
    from torch.ao.quantization import float_qparams_weight_only_qconfig, float_qparams_weight_only_qconfig_4bit

    plain: Any = nn.EmbeddingBag(rows, width, mode="sum", **options)
    plain.qconfig = float_qparams_weight_only_qconfig if bits == 8 else float_qparams_weight_only_qconfig_4bit
    return EmbeddingBag.from_float(plain)


def quantised_lookup(rows: int, width: int) -> Any:
    """A look-up in random rows, quantised by PyTorch."""
    from torch.ao.nn.quantized import Embedding
    from torch.ao.quantization import float_qparams_weight_only_qconfig

    plain: Any = nn.Embedding(rows, width)
    plain.qconfig = float_qparams_weight_only_qconfig
    return Embedding.from_float(plain)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("include_last_offset", [False, True])
def test_bags(bits: int, include_last_offset: bool, quantised: daedal.Device) -> None:
    torch.manual_seed(bits)
    bag = quantised_bag(20, 24, bits, include_last_offset=include_last_offset)
    offsets = torch.tensor([0, 0, 7, *([30] if include_last_offset else [])])
    for weights in ((), (torch.randn(30),)):
        inputs = (torch.randint(0, 20, (30,)), offsets, *weights)
        executable = daedal.compile(bag, inputs, device=quantised)
        assert same_bits(executable(*inputs), bag(*inputs))
        assert len(executable.offloaded) == 1


class Model(nn.Module):
    """Quantised embeddings beside others, one of them within another module."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"users": quantised_bag(20, 16, 8), "things": quantised_lookup(30, 16)})
        self.plain = nn.EmbeddingBag(10, 16, mode="sum")
        self.top = nn.Linear(16, 3)

    def forward(self, users: Tensor, items: Tensor, others: Tensor) -> Tensor:
        result: Tensor = self.top(self.parts["users"](users) + self.parts["things"](items).sum(1) + self.plain(others))
        return result


def test_a_model_with_several(quantised: daedal.Device) -> None:
    torch.manual_seed(3)
    model = Model()
    before = list(model.parts.children())
    inputs = (torch.randint(0, 20, (5, 4)), torch.randint(0, 30, (5, 2)), torch.randint(0, 10, (5, 3)))
    executable = daedal.compile(model, inputs, device=quantised)
    with torch.no_grad():
        assert same_bits(executable(*inputs), model(*inputs))
        assert len(executable.offloaded) == 3
        assert list(model.parts.children()) == before
        model.plain.weight.mul_(2)
        assert same_bits(executable(*inputs), model(*inputs))


def test_dynamo_after_they_are_replaced(quantised: daedal.Device) -> None:
    torch.manual_seed(4)
    model = Model().eval()
    inputs = (torch.randint(0, 20, (5, 4)), torch.randint(0, 30, (5, 2)), torch.randint(0, 10, (5, 3)))
    compiled = torch.compile(
        daedal.quantized.traceable(model), backend="daedal", fullgraph=True, options={"device": quantised}
    )
    with torch.no_grad():
        assert same_bits(compiled(*inputs), model(*inputs))
    offloaded = [name for graph in daedal.graphs(quantised) for name in graph.offloaded]
    assert len(offloaded) == 3
    plain = nn.Linear(3, 2)
    assert daedal.quantized.traceable(plain) is plain


def test_a_pruned_table_is_pytorchs(quantised: daedal.Device) -> None:
    bag = quantised_bag(20, 24, 8)
    bag.pruned_weights = True
    inputs = (torch.randint(0, 20, (30,)), torch.tensor([0, 7]), None, torch.zeros(20, dtype=torch.int32))
    with pytest.raises(daedal.UnsupportedOperation, match="pruned_weights must be False"):
        daedal.compile(bag, inputs, device=quantised)


class Listed(nn.Module):
    """Parts in a plain list, as TorchRec has them, one of which is a part by name too."""

    def __init__(self) -> None:
        super().__init__()
        self._bags = [quantised_bag(20, 16, 8), quantised_bag(20, 16, 4)]
        self.first = self._bags[0]
        self.others = (nn.Linear(2, 2),)

    def forward(self, indices: Tensor) -> Tensor:
        result: Tensor = self.first(indices) + self._bags[0](indices) + self._bags[1](indices)
        return result


def test_parts_in_lists(quantised: daedal.Device) -> None:
    torch.manual_seed(4)
    model, indices = Listed(), torch.randint(0, 20, (5, 4))
    before, executable = list(model._bags), daedal.compile(model, (indices,), device=quantised)
    assert same_bits(executable(indices), model(indices))
    assert len(executable.offloaded) == 3 and executable.stats.launches == 1
    assert model._bags == before and "bags.1.rows" in quantised.tables
