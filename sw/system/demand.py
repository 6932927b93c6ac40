"""What a sample asks of the tiles of a system: the operations on each table."""

from dataclasses import dataclass, replace

from daedal.driver.tables.table_sources import array_type
from daedal.hw.isa.elements import LANE
from daedal.runtime.batch.members import Call
from daedal.runtime.operations import Lookup
from daedal.runtime.request import Request
from daedal.system.cuts import SHORT_BYTES, column_step, name_as, planned_table, table_name
from daedal.system.plan import PlannedTable

OFFSET_BYTES = 8


@dataclass(frozen=True)
class Demand:
    """The operations of a sample on one table, all together.

    Attributes
    ----------
    table
        The table; ``bags`` are those of the operation that has most.
    rows
        Its rows in the sample.
    step
        Columns of a slice are a multiple of this; 0 if it is not cut so.
    element
        Bytes of an element of the result, and of one of the table if it is cut by columns.
    row_bytes
        Bytes of a whole row.
    bags, lookups
        Bags, or rows that are copied, and look-ups, of all operations.
    overhead
        Bytes read besides rows: indices, offsets, weights.
    spared
        Those of them that a slice of columns does not read, as its indices are short.
    listed
        Bytes that are read besides, where operations on several tables are a list: offsets of bags that have none.
    is_copied
        Rows are copied as they are.
    has_heads
        Rows are integers with a scale and a bias.
    """

    table: PlannedTable
    rows: int
    step: int
    element: int
    row_bytes: int
    bags: int
    lookups: int
    overhead: int
    spared: int = 0
    listed: int = 0
    is_copied: bool = False
    has_heads: bool = False

    def bytes_of(self, columns: int) -> int:
        """Bytes of so many columns of a row."""
        return columns * self.element if self.step else self.row_bytes

    def overhead_of(self, columns: int) -> int:
        """Bytes that are read besides so many columns of the rows."""
        return self.overhead - (self.spared if columns < self.table.dim else 0)


class Demands:
    """The demands of a sample by table."""

    def __init__(self) -> None:
        self._found: dict[str, Demand] = {}
        self.lookups: dict[str, int] = {}
        """Look-ups of each operation, by its name."""

    def __len__(self) -> int:
        return len(self._found)

    @property
    def all(self) -> list[Demand]:
        """By name of the table."""
        return [self._found[name] for name in sorted(self._found)]

    def add(self, call: Call, request: Request, *, is_listed: bool = False) -> None:
        """An operation of the sample; ``is_listed``: with others in a launch."""
        self.lookups[call.name] = request.lookups
        name = table_name(call)
        table = planned_table(name, call, request)
        overhead = sum(array.nbytes for key, array in request.buffers.items() if key != "offsets")
        overhead += OFFSET_BYTES * (request.rows + 1) * ("offsets" in request.buffers)
        step, item = column_step(request), array_type(request.dtype).itemsize
        size = request.form.words * LANE.bytes if request.form is not None else table.dim * item
        spared = sum(array.nbytes - array.size * SHORT_BYTES for array in request.lists.values())
        rows, is_copied = int(request.table.shape[0]), isinstance(request.operation, Lookup)
        has_offsets = is_copied or "offsets" in request.buffers
        listed = OFFSET_BYTES * (request.rows + 1) if is_listed and not has_offsets else 0
        new = Demand(table, rows, step, item, size, request.rows, request.lookups, overhead, spared, listed, is_copied,
                     request.form is not None)  # fmt: skip
        old = self._found.get(name)
        if old is not None and (old.table.dim, old.table.dtype) != (table.dim, table.dtype):
            name = name_as(name, table.dim, table.dtype)
            table, old = replace(table, name=name), self._found.get(name)
            new = replace(new, table=table)
        if old is None:
            self._found[name] = new
            return
        both = replace(table, bags=max(old.table.bags, table.bags), lookups=old.table.lookups + table.lookups)
        self._found[name] = Demand(
            both,
            new.rows,
            step if step == old.step else 0,
            item,
            size,
            old.bags + new.bags,
            old.lookups + new.lookups,
            old.overhead + new.overhead,
            old.spared + new.spared,
            old.listed + new.listed,
            old.is_copied and new.is_copied,
            old.has_heads or new.has_heads,
        )
