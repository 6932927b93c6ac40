"""What a kernel's loops along rows into a number mean: sums in the machine's order, for Python to run.

The order is the specification's (``hw/isa/spec/reduction.py``). Which loops are such sums is said in docs/compiler.md
and found out here once more: nothing of the compiler is used.
"""

import ast
from collections.abc import Iterable
from typing import Any

import numpy as np

from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.reduction import reduce


def tree_sum(first: Any, values: Iterable[Any]) -> Any:
    """``first`` and the sum of the values in the order of a reduction."""
    total = np.float32(reduce(VectorOp.ADD, np.array(list(values), np.float32)))
    return total if first == 0 else np.float32(np.float32(first) + total)


def with_trees(text: str) -> str:
    """The source of a function in which such loops are calls of ``tree_sum``."""
    tree = _Trees().visit(ast.parse(text))
    return ast.unparse(ast.fix_missing_locations(tree))


class _Trees(ast.NodeTransformer):
    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        match node:
            case ast.For(
                target=ast.Name(id=variable),
                iter=ast.Call(args=bounds),
                body=[ast.AugAssign(target=ast.Name(id=total), op=ast.Add(), value=value)],
            ) if _is_fixed(bounds) and _is_along_rows(value, variable):
                place = ast.comprehension(node.target, node.iter, [], 0)
                call = ast.Call(
                    ast.Name("tree_sum", ast.Load()),
                    [ast.Name(total, ast.Load()), ast.GeneratorExp(value, [place])],
                    [],
                )
                return ast.Assign([ast.Name(total, ast.Store())], call)
        return node


def _is_fixed(bounds: list[ast.expr]) -> bool:
    """Whether a loop's bounds are sizes and constants, and its step is 1."""
    sizes = (ast.Constant, ast.Name)
    return len(bounds) < 3 and all(isinstance(each, sizes) and getattr(each, "id", "") != "k" for each in bounds)


def _is_along_rows(value: ast.expr, variable: str) -> bool:
    """Whether the variable is used, and only by itself as the last index of elements."""

    def uses(node: ast.AST) -> int:
        return sum(isinstance(each, ast.Name) and each.id == variable for each in ast.walk(node))

    elements = [node for node in ast.walk(value) if isinstance(node, ast.Subscript)]
    loaded = {id(inner) for node in elements for inner in ast.walk(node.slice)}
    last = 0
    for node in elements:
        index = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
        last += id(node) not in loaded and isinstance(index, ast.Name) and index.id == variable
    return last == uses(value) > 0
