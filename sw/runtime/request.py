"""One operation of a run, checked and in the form that a device takes, whatever framework it comes from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from daedal.driver.tables.quantised import QuantisedRows
from daedal.driver.tables.table_sources import Source, dtype_name
from daedal.hw.isa.elements import BFLOAT16, BINARY16, BINARY32, LANE, Element
from daedal.runtime.operations import Bag, Lookup, Score

Array: TypeAlias = NDArray[Any]
"""Integers of 32 or 64 bits, or binary32, contiguous."""

LONGEST_BAG = 1 << 24
"""Bags are shorter: counts and lengths are 24 bits wide (see VectorOp.DIVIDE_COUNT and AluOp.MUL)."""

LONG_FROM = 16
"""Rows of a bag, on average over a launch, above which each bag has a stream of indices of its own.

Shorter ones lie one behind the other in one stream, and are dealt out to contexts: see
docs/decisions/001-bags-in-turn.md.
"""


_SIGNIFICANDS = {BINARY32: 24, BINARY16: 11, BFLOAT16: 8}
"""Bits of the significands of elements."""


def exact_counts(element: Element) -> int:
    """A number up to which every integer is one that an element of this type can be."""
    return 1 << _SIGNIFICANDS[element]


def has_long_bags(lookups: int, bags: int) -> bool:
    """Whether a launch of so many lookups for so many bags is for a program with a stream of indices for each bag."""
    return not bags or lookups > LONG_FROM * bags


@dataclass(frozen=True)
class Request:
    """One operation of a run.

    Attributes
    ----------
    operation
        What has to be compiled.
    table
        The table, as the framework has it: rows of the operation's element, of any type for a gather.
    buffers
        The other inputs by buffer name, contiguous: ``indices``, ``offsets`` (one more than there are bags),
        ``weights``.
    values
        Numbers by name: ``length`` of all bags if there are no offsets.
    rows
        Rows of the result.
    shape
        Shape of the result.
    empty
        What a bag without rows gets in the end.
    form
        What the rows of the table, bytes, are; None if they are elements.
    others
        Further tables of a score, each with its name.
    finish
        What the host does with what comes back, in place; None for nothing.
    """

    operation: Bag | Lookup | Score
    table: Source
    buffers: Mapping[str, Array]
    values: Mapping[str, int]
    rows: int
    shape: tuple[int, ...]
    empty: float = 0.0
    form: QuantisedRows | None = None
    others: tuple[tuple[str, Source], ...] = ()
    finish: Callable[[Array], None] | None = None

    @property
    def out(self) -> tuple[int, ...]:
        """Shape of the buffer that the result is written to."""
        return (self.rows,) if isinstance(self.operation, Score) else (self.rows, self.operation.width)

    @property
    def lists(self) -> dict[str, Array]:
        """The lists of indices, by buffer name."""
        return {name: array for name, array in self.buffers.items() if name.startswith("indices")}

    @property
    def dtype(self) -> str:
        """Type of the result, which is the table's if sums are not binary32."""
        is_wide = self.form is not None or (isinstance(self.operation, Bag) and self.operation.is_wide)
        return LANE.dtype if is_wide else dtype_name(self.table)

    @property
    def lookups(self) -> int:
        """Rows that are looked up."""
        return sum(array.size for array in self.lists.values())

    @property
    def has_long_bags(self) -> bool:
        """Whether each bag is to have a stream of indices of its own."""
        return has_long_bags(self.lookups, self.rows)
