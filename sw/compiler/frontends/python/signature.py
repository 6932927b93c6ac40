"""Reads a kernel's arguments in its source."""

import ast

from daedal.compiler.frontends.python.names import Dim, ScalarType
from daedal.compiler.frontends.python.source import Source
from daedal.runtime.loops.integers import Given, Integer, Number, combine
from daedal.runtime.loops.signature import DTYPES, NARROW, Argument, Signature

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}


def read_signature(source: Source) -> Signature:
    """The arguments of a kernel; UnsupportedOperation, with the line, for those that it cannot have."""
    return _Reader(source).signature


class _Reader:
    """Reads the arguments, and collects the names of sizes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._symbols: dict[str, None] = {}
        given = source.tree.args
        extra = [*given.posonlyargs, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        if extra or given.defaults:
            node = extra[0] if extra else given.defaults[0]
            raise source.refusal(node, "a kernel must have plain arguments only, without defaults, * and **")
        arguments = {argument.arg: self._argument(argument) for argument in given.args}
        if source.tree.returns is not None and not _is_none(source.tree.returns):
            raise source.refusal(source.tree.returns, "a kernel must return nothing: it fills arrays that it is given")
        self.signature = Signature(arguments, tuple(self._symbols))

    def _argument(self, argument: ast.arg) -> Argument:
        node = argument.annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = self._annotation(node, node.value)
        wanted = "annotated as daedal.f32, i32 or i64, or as one of these, f16, bf16, u8 or i8 with sizes, as f32[B, D]"
        if node is None:
            raise self._source.refusal(argument, f"argument {argument.arg!r} must be {wanted}")
        element, sizes = (node.value, node.slice) if isinstance(node, ast.Subscript) else (node, None)
        name = self._type_name(element)
        if name is None:
            text = ast.unparse(node)
            raise self._source.refusal(argument, f"argument {argument.arg!r} must be {wanted}, not {text}")
        shape = None
        if sizes is None and name in NARROW:
            raise self._source.refusal(argument, f"argument {argument.arg!r} is a single number: it must be f32")
        if sizes is not None:
            nodes = sizes.elts if isinstance(sizes, ast.Tuple) else [sizes]
            shape = tuple(self._size(each) for each in nodes)
            if not shape:
                raise self._source.refusal(argument, f"argument {argument.arg!r} must have at least one size")
        return Argument(argument.arg, name, shape, ast.unparse(node))

    def _annotation(self, node: ast.expr, text: str) -> ast.expr:
        """An annotation that is a text."""
        try:
            return ast.copy_location(ast.parse(text, mode="eval").body, node)
        except (SyntaxError, ValueError) as error:
            raise self._source.refusal(node, f"annotation {text!r} cannot be read: {error}") from error

    def _type_name(self, node: ast.expr) -> str | None:
        meaning = self._source.meaning(node)
        if isinstance(meaning, ScalarType):
            return meaning.name
        found = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        return found if meaning is None and found in DTYPES else None

    def _size(self, node: ast.expr) -> Integer:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Number(node.value)
        if isinstance(node, ast.Name):
            meaning = self._source.names.get(node.id)
            if type(meaning) is int:
                return Number(meaning)
            if meaning is None or (isinstance(meaning, Dim) and meaning.text.isidentifier()):
                name = meaning.text if isinstance(meaning, Dim) else node.id
                self._symbols[name] = None
                return Given(name)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return combine(_OPERATORS[type(node.op)], self._size(node.left), self._size(node.right))
        raise self._source.refusal(
            node, f"a size must be a number, a name, or a sum, difference or product of these, not {ast.unparse(node)}"
        )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
