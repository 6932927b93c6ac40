"""What an executable of loops asks of the function that they were written in."""

import ast
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.runtime.kernel import Kernel
from daedal.runtime.loops.bounds import Bounds
from daedal.runtime.loops.rounds import Rounds
from daedal.runtime.loops.signature import Signature


class Source(Protocol):
    """Where a function stands."""

    @property
    def tree(self) -> ast.FunctionDef:
        """Its syntax tree."""
        ...

    def place(self, line: int, /) -> str:
        """How a message says where ``line`` is."""
        ...

    def refusal(self, node: ast.AST | int, why: str, /) -> UnsupportedOperation:
        """The error for what stands at ``node`` (or in a line)."""
        ...


class Shape(Protocol):
    """What is known of its loops."""

    @property
    def fixed(self) -> Collection[str]:
        """Sizes that a program is compiled for."""
        ...

    @property
    def written(self) -> set[str]:
        """Arrays that are written."""
        ...


class Written(Protocol):
    """Its loops for some sizes of rows."""

    @property
    def bounds(self) -> Bounds:
        """Who checks which index."""
        ...

    @property
    def notes(self) -> Iterable[tuple[int, str]]:
        """Lines, and what became of the loops in them."""
        ...


class LoopFunction(Protocol):
    """A function of loops over arrays that can be compiled."""

    @property
    def name(self) -> str:
        """The function's name."""
        ...

    @property
    def source(self) -> Source:
        """Where it stands."""
        ...

    @property
    def signature(self) -> Signature:
        """Its arguments."""
        ...

    @property
    def shape(self) -> Shape:
        """What is known of its loops."""
        ...

    @property
    def rounds(self) -> Rounds:
        """How rounds of its outermost loops can be shared out."""
        ...

    def build(self, fixed: Mapping[str, int], config: Config, bounds: str, opt: int, /) -> tuple[Written, Kernel]:
        """The loops and the kernel for these sizes of rows and this machine; UnsupportedOperation if there is none."""
        ...
