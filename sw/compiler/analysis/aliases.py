"""Refuses programs in which a read could see what the same launch writes.

The access unit reads far ahead, so nothing that a launch stores may be read in it. Allowed is a row that is
read once, before its only store, in the same turn of the loops: each element is then read before it is
written.
"""

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from daedal.compiler.analysis.addresses import buffer_name, outside
from daedal.compiler.dialects import slc, slcv
from daedal.errors import UnsupportedOperation


def check_aliases(function: func.FuncOp) -> None:
    """Raise UnsupportedOperation, naming the buffer, if a read may come after a write of the same element."""
    reads: dict[SSAValue, list[Operation]] = {}
    writes: dict[SSAValue, list[slcv.StoreOp]] = {}
    order = list(function.walk())
    for op in order:
        if isinstance(op, slcv.FetchOp | slc.LoadOp):
            reads.setdefault(op.memref, []).append(op)
        elif isinstance(op, slcv.StoreOp):
            writes.setdefault(op.memref, []).append(op)
    for buffer, stores in writes.items():
        if buffer in reads and not _is_read_first(reads[buffer], stores, order):
            raise UnsupportedOperation(
                f"buffer %{buffer_name(buffer)} must not be both read and written: a read may come "
                "before or after "
                "the write; use a local row or two buffers"
            )


def _is_read_first(reads: list[Operation], stores: list[slcv.StoreOp], order: list[Operation]) -> bool:
    if len(reads) != 1 or len(stores) != 1:
        return False
    fetch, store = reads[0], stores[0]
    if not isinstance(fetch, slcv.FetchOp) or order.index(fetch) > order.index(store):
        return False
    *place, column = [outside(index) for index in fetch.indices]
    *other_place, other_column = [outside(index) for index in store.indices]
    if place != other_place or column is not other_column:
        return False
    if slcv.width_of(fetch.result) == slcv.width_of(store.row) == 1:
        place.append(column)  # single elements: the column chooses them as well
    turns = _loops(fetch) | _loops(store)
    return turns <= {id(value.owner.parent_op()) for value in place if _is_induction(value)}


def _is_induction(value: SSAValue) -> bool:
    return isinstance(value.owner, Block) and isinstance(value.owner.parent_op(), slc.ForOp)


def _loops(access: Operation) -> set[int]:
    """The loops that run an access more than once."""
    callback = access.parent_op()
    assert isinstance(callback, slc.CallbackOp)
    loop = callback.parent_op() if callback.event.data == "iteration" else _around(callback.parent_op())
    found = set()
    while isinstance(loop, slc.ForOp):
        found.add(id(loop))
        loop = loop.parent_op()
    return found


def _around(op: Operation | None) -> Operation | None:
    return None if op is None else op.parent_op()
