"""Sums along a row, which are added up in the machine's fixed tree."""

import ast
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from daedal.compiler.analysis.row_loops import OCTETS, REDUCE
from daedal.compiler.frontends.python.scf.cells import Cells
from daedal.compiler.frontends.python.scf.values import Cell, Float, Row
from daedal.compiler.frontends.python.syntax import indices_of, summand
from daedal.hw.isa.instructions import OCTET, PARTIAL_SUMS
from daedal.runtime.loops.integers import (
    Induction,
    Integer,
    Number,
)
from daedal.runtime.loops.signature import ir_name


class Sums(Cells):
    """Writes loops that add to one number."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._e.dot = self._dot

    def _sum(self, node: ast.For, name: str, lower: Integer, upper: Integer, total: str) -> None:
        """A loop along a row that adds to one number."""
        self._notes.append((node.lineno, f"a sum along a row, in the execute unit: {name} is no loop of the machine"))

        def body() -> SSAValue:
            *first, last = node.body
            self._block(first)
            added = summand(last, total)
            assert added is not None
            return self._e.number(added)

        before = self._e.bindings.get(total)
        if before is None or isinstance(before, Row):
            raise self._source.refusal(node, f"{total} must have a value before the loop that adds to it")
        initial = self._e.load_cell(before) if isinstance(before, Cell) else self._e.as_float(before)
        outer = dict(self._e.bindings)
        result = self._reduce(node, name, lower, upper, initial, total, body)
        self._leave(outer)
        if isinstance(before, Cell):
            self._set(before, result, node)
        else:
            self._e.bindings[total] = Float(result)

    def _reduce(
        self, node: ast.AST, name: str, lower: Integer, upper: Integer, initial: SSAValue, total: str,
        body: Callable[[], SSAValue], *, octets: bool = False,
    ) -> SSAValue:  # fmt: skip
        variable = Induction(self._number(node, 0), name)
        loop = self._open(lower, upper, variable, line=getattr(node, "lineno", 0), is_row=True, carried=initial)
        loop.attributes[REDUCE] = UnitAttr()
        if octets:
            loop.attributes[OCTETS] = UnitAttr()
        carried = loop.body.block.args[1]
        carried.name_hint = ir_name(total)
        self._e.bindings[name] = variable
        added = body()
        new = self._scopes.value(arith.AddfOp(carried, added))
        self._scopes.close(new)
        loop.results[0].name_hint = ir_name(total)
        return loop.results[0]

    def _dot(self, call: ast.Call) -> SSAValue:
        """A sum of products of two rows."""
        parts = {each.arg: each.value for each in call.keywords}
        if len(call.args) != 2 or not parts.keys() <= {"partial_sums"}:
            raise self._source.refusal(call, "daedal.dot must be given two rows, and maybe partial_sums")
        number = parts.get("partial_sums", ast.Constant(PARTIAL_SUMS))
        if not isinstance(number, ast.Constant) or number.value not in (OCTET, PARTIAL_SUMS):
            given = ast.unparse(number)
            raise self._source.refusal(call, f"partial_sums must be {PARTIAL_SUMS} or {OCTET}, not {given}")
        variable = Induction(self._number(call, 0), "d")
        rows = [self._row_of(argument) for argument in call.args]
        widths = [width for _, width in rows]
        if widths[0] != widths[1] or not isinstance(widths[0], Number):
            raise self._source.refusal(call, "the rows of daedal.dot must have the same width")

        def body() -> SSAValue:
            a, b = (self._e.number(_element_of(node, "d")) for node, _ in rows)
            return self._scopes.value(arith.MulfOp(a, b))

        outer = dict(self._e.bindings)
        zero = self._scopes.float_constant(0.0)
        octets = number.value == OCTET
        result = self._reduce(call, variable.name, Number(0), widths[0], zero, "dot", body, octets=octets)
        self._leave(outer)
        return result

    def _row_of(self, node: ast.expr) -> tuple[ast.Subscript, Integer]:
        """A row as a subscript that ends with a slice, and its width."""
        if isinstance(node, ast.Name):
            node = ast.copy_location(ast.Subscript(node, ast.Slice(), ast.Load()), node)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            name, last = node.value.id, indices_of(node)[-1]
            bound, argument = self._e.bindings.get(name), self._signature.arguments.get(name)
            is_whole = isinstance(last, ast.Slice) and last.lower is last.upper is last.step is None
            if is_whole and isinstance(bound, Row):
                return node, Number(bound.width)
            if is_whole and argument is not None and argument.shape is not None and argument.is_float:
                return node, self._e.size(argument.shape[-1])
        raise self._source.refusal(node, f"{ast.unparse(node)!r} must be a row of f32, as a[i, :]")


def _element_of(row: ast.Subscript, column: str) -> ast.Subscript:
    """The subscript with ``column`` in the place of the slice."""
    *leading, _ = indices_of(row)
    index: list[ast.expr] = [*leading, ast.Name(column, ast.Load())]
    slice_ = ast.Tuple(index, ast.Load()) if len(index) > 1 else index[0]
    return ast.fix_missing_locations(ast.copy_location(ast.Subscript(row.value, slice_, ast.Load()), row))
