"""Operations of a graph as a file has them: what makes a request of their sources, on any arrays."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class SavedBags:
    """A pooling of bags; sources are table, indices, offsets and weights."""

    mode: str
    padding: int | None
    include_last_offset: bool


@dataclass(frozen=True)
class SavedLookup:
    """A gather; sources are table and indices, of which the first column counts if ``is_column``."""

    wraps: bool
    is_column: bool


@dataclass(frozen=True)
class SavedPooledLookup:
    """Sums or means of looked-up rows, in blocks of ``block``; ``lengths``: numbers of rows for which that is PyTorch's
    order. Sources are table, indices and weights, which may be left out.
    """

    mode: str
    block: int
    lengths: tuple[int, ...]
    keeps_dim: bool
    wraps: bool


@dataclass(frozen=True)
class SavedDestinations:
    """A reduction by destination; sources are base, table, indices, weights and keys, which ``wrap`` (``keys_wrap``)
    if negative ones count from the end.
    """

    mode: str
    is_column: bool
    wraps: bool
    keys_wrap: bool
    rounds_sums: bool


@dataclass(frozen=True)
class SavedSegments:
    """A reduction by segment; sources are table, indices, weights and keys. ``empty`` is a float's text."""

    mode: str
    has_offsets: bool
    empty: str
    wraps: bool


@dataclass(frozen=True)
class SavedQuantisedBags:
    """A sum of rows of integers; sources are table, indices, offsets and weights."""

    bits: int
    number: str
    include_last_offset: bool


SavedOperation: TypeAlias = (
    SavedBags | SavedLookup | SavedPooledLookup | SavedDestinations | SavedSegments | SavedQuantisedBags
)
