"""TorchRec's collections, trained on a device by optimizers of their own and by those that backward passes run."""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import daedal
from tests.compiler.optim.training_steps import loss_of, same
from tests.compiler.torch.dynamo_support import fresh

pytest.importorskip("torchrec")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torchrec.modules.embedding_configs import EmbeddingBagConfig
    from torchrec.modules.embedding_modules import EmbeddingBagCollection
    from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

__all__ = ["fresh"]

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


class Model(nn.Module):
    """A collection of two tables, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        configs = [
            EmbeddingBagConfig(name=f"t{n}", embedding_dim=16, num_embeddings=50 + n, feature_names=[f"f{n}"])
            for n in range(2)
        ]
        self.bags = EmbeddingBagCollection(device=torch.device("cpu"), tables=configs)
        self.top = nn.Linear(32, 1)

    def forward(self, features: Any) -> torch.Tensor:
        found: torch.Tensor = self.top(self.bags(features).values())
        return found


def drawn(generator: torch.Generator, bags: int = 6) -> Any:
    lengths = torch.randint(0, 4, (2 * bags,), generator=generator)
    values = torch.randint(0, 50, (int(lengths.sum()),), generator=generator)
    return KeyedJaggedTensor(keys=["f0", "f1"], values=values, lengths=lengths)


@pytest.mark.parametrize("is_fused", [False, True])
def test_sgd(is_fused: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    model = Model()
    plain = copy.deepcopy(model)
    steps: list[Any] = []
    with daedal.Device.open("emulator") as device:
        for each, make, options in (
            (model, daedal.optim.SGD, {"lr": 0.05, "device": device}),
            (plain, torch.optim.SGD, {"lr": 0.05}),
        ):
            if is_fused:
                apply_optimizer_in_backward(make, each.parameters(), options)
            else:
                steps.append(make(each.parameters(), **options))
        fast = torch.compile(model, backend="daedal", dynamic=True, options={"device": device})
        for _ in range(4):
            features = drawn(generator)
            for optimizer in steps:
                optimizer.zero_grad()
            losses = [loss_of(run(features)) for run in (fast, plain)]
            assert same(losses[0].detach(), losses[1].detach())
            for loss in losses:
                loss.backward()
            for optimizer in steps:
                optimizer.step()
        assert device.table_uploads == 2 and all(table.grad is None for table in model.bags.parameters())
        for name, state in model.state_dict().items():
            assert same(state, plain.state_dict()[name]), name


def test_rowwise_adagrad_is_fused_as_well() -> None:
    generator = torch.Generator().manual_seed(1)
    batches, found = [drawn(generator) for _ in range(3)], []
    for is_fused in (False, True):
        torch._dynamo.reset()
        model = Model()
        with daedal.Device.open("emulator") as device:
            make, options = daedal.optim.RowWiseAdagrad, {"lr": 0.05, "device": device}
            if is_fused:
                apply_optimizer_in_backward(make, model.bags.parameters(), options)
            optimizer = None if is_fused else make(model.bags.parameters(), **options)
            fast = torch.compile(model, backend="daedal", dynamic=True, options={"device": device})
            for features in batches:
                loss_of(fast(features)).backward()
                if optimizer is not None:
                    optimizer.step()
                    optimizer.zero_grad()
            found.append({name: state.clone() for name, state in model.bags.state_dict().items()})
            assert device.table_uploads == 2
    assert all(same(state, found[1][name]) for name, state in found[0].items())
