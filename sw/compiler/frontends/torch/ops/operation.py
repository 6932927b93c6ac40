"""What an operation of PyTorch's is to the front end; ``frontends/torch/registry.py`` has all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

from torch import Tensor, fx

from daedal.compiler.frontends.torch.names import label_of, name_of
from daedal.compiler.frontends.torch.operators import Overload
from daedal.errors import DaedalError, UnsupportedOperation
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
    can_share: ClassVar[bool] = False
    """It may be one of several in a launch: it asks for a gather, or for bags."""
    is_pooling: ClassVar[bool] = False
    """It has the sources of ``Bags``."""
    takes_results: ClassVar[bool] = False
    """It is one with another operation, which is found first."""

    name: str
    table: object

    @property
    def table_name(self) -> str:
        """See ``names.py``; an input's is that of the graph, and what a node makes is called by its operator: another
        trace of the module may have other names for its nodes.
        """
        target: object = getattr(self.table, "target", self.name)
        if isinstance(target, BuiltinFunctionType | FunctionType):
            target = target.__name__
        return name_of(self.table) or str(target)

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return label_of(self.name, self.table)

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

    def labelled_request(self, *sources: Any) -> Request:
        """The same; what is wrong with them is said of the operation as it is called in messages."""
        try:
            return self.request(*sources)
        except DaedalError as error:
            told = str(error)
            if told.startswith(f"{self.name}: "):
                error.args = (self.label + told.removeprefix(self.name),)
            raise

    @abstractmethod
    def in_torch(self, *sources: Any) -> Tensor:
        """What PyTorch makes of these values of its sources."""

    @property
    def why_inexact(self) -> str:
        """Why the machine cannot add in PyTorch's order, as far as tracing knows; empty if it can, or need not."""
        return ""

    def inexact(self) -> "Operation":
        """The same, where sums may be added in another order than PyTorch's."""
        return self

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
    def include_last_offset(self) -> bool:
        """Whether it is a pooling whose offsets have the end of the last bag too."""
        return False

    @property
    def gives_tuple(self) -> bool:
        """Whether its rows are the first of several results, of which the others are not used."""
        return False


class PytorchsOwn(Operation):
    """What the device never does: it is known so that there is a reason, which ``match`` gives."""

    @property
    def sources(self) -> tuple[object, ...]:
        """Never asked."""
        return ()

    def request(self, *sources: Any) -> Request:
        """Never asked."""
        raise UnsupportedOperation(f"{self.name}: it is PyTorch's")

    def in_torch(self, *sources: Any) -> Tensor:
        """Never asked."""
        raise UnsupportedOperation(f"{self.name}: it is PyTorch's")
