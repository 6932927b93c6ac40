"""Embeddings that shorten rows of their table: PyTorch changes them in place."""

from collections.abc import Mapping

import torch
from torch import fx

from daedal.compiler.frontends.torch.operators import calls

_aten = torch.ops.aten

REASON = "it changes the table in place"


def why_renormalised(values: Mapping[str, object]) -> str | None:
    """Why an embedding with these arguments stays in PyTorch, if it is for ``max_norm``."""
    if (norm := values.get("max_norm")) is not None:
        not_this = "" if isinstance(norm, fx.Node) else f", not {norm!r}"
        return f"max_norm must be None{not_this}: {REASON}"
    table = values["weight"]
    return f"max_norm must be None: {REASON}" if isinstance(table, fx.Node) and _is_renormalised(table) else None


def _is_renormalised(table: fx.Node) -> bool:
    """Whether a node changes the table, or a view of it, to keep its rows short."""
    return any(
        calls(user, _aten.embedding_renorm_.default, _aten.embedding_renorm.default)
        or (calls(user, _aten.detach.default) and _is_renormalised(user))
        for user in table.users
    )
