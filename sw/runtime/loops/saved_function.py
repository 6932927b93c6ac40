"""A function of loops from a file: programs for some sizes of rows, and what the host checks for them."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.runtime.kernel import Kernel
from daedal.runtime.loops.bounds import Bounds
from daedal.runtime.loops.kernel_function import LoopFunction
from daedal.runtime.loops.signature import Signature
from daedal.runtime.saved.contents import SavedFunction, SavedLoops
from daedal.runtime.saved.files import Writer


@dataclass(frozen=True)
class SavedSource:
    """Where the function stood when it was compiled."""

    file: str
    first_line: int
    lines: Mapping[int, str]

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """A definition in the function's first line; a file has no syntax tree."""
        (found,) = ast.parse("def saved(): pass").body
        ast.increment_lineno(found, self.first_line - 1)
        assert isinstance(found, ast.FunctionDef)
        return found

    def place(self, line: int) -> str:
        """How a message says where ``line`` is."""
        return f"{self.file}:{line}: `{self.lines.get(line, '')}`"

    def refusal(self, node: ast.AST | int, why: str) -> UnsupportedOperation:
        """The error for what stands there."""
        line = node if isinstance(node, int) else getattr(node, "lineno", self.first_line)
        return UnsupportedOperation(f"{self.place(line)}: {why}")


@dataclass(frozen=True)
class _Shape:
    fixed: Sequence[str]
    written: set[str]


@dataclass(frozen=True)
class _Written:
    bounds: Bounds
    notes: Sequence[tuple[int, str]]


class SavedLoopFunction:
    """A function of a file, ``kernel_function.LoopFunction``, for the sizes of rows that it was saved for."""

    def __init__(self, saved: SavedFunction, kernels: Sequence[Kernel]) -> None:
        self.name, self.signature = saved.name, saved.signature
        self.source = SavedSource(saved.file, saved.first_line, saved.lines)
        self.shape, self.rounds = _Shape(saved.fixed, set(saved.written)), saved.rounds
        self._loops = {tuple(each.fixed): each for each in saved.loops}
        self._kernels = kernels

    @property
    def sizes(self) -> list[dict[str, int]]:
        """The sizes of rows that there is a program for."""
        return [dict(fixed) for fixed in self._loops]

    def build(self, fixed: Mapping[str, int], config: Config, bounds: str, opt: int) -> tuple[_Written, Kernel]:
        """The program for these sizes; UnsupportedOperation if the file has none."""
        found = self._loops.get(tuple(fixed.items()))
        if found is None:
            wanted = _in_words(fixed)
            known = "; ".join(_in_words(each) for each in self.sizes)
            raise UnsupportedOperation(
                f"{self.name}: sizes of rows must be those that it was saved for ({known}), not {wanted}: call the "
                "executable with such arrays before it is saved"
            )
        return _Written(found.bounds, found.notes), self._kernels[found.kernel]


def _in_words(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "none"


def saved_function(
    function: LoopFunction,
    made: Mapping[tuple[tuple[str, int], ...], tuple[Bounds, Sequence[tuple[int, str]], Kernel]],
    writer: Writer,
) -> SavedFunction:
    """What a file says of a function, with what was ``made`` for some sizes of rows."""
    loops = [
        SavedLoops(fixed, bounds, tuple((line, note) for line, note in notes), writer.kernel(kernel))
        for fixed, (bounds, notes, kernel) in made.items()
    ]
    source, first = function.source, function.source.tree.lineno
    file = source.place(first).rpartition(f":{first}: ")[0]
    prefix = {line: f"{file}:{line}: " for line in _lines(loops)}
    texts = {line: source.place(line).removeprefix(begin)[1:-1] for line, begin in prefix.items()}
    texts[first] = source.place(first).removeprefix(f"{file}:{first}: ")[1:-1]
    signature = Signature(dict(function.signature.arguments), tuple(function.signature.symbols))
    return SavedFunction(
        function.name, file, first, texts, signature, tuple(sorted(function.shape.fixed)),
        tuple(sorted(function.shape.written)), function.rounds, tuple(loops),
    )  # fmt: skip


def _lines(loops: Sequence[SavedLoops]) -> set[int]:
    """The lines that messages may name."""
    found: set[int] = set()
    for each in loops:
        bounds = each.bounds
        found |= {line for line, _ in each.notes} | {*bounds.starts.values(), *bounds.lines.values()}
        for listed in (bounds.accesses, bounds.rows, bounds.needs, bounds.terms):
            found |= {item.line for item in listed}
        found |= {chain.line for chain in bounds.chains.values()}
    return found
