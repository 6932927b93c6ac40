"""Operations of a batch whose rows are added up in another order than one after the other, as walks over lists.

The machine adds up the rows of a bag one after the other, or the sums of blocks of them. Other orders are these of
other rows: the host cuts bags into blocks, and lays the entries of each behind each other
(docs/decisions/026-orders-of-sums.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from daedal.driver.memory.layout import row_pitch
from daedal.hw.config.core import Config
from daedal.runtime.batch.finish import finish
from daedal.runtime.batch.members import Array, Entry, Member, Result
from daedal.runtime.operations import BLOCKS, CHAIN, DIVIDED, LANES, ZERO, BlockKind, Kind
from daedal.runtime.request import Request

MOST_IN_ORDER, VECTOR = 15, 8
"""TensorFlow's ``LANES``: rows of the longest bag that it takes one after the other, and columns that it takes at once:
it takes rows of fewer in order, however many there are, and the columns that are left over of others.
"""

MOST_CHAINED = {CHAIN: None, BLOCKS: 9, LANES: MOST_IN_ORDER}
"""Up to how many rows an order adds them up one after the other; None: whatever their number."""

_ROWS_OF_BLOCK, _LANES = 8, 4
"""Rows of a block but the first; sums that run side by side, for as many columns as are a multiple of this."""


@dataclass(frozen=True, eq=False)
class Strand(Member):
    """A part of what an operation does, which is walked by itself.

    Attributes
    ----------
    whole
        The operation.
    indices, weights
        Its entries, in the order in which they are walked.
    ends
        Where bags begin, or blocks, and the last one ends, int64.
    places
        For each block the row, from 1 on, that is stored before it, or 0; None if bags are walked.
    first_column, columns
        Of the rows.
    """

    whole: Member
    indices: Array
    weights: Array | None
    ends: Array
    places: Array | None
    first_column: int
    columns: int

    @property
    def offsets(self) -> Array:
        """Start of each bag, or block, and the end of the last one, int64."""
        return self.ends

    def entries(self, name: str) -> Array:
        """Indices or weights."""
        values = self.indices if name == "indices" else self.weights
        assert values is not None
        return values


def strands_of(member: Member) -> list[Strand]:
    """All that an operation in its own order, or in blocks of the same size, does (``has_strands``)."""
    operation, offsets = member.operation, member.offsets
    if operation.block is not None:
        return [_in_blocks(member, operation.block)]
    lengths, width, most = np.diff(offsets), operation.width, MOST_CHAINED[operation.order]
    indices = member.entries("indices")
    weights = member.entries("weights") if operation.is_weighted else None
    whole = _Entries(member, indices, weights)
    is_long = np.zeros(len(lengths), bool) if most is None else lengths > most
    cut = width if operation.order != LANES else width // VECTOR * VECTOR
    if not is_long.any() or not cut:
        return [whole.strand(offsets, None, 0, width)]
    of_long = np.repeat(is_long, lengths)
    blocks, order = (_blocks if operation.order == BLOCKS else _lanes)(lengths[is_long])
    taken = np.flatnonzero(of_long)
    found = [whole.taken(taken if order is None else taken[order]).strand(*_placed(blocks, is_long), 0, width)]
    if not is_long.all():
        ends = np.concatenate([np.zeros(1, np.int64), np.where(is_long, 0, lengths).cumsum()])
        found.insert(0, whole.taken(np.flatnonzero(~of_long)).strand(ends, None, 0, width))
    if (
        cut < width
    ):  # behind the others, which write these columns as well: parts of rows that begin elsewhere can be no less
        chains = lengths[is_long], np.ones(is_long.sum(), np.int64)
        found.append(whole.taken(taken).strand(*_placed(chains, is_long), cut, width - cut))
    return found


def _in_blocks(member: Member, size: int) -> Strand:
    """Bags of one length as blocks of so many rows, of which the last one of a bag may be shorter."""
    bags, length = member.request.rows, member.request.values["length"]
    sizes = np.diff(np.append(np.arange(0, length, size), length))
    blocks = np.tile(sizes, bags), np.full(bags, len(sizes))
    weights = member.entries("weights") if member.is_weighted else None
    whole = _Entries(member, member.entries("indices"), weights)
    return whole.strand(*_placed(blocks, np.ones(bags, bool)), 0, member.width)


def chain_of(member: Member) -> Request | None:
    """The request for the sums of an operation in its own order (``in_list``), of which the host makes the rest, if all
    its bags are so short that they are added up one row after the other from +0.0; else None.
    """
    operation, most = member.operation, MOST_CHAINED[member.operation.order]
    if most is not None and np.diff(member.offsets).max(initial=0) > most:
        return None
    chain = replace(operation, mode="sum", order=CHAIN, start=ZERO, mean=DIVIDED)
    return replace(member.request, operation=chain, finish=lambda sums: finish(member, sums))


def entries_of_strands(result: Result, strands: Mapping[Member, Sequence[Strand]], config: Config) -> Iterator[Entry]:
    """The entries for a result of operations in an order of their own: one for each tile of each strand."""
    for member, column in zip(result.parts, result.columns, strict=True):
        for strand in strands.get(member, ()):
            for tile in range(strand.first_column, strand.first_column + strand.columns, config.vl_max):
                width = min(config.vl_max, strand.first_column + strand.columns - tile)
                yield Entry(_kind(strand, width, result.width, config), strand, result, column, tile)


def places_of(member: Member) -> Array:
    """The rows that are stored before the blocks of a strand that has such."""
    assert isinstance(member, Strand)
    assert member.places is not None
    return member.places


def _kind(strand: Strand, width: int, out_pitch: int, config: Config) -> Kind | BlockKind:
    operation = strand.operation
    pitch = row_pitch(operation.width * operation.element.bytes, config) // operation.element.bytes
    bits, is_weighted, is_fused = operation.index_bits, operation.is_weighted, operation.is_fused
    if strand.places is not None:
        return BlockKind(width, pitch, out_pitch, bits, is_weighted, is_fused)
    return Kind("sum", width, pitch, out_pitch, bits, is_weighted, is_fused, None)


@dataclass(frozen=True)
class _Entries:
    member: Member
    indices: Array
    weights: Array | None

    def taken(self, which: Array) -> "_Entries":
        """Some of the entries."""
        return _Entries(self.member, self.indices[which], None if self.weights is None else self.weights[which])

    def strand(self, ends: Array, places: Array | None, first: int, columns: int) -> Strand:
        """All of them, walked so."""
        member = self.member
        return Strand(
            member.node, member.call, member.request, member.sources, member, self.indices, self.weights, ends, places,
            first, columns,
        )  # fmt: skip


def _blocks(lengths: Array) -> tuple[Sequence[Array], None]:
    """Lengths of the blocks of bags of so many rows: the first has from 2 to 9 rows, the others 8."""
    first = lengths % _ROWS_OF_BLOCK
    first = np.where(first < 2, first + _ROWS_OF_BLOCK, first)
    count = 1 + (lengths - first) // _ROWS_OF_BLOCK
    sizes = np.full(int(count.sum()), _ROWS_OF_BLOCK, np.int64)
    sizes[count.cumsum() - count] = first
    return (sizes, count), None


def _lanes(lengths: Array) -> tuple[Sequence[Array], Array]:
    """The same of those that have four sums side by side: these one after the other, and what is left over, row by row;
    and the order of their entries.
    """
    each, left = lengths // _LANES, lengths % _LANES
    count = _LANES + left
    starts = np.repeat(lengths.cumsum() - lengths, lengths)
    row, per_lane = np.arange(len(starts)) - starts, np.repeat(each, lengths)
    target = np.where(row < per_lane * _LANES, row % _LANES * per_lane + row // _LANES, row)
    order = np.empty(len(starts), np.int64)
    order[starts + target] = np.arange(len(starts))
    sizes = np.ones(int(count.sum()), np.int64)
    begin = count.cumsum() - count
    for lane in range(_LANES):
        sizes[begin + lane] = each
    return (sizes, count), order


def _placed(blocks: Sequence[Array], is_long: Array) -> tuple[Array, Array]:
    """Where blocks begin and the last ends, and the rows that are stored before each; an empty one comes last."""
    sizes, count = blocks
    ends = np.concatenate([np.zeros(1, np.int64), sizes.cumsum(), sizes.sum(keepdims=True)])
    places = np.zeros(len(sizes) + 1, np.int64)
    places[count.cumsum()] = np.flatnonzero(is_long) + 1
    return ends, places
