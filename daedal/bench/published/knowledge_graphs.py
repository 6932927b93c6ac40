"""Models of pykeen: scores of triples."""

from collections.abc import Callable
from typing import Any

import torch

from daedal.bench.published.model import Calls, Door, Made, Published, named, of

ENTITIES, RELATIONS, COLUMNS, BATCH = 200, 8, 32, 64


def _triples(count: int) -> torch.Tensor:
    ends = torch.randint(ENTITIES, (count, 2))
    return torch.stack([ends[:, 0], torch.randint(RELATIONS, (count,)), ends[:, 1]], dim=1)


def _scores(kind: str, **options: Any) -> Callable[[], Made]:
    """A model by name, with this many columns."""

    def make() -> Made:
        factory = of("pykeen.triples", "CoreTriplesFactory")(_triples(400), ENTITIES, RELATIONS)
        model = of("pykeen.models", kind)(triples_factory=factory, embedding_dim=COLUMNS, **options)
        return Calls(model, lambda model, triples: model.score_hrt(triples)), (_triples(BATCH),)

    return make


def _list() -> list[Published]:
    models = [(kind, _scores(kind)) for kind in ("TransE", "DistMult", "ComplEx", "HolE")]
    # PyTorch does not compile it with open sizes: view_as_complex has no rule for them.
    others = [("RotatE", _scores("RotatE"))]
    return named("pykeen", "pykeen", models) + named("pykeen", "pykeen", others, door=Door.EXPORT)


MODELS = _list()
