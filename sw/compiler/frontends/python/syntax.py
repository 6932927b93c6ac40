"""What single statements and expressions of a syntax tree say of themselves."""

import ast
from collections.abc import Iterator

from daedal.compiler.frontends.python.source import Source


def assigned(statements: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that give a value to a plain name, and the name; also those inside of others."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield node, target.id
            elif isinstance(node, ast.AugAssign | ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node, node.target.id


def is_range(loop: ast.For, source: Source) -> bool:
    """Whether a loop is of the form ``for name in range(...)``."""
    call = loop.iter
    return isinstance(call, ast.Call) and source.meaning(call.func) is range and isinstance(loop.target, ast.Name)


def indices_of(node: ast.Subscript) -> list[ast.expr]:
    """The indices of a subscript."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def mentions(node: ast.AST, name: str) -> bool:
    """Whether ``name`` is in what ``node`` stands for."""
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def is_store(node: ast.Subscript) -> bool:
    """Whether a subscript is written."""
    return isinstance(node.ctx, ast.Store)


def summand(statement: ast.stmt, name: str) -> ast.expr | None:
    """What ``name += x`` or ``name = name + x`` adds to ``name``; None for other statements."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return statement.value if isinstance(statement.target, ast.Name) and statement.target.id == name else None
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        value = statement.value
        is_sum = isinstance(value.op, ast.Add) and isinstance(value.left, ast.Name) and value.left.id == name
        return value.right if is_sum else None
    return None


def accesses_of(
    node: ast.AST, name: str, loops: list[ast.For], found: list[tuple[ast.Subscript, list[ast.For]]]
) -> None:
    """Collect the subscripts of an array with the loops around them."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
        found.append((node, loops))
    inner = [*loops, node] if isinstance(node, ast.For) else loops
    for child in ast.iter_child_nodes(node):
        accesses_of(child, name, inner, found)


def starts_with(loop: ast.For, name: str) -> bool:
    """Whether the first thing that a loop does with an array is to give its element another value."""
    first = next((statement for statement in loop.body if mentions(statement, name)), None)
    if not isinstance(first, ast.Assign) or mentions(first.value, name):
        return False
    target = first.targets[0]
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == name


def is_column(index: ast.expr, name: str) -> bool:
    """Whether an index is ``name``, or a sum with it that has it once."""
    if isinstance(index, ast.Name):
        return index.id == name
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add):
        for one, other in ((index.left, index.right), (index.right, index.left)):
            if isinstance(one, ast.Name) and one.id == name:
                return not mentions(other, name)
    return False
