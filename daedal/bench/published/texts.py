"""Models of transformers: embeddings of words, of places, and tables of biases by distance."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from daedal.bench.published.model import Calls, Made, Published, named, of

WORDS, COLUMNS, BATCH, LENGTH = 300, 32, 4, 24


def _tokens() -> torch.Tensor:
    return torch.randint(5, WORDS, (BATCH, LENGTH))


def _text(model: str, config: str, **options: Any) -> Callable[[], Made]:
    """A small model by its name and that of its configuration."""

    def make() -> Made:
        transformers = of("transformers")
        made = getattr(transformers, model)(getattr(transformers, config)(vocab_size=WORDS, **options))

        def call(module: nn.Module, tokens: torch.Tensor) -> Any:
            return module(tokens, return_dict=False)[0]

        return Calls(made, call), (_tokens(),)

    return make


_LAYERS = {"hidden_size": COLUMNS, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def _list() -> list[Published]:
    models = [
        ("BERT", _text("BertModel", "BertConfig", **_LAYERS)),
        ("GPT-2", _text("GPT2Model", "GPT2Config", n_embd=COLUMNS, n_layer=1, n_head=2)),
        (
            "T5 encoder",
            _text("T5EncoderModel", "T5Config", d_model=COLUMNS, d_kv=16, d_ff=32, num_layers=1, num_heads=4),
        ),
        ("Llama", _text("LlamaModel", "LlamaConfig", num_key_value_heads=2, **_LAYERS)),
        ("RoBERTa", _text("RobertaModel", "RobertaConfig", pad_token_id=1, **_LAYERS)),
    ]
    return named("transformers", "transformers", models)


MODELS = _list()
