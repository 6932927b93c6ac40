"""What a kernel promises in front of its loops: ``daedal.distinct(rows)``."""

import ast
from copy import copy

from daedal.compiler.frontends.python import names
from daedal.compiler.frontends.python.source import Source
from daedal.runtime.loops.signature import Signature

_INTEGERS = ("i32", "i64")


def take_promises(
    source: Source, signature: Signature, tree: ast.FunctionDef
) -> tuple[ast.FunctionDef, frozenset[str]]:
    """The tree without its promises, and the arrays that have no number twice.

    Raises UnsupportedOperation, with the line, for promises that are not in front of all loops, or of something else.
    """
    kept, found = list[ast.stmt](), set[str]()
    for statement in tree.body:
        call = _promise(source, statement)
        if call is None:
            kept.append(statement)
        elif any(isinstance(each, ast.For | ast.If) for each in kept):
            raise _misplaced(source, statement)
        else:
            found |= _arrays(source, signature, call)
    changed = copy(tree)
    changed.body = kept or [ast.Pass(lineno=tree.lineno, col_offset=tree.col_offset)]
    for node in ast.walk(changed):
        if isinstance(node, ast.Call) and source.meaning(node.func) is names.distinct:
            raise _misplaced(source, node)
    return changed, frozenset(found)


def _misplaced(source: Source, node: ast.AST) -> Exception:
    return source.refusal(node, "daedal.distinct must be a statement of its own in front of all loops and conditions")


def _promise(source: Source, statement: ast.stmt) -> ast.Call | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call if isinstance(call, ast.Call) and source.meaning(call.func) is names.distinct else None


def _arrays(source: Source, signature: Signature, call: ast.Call) -> set[str]:
    found = set()
    for given in call.args:
        argument = signature.arguments.get(given.id) if isinstance(given, ast.Name) else None
        if argument is None or argument.shape is None or argument.element not in _INTEGERS:
            raise source.refusal(
                call, f"daedal.distinct must be given arrays of i32 or i64 of the kernel's, not {ast.unparse(given)}"
            )
        found.add(argument.name)
    if call.keywords or not found:
        raise source.refusal(call, "daedal.distinct must be given the arrays that have no number twice: distinct(rows)")
    return found
