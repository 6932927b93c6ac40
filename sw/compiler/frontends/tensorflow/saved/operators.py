"""Functions by the names of TensorFlow's operators that they compute."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from numpy.typing import NDArray

from daedal.compiler.frontends.tensorflow.graph import Node

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = Sequence[Array]
Operator: TypeAlias = Callable[[Node, Values], Values]
"""Gives a node's results from its inputs."""


class Operators(dict[str, Operator]):
    """What there is, by TensorFlow's name."""

    def of(self, *names: str) -> Callable[[Operator], Operator]:
        """Registers what computes operators of these names."""

        def register(function: Operator) -> Operator:
            self.update(dict.fromkeys(names, function))
            return function

        return register

    def elementwise(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        """Registers functions of the inputs alone, each with one result."""
        for name, function in functions.items():
            self[name] = partial(_applied, function)


def _applied(function: Callable[..., Any], node: Node, given: Values) -> Values:
    return [function(*given)]
