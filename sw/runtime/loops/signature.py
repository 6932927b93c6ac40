"""The arguments of loops, and the sizes that the arrays of a call agree on."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daedal.errors import UnsupportedOperation
from daedal.hw.isa.elements import BFLOAT16, BINARY16, BINARY32, LANE, UNSIGNED8
from daedal.runtime.loops.integers import Given, Integer, evaluate, parts

INTEGER_ROWS = {"u8": "uint8", "i8": "int8"}
"""Types of integers that rows are read of, as f32, and not stored as -> how NumPy and PyTorch call them."""

FLOATS = {
    **{element.mlir: element for element in (BINARY32, BINARY16, BFLOAT16)},
    **dict.fromkeys(INTEGER_ROWS, UNSIGNED8),
}
"""Type -> the element of rows that it is. Of i8 the device has each number and 128 (``SIGNED_OFFSET``) together."""

SIGNED_OFFSET = 128
"""What is added to i8 on the way to the device, and taken off again there."""

NARROW = frozenset(name for name, element in FLOATS.items() if element is not LANE)
"""Those that lanes do not compute with: they are read as f32, and floats rounded to nearest even where they are stored.
"""

DTYPES = {
    **{name: element.dtype for name, element in FLOATS.items()}, **INTEGER_ROWS, "i32": "int32", "i64": "int64",
}  # fmt: skip
"""Type -> how NumPy and PyTorch call it."""


def ir_name(name: str) -> str:
    """A name of Python's, or of an array that is made of two, as one that text of the IR keeps: without a number behind
    a last underscore, in ASCII.
    """
    plain = re.compile(r"[A-Za-z0-9_]")
    ascii_name = "".join(letter if plain.match(letter) else f"u.{ord(letter):x}." for letter in name)
    return re.sub(r"_(\d+)$", r".\1", ascii_name)


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


@dataclass(frozen=True)
class Signature:
    """The arguments of a kernel.

    Attributes
    ----------
    arguments
        By name, in their order.
    symbols
        The names of sizes.
    """

    arguments: Mapping[str, Argument]
    symbols: Collection[str]

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
