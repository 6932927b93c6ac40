"""A text classifier's EmbeddingBag over Python's own help topics: real words with their real frequencies."""

import re
from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from daedal.bench.workloads.case import Case

DIM = 64
"""Width of a word's vector."""


def paragraphs() -> list[list[str]]:
    """The words of each paragraph of ``pydoc_data.topics``."""
    from pydoc_data.topics import topics

    texts = (paragraph for text in topics.values() for paragraph in re.split(r"\n\s*\n", text))
    return [re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower()) for text in texts]


def numbered(bags: list[list[str]]) -> tuple[Tensor, Tensor, int]:
    """Indices and offsets of these bags of words, and the number of words; the most frequent word is 0."""
    counts = Counter(word for bag in bags for word in bag)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    number = {word: position for position, word in enumerate(ranked)}
    indices = torch.tensor([number[word] for bag in bags for word in bag])
    lengths = torch.tensor([0, *(len(bag) for bag in bags)])
    return indices, lengths.cumsum(0)[:-1], len(ranked)


def cases() -> Iterator[Case]:
    """Mean, as such a classifier has it, and sum."""
    indices, offsets, words = numbered(paragraphs())
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(words, DIM, generator=generator)
    shape = f"{len(offsets)} bags, {len(indices)} words, {words} x {DIM}"
    for mode in ("mean", "sum"):
        module = nn.EmbeddingBag(words, DIM, mode=mode, _weight=weight)
        yield Case("text", f"EmbeddingBag {mode}", shape, module, (indices, offsets))
