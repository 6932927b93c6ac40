"""TorchRec's modules on one device, with the arithmetic of ``nn.EmbeddingBag``."""

from typing import Any

import torch
from torch import Tensor, nn

from daedal.bench.published.model import Calls, Made, Published, named, of

FEATURES = tuple(f"f{number}" for number in range(6))
ROWS, COLUMNS, BATCH, LONGEST, DENSE = 200, 32, 16, 5, 13


def _batch() -> tuple[Tensor, Tensor]:
    lengths = torch.randint(LONGEST + 1, (len(FEATURES) * BATCH,))
    return torch.randint(ROWS, (int(lengths.sum()),)), lengths


def _jagged(values: Tensor, lengths: Tensor) -> Any:
    return of("torchrec.sparse.jagged_tensor", "KeyedJaggedTensor").from_lengths_sync([*FEATURES], values, lengths)


def _bags() -> Any:
    config = of("torchrec.modules.embedding_configs", "EmbeddingBagConfig")
    tables = [
        config(name=f"t_{each}", embedding_dim=COLUMNS, num_embeddings=ROWS, feature_names=[each]) for each in FEATURES
    ]
    return of("torchrec.modules.embedding_modules", "EmbeddingBagCollection")(tables=tables)


def _bag_collection() -> Made:
    def call(module: nn.Module, values: Tensor, lengths: Tensor) -> Any:
        return module(_jagged(values, lengths)).values()

    return Calls(_bags(), call), _batch()


def _collection() -> Made:
    config = of("torchrec.modules.embedding_configs", "EmbeddingConfig")
    tables = [
        config(name=f"t_{each}", embedding_dim=COLUMNS, num_embeddings=ROWS, feature_names=[each]) for each in FEATURES
    ]
    collection = of("torchrec.modules.embedding_modules", "EmbeddingCollection")(tables=tables)

    def call(module: nn.Module, values: Tensor, lengths: Tensor) -> Any:
        return [each.values() for each in module(_jagged(values, lengths)).values()]

    return Calls(collection, call), _batch()


def _with_dense(model: nn.Module) -> Made:
    def call(module: nn.Module, dense: Tensor, values: Tensor, lengths: Tensor) -> Any:
        return module(dense, _jagged(values, lengths))

    return Calls(model, call), (torch.randn(BATCH, DENSE), *_batch())


def _dlrm() -> Made:
    return _with_dense(
        of("torchrec.models.dlrm", "DLRM")(
            embedding_bag_collection=_bags(),
            dense_in_features=DENSE,
            dense_arch_layer_sizes=[COLUMNS],
            over_arch_layer_sizes=[16, 1],
        )
    )


def _deep_fm() -> Made:
    return _with_dense(
        of("torchrec.models.deepfm", "SimpleDeepFMNN")(
            num_dense_features=DENSE,
            embedding_bag_collection=_bags(),
            hidden_layer_size=16,
            deep_fm_dimension=8,
        )
    )


def _list() -> list[Published]:
    models = [
        ("EmbeddingBagCollection", _bag_collection),
        ("EmbeddingCollection", _collection),
        ("DLRM", _dlrm),
        ("SimpleDeepFMNN", _deep_fm),
    ]
    return named("torchrec", "torchrec", models)


MODELS = _list()
