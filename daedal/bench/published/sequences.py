"""Models of RecBole: users and items, histories, fields."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from daedal.bench.published.model import Calls, Made, Published, named, of

ROWS, COLUMNS, BATCH, LENGTH, FIELDS = 200, 32, 32, 12, 5

_CONFIG: Mapping[str, Any] = {
    "USER_ID_FIELD": "user", "ITEM_ID_FIELD": "item", "NEG_PREFIX": "neg_", "LABEL_FIELD": "label",
    "LIST_SUFFIX": "_list", "ITEM_LIST_LENGTH_FIELD": "item_length", "MAX_ITEM_LIST_LENGTH": LENGTH,
    "device": torch.device("cpu"), "embedding_size": COLUMNS, "mf_embedding_size": COLUMNS,
    "mlp_embedding_size": COLUMNS, "mlp_hidden_size": [32, 16], "dropout_prob": 0.0, "mf_train": True,
    "mlp_train": True, "use_pretrain": False, "mf_pretrain_path": None, "mlp_pretrain_path": None, "n_layers": 1,
    "n_heads": 2, "hidden_size": COLUMNS, "inner_size": 32, "hidden_dropout_prob": 0.0, "attn_dropout_prob": 0.0,
    "hidden_act": "gelu", "layer_norm_eps": 1e-12, "initializer_range": 0.02, "loss_type": "CE", "num_layers": 1,
    "double_tower": None, "numerical_features": [],
}  # fmt: skip
"""What these models read of RecBole's configurations."""


class _Fields:
    """What these models ask of a data set."""

    def __init__(self) -> None:
        token = of("recbole.utils", "FeatureType").TOKEN
        self.names = [f"field{number}" for number in range(FIELDS)]
        self.field2type = dict.fromkeys(self.names, token)

    def num(self, field: str) -> int:
        """Values of a field."""
        return ROWS

    def fields(self, *_: Any, **__: Any) -> list[str]:
        """Their names."""
        return self.names


def _model(folder: str, kind: str) -> nn.Module:
    made: nn.Module = of(f"recbole.model.{folder}.{kind.lower()}", kind)(_CONFIG, _Fields())
    return made


def _pairs(kind: str) -> Callable[[], Made]:
    """Scores of users and items."""

    def call(module: Any, user: torch.Tensor, item: torch.Tensor) -> Any:
        return module.predict({"user": user, "item": item})

    return lambda: (
        Calls(_model("general_recommender", kind), call),
        (torch.randint(ROWS, (BATCH,)), torch.randint(ROWS, (BATCH,))),
    )


def _histories(kind: str) -> Callable[[], Made]:
    """Scores of items behind histories."""

    def call(module: Any, item: torch.Tensor, history: torch.Tensor, length: torch.Tensor) -> Any:
        return module.predict({"item": item, "item_list": history, "item_length": length})

    return lambda: (
        Calls(_model("sequential_recommender", kind), call),
        (
            torch.randint(ROWS, (BATCH,)),
            torch.randint(ROWS, (BATCH, LENGTH)),
            torch.randint(1, LENGTH + 1, (BATCH,)),
        ),
    )


def _fields(kind: str) -> Callable[[], Made]:
    """Scores of fields of one value each."""

    def call(module: Any, *columns: torch.Tensor) -> Any:
        return module.predict({f"field{number}": column for number, column in enumerate(columns)})

    return lambda: (
        Calls(_model("context_aware_recommender", kind), call),
        tuple(torch.randint(ROWS, (BATCH,)) for _ in range(FIELDS)),
    )


_LAST = (
    "the last of a history is gathered along dim 1 from what layers have computed: all of that would go to the device "
    f"for one row in {LENGTH}"
)


def _list() -> list[Published]:
    models = [
        ("BPR", _pairs("BPR")),
        ("NeuMF", _pairs("NeuMF")),
        ("SASRec", _histories("SASRec")),
        ("FM", _fields("FM")),
    ]
    others = [("GRU4Rec", _histories("GRU4Rec")), ("STAMP", _histories("STAMP"))]
    package = "recbole", "recbole"
    return named(*package, models) + named(*package, others, stays=_LAST)


MODELS = _list()
