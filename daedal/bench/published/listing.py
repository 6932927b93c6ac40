"""The list of published models that ``daedal bench models`` runs; none leaves it."""

from daedal.bench.published import click_models, graph_networks, knowledge_graphs, recommenders, sequences, texts
from daedal.bench.published.model import Published

MODELS: tuple[Published, ...] = (
    *knowledge_graphs.MODELS,  # before torchrec's, of which pykeen finds two optimizers of one name
    *graph_networks.MODELS,
    *recommenders.MODELS,
    *click_models.MODELS,
    *sequences.MODELS,
    *texts.MODELS,
)
