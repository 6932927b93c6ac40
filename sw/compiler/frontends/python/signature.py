"""A kernel's arguments, and the sizes that the arrays of a call agree on."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daedal.compiler.frontends.python.integers import Given, Integer, Number, combine, evaluate, parts
from daedal.compiler.frontends.python.names import DTYPES, FLOATS, Dim, ScalarType
from daedal.compiler.frontends.python.source import Source
from daedal.errors import UnsupportedOperation

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}


@dataclass(frozen=True)
class Argument:
    """An argument: ``shape`` of an array, None for a single number; ``text`` is its annotation."""

    name: str
    element: str
    shape: tuple[Integer, ...] | None
    text: str

    @property
    def dtype(self) -> str:
        """The type of its elements as NumPy calls it."""
        return DTYPES[self.element]

    @property
    def is_float(self) -> bool:
        """Whether it holds elements of rows, or is a single number of that kind; else it is of integers."""
        return self.element in FLOATS


class Signature:
    """The arguments of a kernel.

    Attributes
    ----------
    arguments
        By name, in their order.
    symbols
        The names of sizes.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.symbols: dict[str, None] = {}
        given = source.tree.args
        extra = [*given.posonlyargs, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        if extra or given.defaults:
            node = extra[0] if extra else given.defaults[0]
            raise source.refusal(node, "a kernel must have plain arguments only, without defaults, * and **")
        self.arguments = {argument.arg: self._argument(argument) for argument in given.args}
        if source.tree.returns is not None and not _is_none(source.tree.returns):
            raise source.refusal(source.tree.returns, "a kernel must return nothing: it fills arrays that it is given")

    def _argument(self, argument: ast.arg) -> Argument:
        node = argument.annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = self._annotation(node, node.value)
        wanted = "annotated as daedal.f32, i32 or i64, or as one of these with sizes, as f32[B, D]"
        if node is None:
            raise self._source.refusal(argument, f"argument {argument.arg!r} must be {wanted}")
        element, sizes = (node.value, node.slice) if isinstance(node, ast.Subscript) else (node, None)
        name = self._type_name(element)
        if name is None:
            text = ast.unparse(node)
            raise self._source.refusal(argument, f"argument {argument.arg!r} must be {wanted}, not {text}")
        shape = None
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
                self.symbols[name] = None
                return Given(name)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return combine(_OPERATORS[type(node.op)], self._size(node.left), self._size(node.right))
        raise self._source.refusal(
            node, f"a size must be a number, a name, or a sum, difference or product of these, not {ast.unparse(node)}"
        )

    def by_name(self, arguments: Sequence[Any], kernel: str) -> dict[str, Any]:
        """The arguments of a call by name; UnsupportedOperation if there are more or less than the kernel has."""
        if len(arguments) != len(self.arguments):
            raise UnsupportedOperation(
                f"{kernel} must be given {len(self.arguments)} arguments ({', '.join(self.arguments)}), "
                f"not {len(arguments)}"
            )
        return dict(zip(self.arguments, arguments, strict=True))

    def sizes(self, shapes: Mapping[str, tuple[int, ...]], numbers: Mapping[str, int]) -> dict[str, int]:
        """The value of every symbol and of ``numbers``, integer arguments.

        UnsupportedOperation names the argument and the dimension that does not fit.
        """
        known = dict(numbers)
        from_: dict[str, str] = {}
        for argument in self._arrays():
            given = shapes[argument.name]
            assert argument.shape is not None
            if len(given) != len(argument.shape):
                raise UnsupportedOperation(
                    f"argument {argument.name!r} must have {len(argument.shape)} dimensions ({argument.text}), "
                    f"not {len(given)}: its shape is {given}"
                )
            for dimension, (wanted, size) in enumerate(zip(argument.shape, given, strict=True)):
                if isinstance(wanted, Given) and wanted.name not in known:
                    known[wanted.name] = size
                    from_[wanted.name] = f"{wanted.name} is dimension {dimension} of {argument.name!r}"
        self._solve(shapes, known)
        for argument in self._arrays():
            for dimension, wanted in enumerate(argument.shape or ()):
                self._check(argument, dimension, wanted, shapes[argument.name][dimension], known, from_)
        return known

    def _arrays(self) -> list[Argument]:
        return [argument for argument in self.arguments.values() if argument.shape is not None]

    def _solve(self, shapes: Mapping[str, tuple[int, ...]], known: dict[str, int]) -> None:
        """Find symbols that stand in sums and products only, where all others of the size are known."""
        sizes = [
            (wanted, shapes[argument.name][dimension])
            for argument in self._arrays()
            for dimension, wanted in enumerate(argument.shape or ())
        ]
        for _ in self.symbols:
            for wanted, size in sizes:
                unknown = {part.name for part in parts(wanted) if isinstance(part, Given)} - known.keys()
                if len(unknown) == 1:
                    name = unknown.pop()
                    at_0, at_1 = (evaluate(wanted, {**known, name: value}) for value in (0, 1))
                    value = (size - at_0) // (at_1 - at_0) if at_1 != at_0 else 0
                    if value >= 0 and evaluate(wanted, {**known, name: value}) == size:
                        known[name] = value
        missing = [name for name in self.symbols if name not in known]
        if missing:
            raise UnsupportedOperation(
                f"size {missing[0]} does not follow from the shapes of the arrays: let one array have it as a dimension"
            )

    def _check(
        self,
        argument: Argument,
        dimension: int,
        wanted: Integer,
        size: int,
        known: dict[str, int],
        from_: dict[str, str],
    ) -> None:
        value = evaluate(wanted, known)
        if value == size:
            return
        because = "".join(
            f"; {from_[part.name]}" for part in parts(wanted) if isinstance(part, Given) and part.name in from_
        )
        raise UnsupportedOperation(
            f"dimension {dimension} of argument {argument.name!r} must be {value} ({argument.text}), not {size}"
            + because
        )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
