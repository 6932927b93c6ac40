"""Models of deepctr-torch: fields of one row each, and one field of several rows."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from daedal.bench.published.model import Made, Published, named, of

FIELDS, ROWS, COLUMNS, BATCH, LENGTH = 8, 100, 16, 32, 5


def _columns() -> list[Any]:
    inputs = of("deepctr_torch.inputs")
    fields = [inputs.SparseFeat(f"c{number}", ROWS, embedding_dim=COLUMNS) for number in range(FIELDS)]
    return [*fields, *(inputs.DenseFeat(f"d{number}", 1) for number in range(3))]


def _inputs(columns: list[Any]) -> Tensor:
    places = of("deepctr_torch.inputs").build_input_features(columns)
    width = max(end for _, end in places.values())
    rows = torch.rand(BATCH, width)
    for name, (start, end) in places.items():
        if name.startswith(("c", "h")):
            rows[:, start:end] = torch.randint(ROWS, (BATCH, end - start)).float()
        elif name == "length":
            rows[:, start:end] = torch.randint(1, LENGTH + 1, (BATCH, 1)).float()
    return rows


def _clicks(kind: str, *lists: str, **options: Any) -> Callable[[], Made]:
    """A model by name, with a list of its fields for each of these names."""

    def make() -> Made:
        columns = _columns()
        given = dict.fromkeys(lists, columns)
        return of("deepctr_torch.models", kind)(**given, dnn_hidden_units=(16,), **options), (_inputs(columns),)

    return make


def _histories() -> Made:
    """DeepFM with a mean over a history of items."""
    inputs = of("deepctr_torch.inputs")
    item = inputs.SparseFeat("hist", ROWS, embedding_dim=COLUMNS)
    columns = [*_columns(), inputs.VarLenSparseFeat(item, LENGTH, "mean", length_name="length")]
    model = of("deepctr_torch.models", "DeepFM")(columns, columns, dnn_hidden_units=(16,))
    return model, (_inputs(columns),)


def _list() -> list[Published]:
    both = "linear_feature_columns", "dnn_feature_columns"
    models = [
        ("DeepFM", _clicks("DeepFM", *both)),
        ("WDL", _clicks("WDL", *both)),
        ("xDeepFM", _clicks("xDeepFM", *both)),
        ("DCN", _clicks("DCN", *both)),
        ("AutoInt", _clicks("AutoInt", *both)),
        ("DeepFM, histories", _histories),
    ]
    return named("deepctr-torch", "deepctr_torch", models)


MODELS = _list()
