"""TorchRec's collections on one device: the bits of TorchRec itself, one launch, one trace for all batches."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import daedal
from daedal.hw.config.core import Config
from tests.tiles.models import random_plan

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

FEATURES = [f"feature_{number}" for number in range(5)]
ROWS = 50
BATCHES = (2, 3, 4, 5, 7, 8, 16, 33, 64, 127, 128)
"""Samples. One sample is another trace, as PyTorch has it."""


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    """The golden model."""
    with daedal.Device.open("emulator", config="ddr3") as opened:
        yield opened


def keyed(samples: int, rng: np.random.Generator, *, weighted: bool = False) -> Any:
    """Features of so many samples: bags of no to four rows each."""
    from torchrec import KeyedJaggedTensor

    lengths = torch.from_numpy(rng.integers(0, 5, len(FEATURES) * samples)).int()
    values = torch.from_numpy(rng.integers(0, ROWS, int(lengths.sum())))
    weights = torch.randn(len(values)) if weighted else None
    return KeyedJaggedTensor(keys=FEATURES, values=values, lengths=lengths, weights=weights)


def bags(*, weighted: bool = False, pooling: str = "SUM") -> nn.Module:
    """Tables of two widths, one of which has two features."""
    from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, PoolingType

    shared = [[feature] for feature in FEATURES[:3]] + [FEATURES[3:]]
    tables = [
        EmbeddingBagConfig(
            name=f"t{number}",
            embedding_dim=16 * (number % 2 + 1),
            num_embeddings=ROWS + number,
            feature_names=features,
            pooling=PoolingType[pooling],
        )
        for number, features in enumerate(shared)
    ]
    made: nn.Module = EmbeddingBagCollection(device=torch.device("cpu"), tables=tables, is_weighted=weighted)
    return made


def rows() -> nn.Module:
    """A table for each feature."""
    from torchrec import EmbeddingCollection, EmbeddingConfig

    tables = [
        EmbeddingConfig(name=f"t{n}", embedding_dim=16, num_embeddings=ROWS, feature_names=[feature])
        for n, feature in enumerate(FEATURES)
    ]
    made: nn.Module = EmbeddingCollection(device=torch.device("cpu"), tables=tables)
    return made


def tensors(result: Any) -> list[Tensor]:
    """The tensors of a KeyedTensor, or of JaggedTensors by name."""
    if isinstance(result, dict):
        return [part for each in result.values() for part in (each.values(), each.lengths())]
    return [result.values()] if hasattr(result, "length_per_key") else pytree.tree_leaves(result)


def check(module: nn.Module, executable: Any, inputs: Any) -> None:
    """That both give the same bits, on the device in one launch."""
    with torch.no_grad():
        expected, found = tensors(module(inputs)), tensors(executable(inputs))
    assert len(expected) == len(found)
    assert all(a.dtype is b.dtype and torch.equal(a, b) for a, b in zip(expected, found, strict=True))


CASES = {
    "bags": (lambda: bags(), False),
    "means": (lambda: bags(pooling="MEAN"), False),
    "weighted bags": (lambda: bags(weighted=True), True),
    "rows": (rows, False),
}


@pytest.mark.parametrize("case", CASES)
def test_collections(device: daedal.Device, case: str, rng: np.random.Generator) -> None:
    """A KeyedJaggedTensor goes in as it is; eleven batches are one trace, and each is one launch."""
    make, weighted = CASES[case]
    module = make()
    executable = daedal.compile(module, (keyed(6, rng, weighted=weighted),), device=device)
    code = executable.code
    for samples in BATCHES:
        check(module, executable, keyed(samples, rng, weighted=weighted))
        assert executable.stats.launches == 1 and executable.explain().startswith("device: 5 of 5 operations, in 1")
        assert executable.code == code, "the module must not be traced again"
    check(module, executable, keyed(1, rng, weighted=weighted))
    assert executable.stats.launches == 1


class Model(nn.Module):
    """A collection that makes its KeyedJaggedTensor itself, with layers behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.collection = bags()
        self.top = nn.Linear(3 * 16 + 2 * 32, 3)

    def forward(self, values: Tensor, lengths: Tensor) -> Tensor:
        from torchrec import KeyedJaggedTensor

        pooled: Tensor = self.collection(KeyedJaggedTensor(keys=FEATURES, values=values, lengths=lengths)).values()
        top: Tensor = self.top(pooled[:, : self.top.in_features])
        return top


def test_models_around_collections(device: daedal.Device, rng: np.random.Generator) -> None:
    module, batch = Model(), keyed(4, rng)
    executable = daedal.compile(module, (batch.values(), batch.lengths()), device=device)
    for samples in (3, 40):
        batch = keyed(samples, rng)
        found = executable(batch.values(), batch.lengths())
        assert torch.equal(found, module(batch.values(), batch.lengths())) and executable.stats.launches == 1


def test_torch_compile(device: daedal.Device, rng: np.random.Generator) -> None:
    """Each of Dynamo's graphs is one launch; it makes a second one for sizes that are open."""
    torch._dynamo.reset()
    module = bags()
    fast = torch.compile(module, backend="daedal", dynamic=True, options={"device": device})
    for samples in (4, 5, 16, 64):
        check(module, fast, keyed(samples, rng))
    graphs = daedal.graphs(device)
    assert len(graphs) <= 2 and all(graph.stats.launches == 1 for graph in graphs)
    torch._dynamo.reset()


def quantised(collection: Any) -> nn.Module:
    """The same with rows of INT8."""
    from torchrec import EmbeddingCollection
    from torchrec.quant import embedding_modules

    kind = embedding_modules.EmbeddingCollection if isinstance(collection, EmbeddingCollection) else None
    observer = torch.ao.quantization.PlaceholderObserver.with_args
    collection.qconfig = torch.ao.quantization.QConfig(
        activation=observer(dtype=torch.float32), weight=observer(dtype=torch.qint8)
    )
    made: nn.Module = (kind or embedding_modules.EmbeddingBagCollection).from_float(collection)
    return made


def fused() -> nn.Module:
    """A collection that is trained within its backward."""
    from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection

    options: Any = {"optimizer_type": torch.optim.SGD, "optimizer_kwargs": {"lr": 0.1}}
    tables = bags().embedding_bag_configs()
    made: nn.Module = FusedEmbeddingBagCollection(tables=tables, device=torch.device("cpu"), **options)
    return made.eval()


@pytest.mark.parametrize(
    "make", [lambda: quantised(bags()), lambda: quantised(rows()), fused], ids=["bags", "rows", "fused"]
)
def test_collections_of_fbgemms_modules(make: Any, rng: np.random.Generator) -> None:
    """FBGEMM's modules are in plain lists of these."""
    config = replace(Config.preset("edge"), name="edge-quantised", quantised=1)
    with daedal.Device.open("emulator", config=config) as machine:
        module = make()
        executable = daedal.compile(module, (keyed(6, rng),), device=machine)
        for samples in (2, 5, 33):
            check(module, executable, keyed(samples, rng))
            assert executable.stats.launches == 1 and executable.explain().startswith("device: 5 of 5 operations")


def test_bad_indices_name_the_table(device: daedal.Device, rng: np.random.Generator) -> None:
    module, batch = bags(), keyed(4, rng)
    executable = daedal.compile(module, (batch,), device=device)
    batch.values()[0] = ROWS + 9
    with pytest.raises(daedal.IndexOutOfRange, match=rf"of embedding_bags\.t\d\.weight: .*{ROWS + 9}"):
        executable(batch)


def test_files_take_no_classes(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    executable = daedal.compile(bags(), (keyed(4, rng),), device=device)
    with pytest.raises(daedal.UnsupportedOperation, match="inputs of type KeyedJaggedTensor: have the module take"):
        executable.save(tmp_path / "model.daedal")


@pytest.mark.parametrize("pooling", ["SUM", "MEAN", ""])
def test_on_tiles(pooling: str, rng: np.random.Generator) -> None:
    module = bags(pooling=pooling) if pooling else rows()
    with daedal.System.open("emulator", config="ddr3", tiles=3) as system, torch.no_grad():
        made = daedal.plan(module, system, sample=(keyed(8, rng),))
        steps = dict.fromkeys((table.name for table in made.tables), 4)
        for plan in (made, random_plan(made, steps, rng)):
            executable = daedal.compile(module, (keyed(8, rng),), device=system, plan=plan)
            for samples in (8, 3, 20):
                batch = keyed(samples, rng)
                pairs = zip(tensors(executable(batch)), tensors(module(batch)), strict=True)
                assert all(torch.equal(found, expected) for found, expected in pairs)
