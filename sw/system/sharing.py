"""Shares the operations of calls out to tiles, as a plan says."""

from collections.abc import Sequence
from threading import RLock

from daedal.driver.tables.table_sources import Place, Source, place_of
from daedal.errors import PlanMismatch, UnsupportedOperation
from daedal.runtime.batch.members import Call, is_of_model
from daedal.runtime.diagnostics import bad_offset
from daedal.runtime.executable import Compile
from daedal.runtime.kernel import Kernel
from daedal.runtime.operations import Operation
from daedal.runtime.request import Array, Request
from daedal.system.cuts import (
    PieceCall,
    columns_in,
    columns_of,
    cut,
    name_as,
    share,
    table_name,
    with_short_indices,
)
from daedal.system.plan import Piece, Plan, PlannedTable, Range
from daedal.system.tile import Part


class Sharing:
    """A plan at work.

    Parameters
    ----------
    plan
        Who does what.
    is_given
        Whether a table of the model's that is not in the plan, or not as it is there, is an error; else each comes
        whole to a tile.
    """

    def __init__(self, plan: Plan, *, is_given: bool) -> None:
        self.plan, self.is_given = plan, is_given
        self._slices: dict[tuple[str, Range], tuple[Source, Place, Source]] = {}
        """Of the model's tables that are cut by columns, the tensor, where it lay, and the part of it that was used
        last, which keeps that memory.
        """
        self._later: dict[str, int] = {}
        """The tiles of tables that are not in the plan."""

    def parts(self, call: Call, request: Request, whole: Array) -> dict[int, list[Part]]:
        """The pieces of an operation by tile; ``whole`` is its result.

        PlanMismatch for a table that is not as in the plan that was given; InvalidOffsets where bags cannot be told
        from each other.
        """
        is_models = is_of_model(call, request.table)
        pieces, planned = self._pieces(call, request, is_models=is_models)
        offsets = request.buffers.get("offsets")
        if offsets is not None and len({piece.bags for piece in pieces}) > 1:
            error = bad_offset(call.label, offsets, request.lookups)
            if error is not None:
                raise error
        found: dict[int, list[Part]] = {}
        is_sliced = any(piece.columns != (0, planned.dim) for piece in pieces)
        short = with_short_indices(request) if is_sliced else request
        for piece in pieces:
            bags = share(piece.bags, planned.bags, request.rows)
            if bags[0] == bags[1] and not (request.rows == 0 and piece.bags[0] == 0):
                continue
            is_whole = piece.columns == (0, planned.dim)
            given = request if is_whole else short
            table = request.table if is_whole else self._slice(call, request, piece.columns, is_models=is_models)
            own = PieceCall(call, None if is_whole else piece.columns, is_models=is_models)
            place = whole[bags[0] : bags[1], slice(*piece.columns)]
            found.setdefault(piece.tile, []).append(Part(own, cut(given, table, piece.columns, bags), place))
        return found

    def _slice(self, call: Call, request: Request, columns: Range, *, is_models: bool) -> Source:
        """Some columns of a table; of the model's the same tensor again, as tiles know them by that."""
        key, place = (table_name(call), columns), place_of(request.table)
        known = self._slices.get(key)
        if known is not None and known[0] is request.table and known[1] == place:
            return known[2]
        part = columns_of(request.table, columns)
        if is_models:
            self._slices[key] = request.table, place, part
        return part

    def _pieces(self, call: Call, request: Request, *, is_models: bool) -> tuple[Sequence[Piece], PlannedTable]:
        """What tiles do of a table. One that the plan does not know, as a call computes it, or takes the elements of
        the model's in other rows than the sample's, comes whole to a tile.
        """
        name, plan = table_name(call), self.plan
        rows, dim = int(request.table.shape[0]), columns_in(request)
        planned = plan.table.get(name)
        for each in (planned, plan.table.get(name_as(name, dim, request.dtype))):
            is_alike = each is not None and (each.dim, each.dtype) == (dim, request.dtype)
            if each is not None and is_alike and (each.rows in (None, rows) or not self.is_given):
                return plan.pieces_of[each.name], each
        if self.is_given and is_models and (planned is None or rows * dim != (planned.rows or 0) * planned.dim):
            known = "none" if planned is None else f"{planned.rows} × {planned.dim} {planned.dtype}"
            raise PlanMismatch(
                f"the plan's table {name!r} must be the model's, {rows} × {dim} {request.dtype}, not {known}: make a "
                "plan for this model with daedal.plan"
            )
        tile = self._later.setdefault(name, len(self._later) % plan.tiles)
        return [Piece(name, (0, dim), (0, 1), tile)], PlannedTable(name, None, dim, request.dtype, 1, 0)


def shared(compile: Compile) -> Compile:
    """The same for all tiles: each kernel is compiled once, by one thread."""
    lock, known = RLock(), dict[tuple[Operation, bool], Kernel | UnsupportedOperation]()

    def kernel(operation: Operation, has_long_bags: bool) -> Kernel:
        with lock:
            key = operation, has_long_bags
            if key not in known:
                try:
                    known[key] = compile(operation, has_long_bags)
                except UnsupportedOperation as error:
                    known[key] = error
            found = known[key]
        if isinstance(found, UnsupportedOperation):
            raise found
        return found

    return kernel
