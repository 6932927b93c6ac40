"""The source of a kernel: its syntax tree, and where in which file something stands."""

import ast
import inspect
from contextlib import suppress
from types import FunctionType
from typing import Any

from daedal.errors import UnsupportedOperation


class Source:
    """The text of a function.

    Attributes
    ----------
    tree
        Its syntax tree; line numbers are those of the file.
    names
        What its free names mean, as far as that is known: globals, and what it closes over.
    """

    def __init__(self, function: FunctionType) -> None:
        self.file = function.__code__.co_filename
        if hasattr(function, "__wrapped__"):
            raise UnsupportedOperation(
                f"{self.file}: daedal.kernel must be put on {function.__name__} itself, below other decorators"
            )
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise UnsupportedOperation(
                f"the source of {function.__name__} cannot be read ({error}): put the kernel into a file"
            ) from error
        self._lines = {first + n: line.strip() for n, line in enumerate(lines)}
        tree = _definition(lines, first)
        if not isinstance(tree, ast.FunctionDef) or tree.name != function.__name__:
            raise UnsupportedOperation(f"{self.file}:{first}: daedal.kernel must be put on a function made with def")
        self.tree = tree
        self.names: dict[str, Any] = {**function.__globals__, **_closed(function)}

    def place(self, line: int) -> str:
        """How a message says where ``line`` is: file, number and text."""
        return f"{self.file}:{line}: `{self._lines.get(line, '')}`"

    def refusal(self, node: ast.AST | int, why: str) -> UnsupportedOperation:
        """The error for what stands at ``node`` (or in a line)."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.tree.lineno)
        return UnsupportedOperation(f"{self.place(line)}: {why}")

    def too_deep(self) -> UnsupportedOperation:
        """The error for expressions or statements that are nested deeper than Python's stack."""
        return self.refusal(self.tree, "an expression or a statement is nested too deeply: split it up")

    def meaning(self, node: ast.expr) -> Any:
        """The object that a name or an attribute of one stands for, or None."""
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names[node.id]
            builtins = self.names.get("__builtins__", {})
            found = builtins if isinstance(builtins, dict) else vars(builtins)
            return found.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self.meaning(node.value), node.attr, None)
        return None


def _definition(lines: list[str], first: int) -> ast.stmt | None:
    """The statement in these lines, which may be indented; None if it is not one whole statement."""
    is_indented = lines[0][:1].isspace()
    text = "".join(["if True:\n", *lines] if is_indented else lines)
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    if is_indented:
        assert isinstance(statement, ast.If)
        statement = statement.body[0]
    ast.increment_lineno(statement, first - 1 - is_indented)
    return statement


def _closed(function: FunctionType) -> dict[str, Any]:
    """The variables of functions around it that have a value by now."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found
