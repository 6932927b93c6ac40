"""Refuses programs in which a read could see what the same launch writes.

The access unit reads far ahead, so nothing that a launch stores may be read in it. Allowed is a row that is
read once, before its only store, in the same turn of the loops: each element is then read before it is
written. Loops choose that row, or numbers that are loaded, of which none may be there twice: the buffers that
hold these are an attribute of the function.
"""

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from daedal.compiler.analysis.addresses import buffer_name, outside
from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.dialects import slc, slcv
from daedal.errors import UnsupportedOperation

DISTINCT = "distinct"
"""Attribute of a function: the names of buffers that must not hold a number twice."""


def check_aliases(function: func.FuncOp) -> None:
    """Raise UnsupportedOperation, naming the buffer, if a read may come after a write of the same element; else say
    in the function which buffers must not hold a number twice for that.
    """
    names = sorted(map(buffer_name, _distinct_buffers(function)))
    if names:
        function.attributes[DISTINCT] = ArrayAttr(map(StringAttr, names))


def distinct_names(function: func.FuncOp) -> set[str]:
    """The names of buffers that must not hold a number twice, of a function that was checked."""
    names = function.attributes.get(DISTINCT, ArrayAttr([]))
    assert isinstance(names, ArrayAttr)
    return {name.data for name in names if isinstance(name, StringAttr)}


def _distinct_buffers(function: func.FuncOp) -> set[SSAValue]:
    reads: dict[SSAValue, list[Operation]] = {}
    writes: dict[SSAValue, list[slcv.StoreOp]] = {}
    order = list(function.walk())
    for op in order:
        if isinstance(op, slcv.FetchOp | slc.LoadOp):
            reads.setdefault(op.memref, []).append(op)
        elif isinstance(op, slcv.StoreOp):
            writes.setdefault(op.memref, []).append(op)
    distinct: set[SSAValue] = set()
    for buffer, stores in writes.items():
        if buffer not in reads:
            continue
        needs = _needs(reads[buffer], stores, order)
        if needs is None or needs & writes.keys():
            raise UnsupportedOperation(
                f"buffer %{buffer_name(buffer)} must not be both read and written: a read may come "
                "before or after "
                "the write; use a local row or two buffers"
            )
        distinct |= needs
    return distinct


def _needs(reads: list[Operation], stores: list[slcv.StoreOp], order: list[Operation]) -> set[SSAValue] | None:
    """The buffers without equal numbers with which each element is read before it is written; None if none help."""
    if len(reads) != 1 or len(stores) != 1:
        return None
    fetch, store = reads[0], stores[0]
    if not isinstance(fetch, slcv.FetchOp) or order.index(fetch) > order.index(store):
        return None
    *place, column = [outside(index) for index in fetch.indices]
    *other_place, other_column = [outside(index) for index in store.indices]
    if place != other_place or column is not other_column:
        return None
    if slcv.width_of(fetch.result) == slcv.width_of(store.row) == 1:
        place.append(column)  # single elements: the column chooses them as well
    turns = _loops(fetch) | _loops(store)
    for loads in (None, set[SSAValue]()):
        if turns <= {loop for value in place for loop in _choosing(value, loads)}:
            return loads or set()
    return None


def _choosing(value: SSAValue, needs: set[SSAValue] | None) -> set[int]:
    """The loops that give a value another number in each turn. With ``needs``, also those of loaded values, if no
    number is twice in the buffers that are put there.
    """
    value, owner = outside(value), outside(value).owner
    if isinstance(owner, slc.LoadOp) and needs is not None:
        needs.add(owner.memref)
        return {loop for index in owner.indices for loop in _choosing(index, needs)}
    loop = owner.parent_op() if isinstance(owner, Block) else None
    if not isinstance(loop, slc.ForOp):
        return set()
    return _choosing(loop.lower, needs) if _runs_once(loop) else {id(loop)}


def _runs_once(loop: slc.ForOp) -> bool:
    return _is_one_more(loop.upper, loop.lower)


def _is_one_more(value: SSAValue, other: SSAValue) -> bool:
    value, owner = outside(value), outside(value).owner
    return (
        isinstance(owner, slc.AluOp)
        and owner.kind.data == "add"
        and outside(owner.a) is outside(other)
        and constant_of(owner.b) == 1
    )


def _loops(access: Operation) -> set[int]:
    """The loops that run an access more than once."""
    callback = access.parent_op()
    assert isinstance(callback, slc.CallbackOp)
    loop = callback.parent_op() if callback.event.data == "iteration" else _around(callback.parent_op())
    found = set()
    while isinstance(loop, slc.ForOp):
        if not _runs_once(loop):
            found.add(id(loop))
        loop = loop.parent_op()
    return found


def _around(op: Operation | None) -> Operation | None:
    return None if op is None else op.parent_op()
