"""The source of a kernel: its syntax tree, and where in which file something stands."""

import ast
import inspect
import re
import textwrap
from types import FunctionType
from typing import Any

from daedal.errors import UnsupportedOperation


def ir_name(name: str) -> str:
    """A name of Python's as one that text of the IR keeps: without a number behind a last underscore, in ASCII."""
    ascii_name = "".join(letter if letter.isascii() else f"u.{ord(letter):x}." for letter in name)
    return re.sub(r"_(\d+)$", r".\1", ascii_name)


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
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise UnsupportedOperation(
                f"the source of {function.__name__} cannot be read ({error}): put the kernel into a file"
            ) from error
        module = ast.parse(textwrap.dedent("".join(lines)))
        ast.increment_lineno(module, first - 1)
        self._lines = {first + n: line.strip() for n, line in enumerate(lines)}
        tree = module.body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise UnsupportedOperation(f"{self.file}:{first}: daedal.kernel must be put on a function made with def")
        self.tree = tree
        closed = inspect.getclosurevars(function)
        self.names: dict[str, Any] = {**function.__globals__, **closed.nonlocals}

    def place(self, line: int) -> str:
        """How a message says where ``line`` is: file, number and text."""
        return f"{self.file}:{line}: `{self._lines.get(line, '')}`"

    def refusal(self, node: ast.AST | int, why: str) -> UnsupportedOperation:
        """The error for what stands at ``node`` (or in a line)."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.tree.lineno)
        return UnsupportedOperation(f"{self.place(line)}: {why}")

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
