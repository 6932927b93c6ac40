"""Local numbers and rows, and elements of arrays that are kept in local numbers."""

import ast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    f32,
)
from xdsl.ir import SSAValue

from daedal.compiler.frontends.python.scf.frame import Frame
from daedal.compiler.frontends.python.scf.values import Cell, Row
from daedal.runtime.loops.integers import (
    Induction,
    Number,
    combine,
)


class Cells(Frame):
    """Writes what is kept in registers."""

    def _cell(self, name: str, source: str) -> Cell:
        """A local number, which is ``source`` in the kernel."""
        buffer = self._scopes.value(memref.AllocaOp.get(f32, shape=[1]), name, depth=0)
        self._names[f"local row %{buffer.name_hint}"] = source
        return Cell(buffer)

    def _set(self, cell: Cell, value: SSAValue, node: ast.stmt | ast.expr) -> None:
        if self._scopes.inner.is_row:
            raise self._source.refusal(
                node,
                f"{cell.buffer.name_hint} must not change here: a loop along a row changes rows, or sums up with +=",
            )
        self._mark("local row", cell.buffer, node.lineno)
        value = self._e.under_masks(value, lambda: self._e.load_cell(cell))
        self._scopes.insert(memref.StoreOp.get(value, cell.buffer, [self._scopes.integer(Number(0))]))
        self._e.forget(cell.buffer)

    def _row(self, call: ast.Call, name: str) -> None:
        if len(call.args) != 1 or call.keywords:
            raise self._source.refusal(call, "daedal.zeros must be given one size")
        width = self._e.integer(call.args[0], "a width")
        if not isinstance(width, Number) or width.value < 1:
            raise self._source.refusal(call, "the width of a local row must be a number, or a size, of at least 1")
        buffer = self._scopes.value(memref.AllocaOp.get(f32, shape=[width.value]), name, depth=0)
        self._e.bindings[name] = Row(buffer, width.value)
        self._mark("local row", buffer, call.lineno)
        zero = self._scopes.float_constant(0.0)
        variable = Induction(self._number(call, 0), "d")
        self._open(Number(0), width, variable, is_row=True, line=call.lineno)
        self._scopes.insert(memref.StoreOp.get(zero, buffer, [self._scopes.integer(variable)]))
        self._scopes.close()
        self._e.forget(buffer)

    def _keep(self, element: ast.Subscript, is_loaded: bool) -> tuple[ast.Subscript, Cell]:
        """Keep an element of an array in a local number from here on."""
        cell = self._cell(f"{name_of(element)}_kept", ast.unparse(element))
        if is_loaded:
            self._copy_element(element, cell, is_load=True)
        self._e.kept[name_of(element)] = cell
        return element, cell

    def _copy_element(self, element: ast.Subscript, cell: Cell, *, is_load: bool) -> None:
        """Copy an element of an array to its cell, or back: a row of one."""
        buffer, (*leading, last) = self._e.place(element)
        column = Induction(self._number(element, 0 if is_load else 1), "d")
        self._open(Number(0), Number(1), column, line=element.lineno, is_row=True)
        where = [self._scopes.integer(index) for index in (*leading, combine("add", last, column))]
        here = [self._scopes.integer(column)]
        (source, source_at), (target, target_at) = (buffer, where), (cell.buffer, here)
        if not is_load:
            source, source_at, target, target_at = target, target_at, source, source_at
        value = self._scopes.value(memref.LoadOp.get(source, source_at))
        self._scopes.insert(memref.StoreOp.get(value, target, target_at))
        self._scopes.close()
        self._e.forget(None)


def name_of(target: ast.Subscript) -> str:
    """The name of what a subscript is of."""
    return target.value.id if isinstance(target.value, ast.Name) else ""
