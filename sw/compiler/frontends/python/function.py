"""``daedal.kernel``: a function of loops that can be compiled."""

import functools
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import CellType, FunctionType
from typing import Any

from daedal.base.float_mode import default_float_mode
from daedal.compiler.frontends.python.loop_unswitching import swap_conditions
from daedal.compiler.frontends.python.names import Dim
from daedal.compiler.frontends.python.promises import take_promises
from daedal.compiler.frontends.python.rounds import rounds_of
from daedal.compiler.frontends.python.scf.frame import Plan
from daedal.compiler.frontends.python.scf.writer import Written, write
from daedal.compiler.frontends.python.shape import Analysis, Shape
from daedal.compiler.frontends.python.signature import read_signature
from daedal.compiler.frontends.python.source import Source
from daedal.compiler.opt_levels import BEST
from daedal.compiler.pipeline import compile_scf
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.runtime.kernel import Kernel
from daedal.runtime.loops.signature import ir_name

_WITH_THE_HOST = {
    True: (Plan(guards_loads=False), Plan(chains=True), Plan(guards_loads=False, chains=True)),
    False: (Plan(ends_on_host=True), Plan(shares=True), Plan(shares=True, chains=True)),
}
"""Whether nothing is checked -> what is tried if a kernel does not fit: the host does more and more."""

_NAMED = re.compile(r"(?:loop|buffer|local row|value) %[\w.]*\w")


class KernelFunction:
    """A function of loops over arrays. Made by ``daedal.kernel``; ``daedal.compile`` makes it run on a device.

    Called itself, it is the plain Python function.

    Attributes
    ----------
    signature
        Its arguments.
    shape
        Its loops along rows, and which sizes these fix when it is compiled.
    rounds
        How rounds of its outermost loops can be shared out to tiles.
    distinct
        Arrays of which the kernel promises that they have no number twice; the host looks before each launch.
    """

    def __init__(self, function: FunctionType) -> None:
        self.source = Source(function)
        self._function = function
        self.signature = read_signature(self.source)
        try:
            tree, self.distinct = take_promises(self.source, self.signature, self.source.tree)
            self._tree = swap_conditions(tree)
            self.shape: Shape = Analysis(self.source, self.signature, self._tree).run()
            self.rounds = rounds_of(self.source, self.signature, self._tree, self.shape.written, self.shape.fixed)
        except RecursionError as error:
            raise self.source.too_deep() from error
        functools.update_wrapper(self, function)
        self.__qualname__: str = function.__qualname__

    @property
    def name(self) -> str:
        """The function's name."""
        return self.source.tree.name

    def __call__(self, *arguments: Any) -> None:
        """Run the function in Python, where the names of sizes are the numbers that the arrays have."""
        given = self.signature.by_name(arguments, self.name)
        wanted = self.signature.arguments.items()
        shapes = {name: tuple(given[name].shape) for name, argument in wanted if argument.shape is not None}
        whole = {name: given[name] for name, argument in wanted if argument.shape is None and not argument.is_float}
        sizes = self.signature.sizes(shapes, whole)
        names = {name: sizes[dim.text] for name, dim in self.source.names.items()
                 if isinstance(dim, Dim) and dim.text in sizes}  # fmt: skip
        names = {**sizes, **names}
        old = self._function
        free = zip(old.__code__.co_freevars, old.__closure__ or (), strict=True)
        cells = tuple(CellType(names[name]) if name in names else cell for name, cell in free)
        FunctionType(old.__code__, {**old.__globals__, **names}, old.__name__, None, cells)(*arguments)

    def __reduce__(self) -> str:
        """Copies and pickles refer to it by its name, as they do to functions."""
        return str(self.__qualname__)

    @default_float_mode()
    def write(self, fixed: Mapping[str, int], config: Config, bounds: str = "fatal") -> Written:
        """The loops as ``scf`` for these sizes of rows. Raises UnsupportedOperation with the line of the source."""
        bits = config.address_bits
        return write(self.source, self.signature, self._tree, self.shape, dict(fixed), bounds, bits, Plan())

    @default_float_mode()
    def build(
        self, fixed: Mapping[str, int], config: Config, bounds: str = "fatal", opt: int = BEST
    ) -> tuple[Written, Kernel]:
        """The loops and the kernel for these sizes of rows and this machine; raises as ``write`` does.

        With bounds ``none`` a condition becomes a loop if that keeps single numbers from being loaded where it does not
        hold; if there is no room for such loops, they are loaded. With others the machine checks, in loops of their own
        if need be; if there is no room for these, the host checks some. If there are too few slots for loads at loaded
        numbers, the host does these loads.
        """
        try:
            return self._build(fixed, config, bounds, opt, Plan())
        except UnsupportedOperation:
            for plan in _WITH_THE_HOST[bounds == "none"]:
                with suppress(UnsupportedOperation):
                    return self._build(fixed, config, bounds, opt, plan)
            raise

    def _build(
        self, fixed: Mapping[str, int], config: Config, bounds: str, opt: int, plan: Plan
    ) -> tuple[Written, Kernel]:
        try:
            written = write(
                self.source,
                self.signature,
                self._tree,
                self.shape,
                dict(fixed),
                bounds,
                config.address_bits,
                plan,
            )
        except RecursionError as error:
            raise self.source.too_deep() from error
        try:
            return written, self._with_promises(compile_scf(written.text, config, opt))
        except UnsupportedOperation as error:
            raise self._at_line(error, written) from error

    def _with_promises(self, kernel: Kernel) -> Kernel:
        promised = {ir_name(name) for name in self.distinct}
        if not promised:
            return kernel
        buffers = [replace(spec, is_distinct=spec.is_distinct or spec.name in promised) for spec in kernel.buffers]
        return replace(kernel, buffers=tuple(buffers))

    def _at_line(self, error: UnsupportedOperation, written: Written) -> UnsupportedOperation:
        """The error of a pass with the line that it is about, as far as it names something of the source, and with the
        source's names.
        """
        lines = [line for name in _NAMED.findall(str(error)) for line in written.lines.get(name, ())]
        line = lines[0] if lines else self.source.tree.lineno
        return self.source.refusal(line, _NAMED.sub(lambda found: written.names.get(found[0], found[0]), str(error)))


def kernel(function: Callable[..., None]) -> KernelFunction:
    """Make a function of plain loops over arrays one that ``daedal.compile`` takes; see docs/kernels.md.

    Raises UnsupportedOperation, with the line, for a signature that is none.
    """
    if not isinstance(function, FunctionType):
        raise UnsupportedOperation(f"daedal.kernel must be put on a function made with def, not on {function!r}")
    return KernelFunction(function)
