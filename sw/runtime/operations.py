"""Operations that a device does for a framework: what has to be known to compile one, and nothing that a run decides.

They are keys: equal operations run with the same program.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from daedal.hw.isa.elements import BINARY32, Element

ROWS_OF_BLOCK = 16
"""Rows that are added up at a time, where PyTorch adds sums of such."""

CHAIN, BLOCKS, LANES = "chain", "blocks", "lanes"
ORDERS = (CHAIN, BLOCKS, LANES)
"""Orders in which the rows of a bag are added up; docs/tensorflow.md has TensorFlow's."""

EXTREMES = ("max", "min")
"""Modes of bags that add nothing up: they take one of the elements, and of a bag of one row that."""

ZERO, FIRST, SINGLE = "zero", "first", "single"
"""What a sum begins with: +0.0, or its first row as it is, or that only if it has no other."""

DIVIDED, RECIPROCAL, RECIPROCAL_BELOW_10 = "divided", "reciprocal", "reciprocal below 10"
"""What makes a mean of a sum: a division by the number of rows n (or by √n), a product with 1/n (or 1/√n), rounded, or
that for fewer than 10 rows.
"""


@dataclass(frozen=True)
class Bag:
    """A pooling of bags; bits of the integer types, ``offset_bits`` None for 2-D indices, ``element`` of the table,
    ``is_away`` if sums are rounded to that with ties away from zero, ``is_wide`` if they are binary32 and stay so,
    ``rounds`` what else is rounded (see ``emb.bag``). With ``bits`` a row of the table is ``words`` binary32, of which
    two are its scale and bias and the others hold ``width`` integers of so many bits.

    ``order`` is one of ``ORDERS``, ``start`` what a sum begins with, and ``mean`` what makes a mean of it, which may
    also be one by √n, mode ``sqrtn``. Where these are not the first of their kind, the operation is one of a list
    (``in_list``).
    """

    mode: str
    width: int
    index_bits: int
    offset_bits: int | None
    is_weighted: bool = False
    is_fused: bool = False
    padding: int | None = None
    block: int | None = None
    element: Element = BINARY32
    is_away: bool = False
    rounds: str = ""
    is_wide: bool = False
    bits: int | None = None
    words: int | None = None
    order: str = CHAIN
    start: str = ZERO
    mean: str = DIVIDED

    @property
    def in_list(self) -> bool:
        """Whether it is only done as one of a list of operations."""
        return self.mode == "sqrtn" or (self.order, self.start, self.mean) != (CHAIN, ZERO, DIVIDED)

    @property
    def has_strands(self) -> bool:
        """Whether one of a list walks parts of its entries, each by itself (``batch/strands.py``)."""
        return self.in_list or self.block is not None


@dataclass(frozen=True)
class Lookup:
    """A gather of rows of ``width`` elements, of any type, for they are copied: ``element`` says how long one is."""

    width: int
    index_bits: int
    element: Element = BINARY32


@dataclass(frozen=True)
class Kind:
    """What tables must have in common to be walked by one nest of loops; widths and pitches in elements.

    ``is_wide`` and ``bits`` are as in ``Bag``: results are binary32 then.
    """

    mode: str
    width: int
    pitch: int
    out_pitch: int
    index_bits: int
    is_weighted: bool
    is_fused: bool
    padding: int | None
    element: Element = BINARY32
    is_away: bool = False
    rounds: str = ""
    is_wide: bool = False
    bits: int | None = None


@dataclass(frozen=True)
class BlockKind:
    """What tables must have in common for one nest of loops to add up sums of blocks; widths, pitches in elements."""

    width: int
    pitch: int
    out_pitch: int
    index_bits: int
    is_weighted: bool
    is_fused: bool


@dataclass(frozen=True)
class CopyKind:
    """What tables must have in common for one nest of loops to copy rows of them; widths and pitches in elements."""

    width: int
    pitch: int
    out_pitch: int
    index_bits: int
    element: Element = BINARY32


@dataclass(frozen=True)
class BagList:
    """Poolings and gathers over lists: each kind with the number of entries that it has, in the order of its list;
    those that pool have one list, those that add up sums of blocks another, and those that copy a third.
    """

    groups: tuple[tuple[Kind, int], ...] = ()
    copies: tuple[tuple[CopyKind, int], ...] = ()
    sums: tuple[tuple[BlockKind, int], ...] = ()

    @property
    def entries(self) -> int:
        """Entries of the list of those that pool."""
        return sum(count for _, count in self.groups)

    @property
    def summed_entries(self) -> int:
        """Entries of the list of those that add up sums of blocks."""
        return sum(count for _, count in self.sums)

    @property
    def copied_entries(self) -> int:
        """Entries of the list of those that copy."""
        return sum(count for _, count in self.copies)


@dataclass(frozen=True)
class Score:
    """A number for each entry of lists of indices, of the rows of ``width`` elements that these name in ``tables``
    tables: ``expression``, ``reduction`` and ``outer`` as in ``emb.score``. ``index_bits`` has one for each list.
    """

    reduction: str
    expression: str
    width: int
    tables: int
    index_bits: tuple[int, ...]
    outer: int = 0
    element: ClassVar[Element] = BINARY32


def named_rows(score: Score) -> list[tuple[int, int]]:
    """Table and list of each row of a score's expression."""
    tokens = dict.fromkeys(token for token in score.expression.split() if token[0].isdigit())
    return [(int(table), int(entries)) for table, entries in (token.split(".") for token in tokens)]


Operation = Bag | Lookup | BagList | Score


def with_other_blocks(operation: Operation) -> list[Operation]:
    """The operation, and what it is for rows that are added up in blocks, or not: that depends on their number."""
    if not isinstance(operation, Bag) or operation.offset_bits is not None or operation.mode not in ("sum", "mean"):
        return [operation]
    return [operation, replace(operation, block=None if operation.block else ROWS_OF_BLOCK)]
