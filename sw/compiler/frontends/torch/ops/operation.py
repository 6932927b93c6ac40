"""What an operation of PyTorch's is to the front end; ``frontends/torch/registry.py`` has all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, fx

from daedal.compiler.frontends.torch.operators import Overload
from daedal.runtime.request import Request

Target = Overload | Callable[..., object]
"""An operator, or a function written in Python."""


@dataclass(frozen=True)
class Line:
    """What the documentation says of an operation: PyTorch's names, what the device does, and when; in Markdown."""

    pytorch: str
    device: str
    condition: str


@dataclass(frozen=True)
class Operation(ABC):
    """An operation of a graph that the device does. A class for each of PyTorch's; an instance for each node.

    ``sources``, and what ``table`` and other fields say it works on, are nodes of the graph or constants.
    """

    targets: ClassVar[tuple[Target, ...]]
    """What graphs call for it: operators by namespace and overload, and functions written in Python. The functions,
    methods and packets of an operator need not be named.
    """
    line: ClassVar[Line]
    remark: ClassVar[str] = ""
    """What ``explain()`` says of it on the device."""
    is_embedding: ClassVar[bool] = False
    """It is an embedding by name: one that stays in PyTorch ends a group of those that run together."""
    is_optional: ClassVar[bool] = True
    """PyTorch does it for inputs that the machine cannot take; otherwise these are an error of ``daedal.compile``."""
    adds_rows: ClassVar[bool] = False
    """It computes with what a gather may have found: without it the gather is the device's own."""
    takes_results: ClassVar[bool] = False
    """It is one with another operation, which is found first."""

    name: str
    table: object

    @classmethod
    @abstractmethod
    def match(cls, node: fx.Node, found: "Mapping[fx.Node, Operation]") -> "Operation | str | None":
        """What a node that calls one of ``targets`` is, or why it stays in PyTorch; None if it is something else.

        ``found`` are the operations that are found so far.
        """

    @property
    @abstractmethod
    def sources(self) -> tuple[object, ...]:
        """What it works on."""

    @abstractmethod
    def request(self, *sources: Any) -> Request:
        """What to ask the device for with these values of its sources; UnsupportedOperation if it cannot take them."""

    @abstractmethod
    def in_torch(self, *sources: Any) -> Tensor:
        """What PyTorch makes of these values of its sources."""

    @property
    def absorbed(self) -> tuple[fx.Node, ...]:
        """Nodes whose work it does too, since nothing else needs what they give."""
        return ()

    @property
    def is_direct(self) -> bool:
        """Whether its sources are the table, indices and, if it takes them, offsets and weights, and the buffers of its
        requests are these as they are, offsets with an end.
        """
        return False

    @property
    def gives_tuple(self) -> bool:
        """Whether its rows are the first of several results, of which the others are not used."""
        return False
