"""Whether rounds of a kernel's outermost loops can be shared out: each writes, by its number, elements of its own."""

import ast
from collections.abc import Collection, Iterator

from daedal.compiler.frontends.python.names import Dim
from daedal.compiler.frontends.python.source import Source
from daedal.compiler.frontends.python.syntax import indices_of, is_range, mentions
from daedal.runtime.loops.integers import Binary, Given, Integer, Number, parts
from daedal.runtime.loops.rounds import Rounds
from daedal.runtime.loops.signature import Signature


class _Whole(Exception):
    """Why a kernel stays whole."""


def rounds_of(
    source: Source, signature: Signature, tree: ast.FunctionDef, written: Collection[str], fixed: Collection[str]
) -> Rounds:
    """How the rounds of ``tree`` can be shared out; ``written`` are arrays, ``fixed`` sizes of which programs are."""
    try:
        return _Reader(source, signature, tree).rounds(written, fixed)
    except _Whole as why:
        return Rounds(why_not=str(why))


class _Reader:
    """Looks at the names of outermost loops, of their numbers of rounds, and of arrays."""

    def __init__(self, source: Source, signature: Signature, tree: ast.FunctionDef) -> None:
        self._source, self._signature, self._tree = source, signature, tree

    def rounds(self, written: Collection[str], fixed: Collection[str]) -> Rounds:
        """How they can be shared out; _Whole if they cannot."""
        loops = [self._loop(each) for each in self._tree.body if not _is_text(each)]
        sizes = {self._size(loop) for loop in loops}
        if len(sizes) != 1:
            raise _Whole("all outermost loops must be over the same size, as range(B)")
        size = sizes.pop()
        if size in fixed:
            raise _Whole(f"there is a program for each {size}, as it is the length of rows")
        arrays = dict(self._arrays(size))
        inside = [node for loop in loops for each in loop.body for node in ast.walk(each)]
        if any(self._symbol(node) == size for node in inside):
            raise _Whole(f"{size} must be used in range({size}) and as first size of arrays alone")
        for loop in loops:
            self._check(loop, arrays, loops)
        for name in sorted(written):
            if arrays.get(name) != 0:
                raise _Whole(f"{name} is written, and must have the first size {size} and the loop's variable as index")
        return Rounds(size, arrays)

    def _loop(self, statement: ast.stmt) -> ast.For:
        if not isinstance(statement, ast.For) or not is_range(statement, self._source):
            raise _Whole("there must be nothing but loops outside of loops")
        return statement

    def _size(self, loop: ast.For) -> str:
        call = loop.iter
        assert isinstance(call, ast.Call)
        bounds = call.args
        if len(bounds) == 2 and isinstance(bounds[0], ast.Constant) and bounds[0].value == 0:
            bounds = bounds[1:]
        found = self._symbol(bounds[0]) if len(bounds) == 1 else None
        if found is None:
            raise _Whole(f"an outermost loop must be over a size, as range(B), not {ast.unparse(call)}")
        return found

    def _symbol(self, node: ast.AST) -> str | None:
        """The size that a name stands for."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        meaning = self._source.meaning(node)
        if isinstance(meaning, Dim):
            return meaning.text if meaning.text in self._signature.symbols else None
        return node.id if isinstance(node, ast.Name) and node.id in self._signature.symbols else None

    def _arrays(self, size: str) -> Iterator[tuple[str, int]]:
        """The arrays whose first size is that, or some more, and how many."""
        for name, argument in self._signature.arguments.items():
            first, *others = argument.shape or (Number(0),)
            if any(Given(size) in parts(each) for each in others):
                raise _Whole(f"{name} has {size} as another size than the first")
            if Given(size) in parts(first):
                more = _more(first, Given(size))
                if more is None:
                    raise _Whole(f"the first size of {name} must be {size}, or that and a number, not {argument.text}")
                yield name, more

    def _check(self, loop: ast.For, arrays: dict[str, int], loops: list[ast.For]) -> None:
        """Check that the loop's variable is the first index of these arrays, and nothing else."""
        assert isinstance(loop.target, ast.Name)
        variable, allowed = loop.target.id, set[int]()
        for node in (each for statement in loop.body for each in ast.walk(statement)):
            if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
                continue
            if node.value.id not in arrays:
                continue
            index = indices_of(node)[0]
            ahead = _ahead(index, variable)
            if ahead is None or ahead > arrays[node.value.id]:
                raise _Whole(f"the first index of {node.value.id} must be {variable}, not {ast.unparse(index)}")
            allowed |= {id(each) for each in ast.walk(index)}
        whole = self._of_arrays(loop, arrays)
        if whole:
            raise _Whole(f"{whole} must be given its first index, {variable}")
        for other in loops:
            for node in (each for statement in other.body for each in ast.walk(statement)):
                is_use = isinstance(node, ast.Name) and node.id == variable and id(node) not in allowed
                if is_use and (other is loop or not _is_own(other, variable)):
                    raise _Whole(f"{variable} must be the first index of arrays alone")

    def _of_arrays(self, loop: ast.For, arrays: dict[str, int]) -> str:
        """One of these arrays that is used without indices."""
        inside = [node for each in loop.body for node in ast.walk(each)]
        indexed = {id(node.value) for node in inside if isinstance(node, ast.Subscript)}
        names = [node for node in inside if isinstance(node, ast.Name) and node.id in arrays]
        return next((node.id for node in names if id(node) not in indexed), "")


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _is_own(loop: ast.For, variable: str) -> bool:
    """Whether the variable is that of this loop, or of one inside of it."""
    return any(isinstance(each, ast.For) and mentions(each.target, variable) for each in ast.walk(loop))


def _more(first: Integer, size: Given) -> int | None:
    """How much more than ``size`` it is; None if it is not that and a number."""
    if first == size:
        return 0
    if isinstance(first, Binary) and first.kind == "add":
        for one, other in ((first.a, first.b), (first.b, first.a)):
            if one == size and isinstance(other, Number) and other.value >= 0:
                return other.value
    return None


def _ahead(index: ast.expr, variable: str) -> int | None:
    """How much more than the variable an index is; None if it is not that and a number from 0 on."""
    if isinstance(index, ast.Name):
        return 0 if index.id == variable else None
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add):
        for one, other in ((index.left, index.right), (index.right, index.left)):
            number = other.value if isinstance(other, ast.Constant) else None
            if isinstance(one, ast.Name) and one.id == variable and type(number) is int and number >= 0:
                return number
    return None
