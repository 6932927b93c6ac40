"""Operations of PyTorch's graphs as a file has them, without their nodes."""

from functools import cache

import numpy as np
import torch
from torch import fx

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.ops.bags import Bags
from daedal.compiler.frontends.torch.ops.lookups import GatheredRows, Lookup
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.ops.pooled_lookups import BLOCK, COLUMNS, FEW_COLUMNS, MOST_ROWS, PooledLookup
from daedal.compiler.frontends.torch.ops.quantised_bags import NUMBERS, QuantisedBag
from daedal.compiler.frontends.torch.ops.reductions import ByDestination, IndexPut
from daedal.compiler.frontends.torch.ops.row_bags import RowBags
from daedal.compiler.frontends.torch.ops.row_scores import RowScore
from daedal.compiler.frontends.torch.ops.segment_reduce import EMPTY, SegmentReduce
from daedal.errors import UnsupportedOperation
from daedal.runtime.saved.operations import (
    SavedBags,
    SavedDestinations,
    SavedLookup,
    SavedOperation,
    SavedPooledLookup,
    SavedQuantisedBags,
    SavedSegments,
)


def saved_operation(operation: Operation) -> SavedOperation:
    """What a file says of an operation; UnsupportedOperation for one that it cannot hold."""
    if isinstance(operation, Bags):
        return SavedBags(operation.mode, operation.padding, operation.include_last_offset)
    if isinstance(operation, Lookup):
        return SavedLookup(operation.wraps, isinstance(operation, GatheredRows))
    if isinstance(operation, PooledLookup | RowScore) and not operation.is_exact:
        raise UnsupportedOperation(
            f"{operation.label}: a file cannot hold what was compiled with exact=False: compile the look-ups without it"
        )
    if isinstance(operation, PooledLookup):
        return SavedPooledLookup(
            operation.mode, BLOCK, _lengths(operation), operation.keeps_dim, operation.lookup.wraps
        )
    if isinstance(operation, ByDestination):
        wraps, keys_wrap = operation.message.wraps, isinstance(operation, IndexPut)
        rounds_sums = example_of(operation.keys).dtype in operation.rounds_sums_to
        return SavedDestinations(operation.mode, operation.is_column, wraps, keys_wrap, rounds_sums)
    if isinstance(operation, SegmentReduce):
        empty = EMPTY[operation.mode] if operation.initial is None else 0.0
        return SavedSegments(operation.mode, operation.has_offsets, str(empty), operation.message.wraps)
    if isinstance(operation, QuantisedBag):
        return SavedQuantisedBags(operation.bits, NUMBERS[operation.bits], operation.include_last_offset)
    if isinstance(operation, RowBags):
        raise UnsupportedOperation(
            f"{operation.label}: a file cannot hold FBGEMM's modules: compile torch.ops.quantized operators, or "
            "nn.EmbeddingBag, with their tables"
        )
    raise UnsupportedOperation(
        f"{operation.label}: a file cannot hold {type(operation).__name__}, whose inputs are sparse: compile what it "
        "does with index_add on its indices and values"
    )


def _lengths(operation: PooledLookup) -> tuple[int, ...]:
    """Numbers of rows that PyTorch adds in blocks."""
    known = example_of(operation.table)
    if not isinstance(operation.table, fx.Node) or known is None:
        raise UnsupportedOperation(f"{operation.label}: the width of its table must be known to save it")
    width = int(known.shape[1])
    return _in_blocks(width) if width % COLUMNS == 0 or width == FEW_COLUMNS else ()


@cache
def _in_blocks(width: int) -> tuple[int, ...]:
    """Numbers of rows of this width that PyTorch adds in blocks: it is asked, once, for all of them."""
    random = np.random.default_rng(width)
    rows = random.standard_normal((8, MOST_ROWS, width), np.float32)
    rows *= np.exp2(random.integers(-8, 8, rows.shape)).astype(np.float32)
    blocks = [np.add.accumulate(rows[:, first : first + BLOCK], 1) for first in range(0, MOST_ROWS, BLOCK)]
    found, before = [], np.zeros((8, width), np.float32)
    for length in range(1, MOST_ROWS + 1):
        block, row = divmod(length - 1, BLOCK)
        total = before + blocks[block][:, row]
        if row == BLOCK - 1:
            before = total
        asked = torch.from_numpy(rows[:, :length].copy()).sum(1)
        if torch.equal(asked, torch.from_numpy(total)):
            found.append(length)
    return tuple(found)
