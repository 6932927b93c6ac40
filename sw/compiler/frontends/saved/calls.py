"""Operations of a saved graph, as an executable asks for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from daedal.compiler.frontends.saved.requests import request_of
from daedal.errors import DaedalError, UnsupportedOperation
from daedal.runtime.request import Request
from daedal.runtime.saved.contents import SavedCall
from daedal.runtime.saved.operations import SavedBags


@dataclass(frozen=True, eq=False)
class TablePlace:
    """Where a call's table comes from, as an executable asks of a node of a graph."""

    op: str
    target: str


@dataclass(frozen=True, eq=False)
class SavedGraphCall:
    """An operation of a saved graph, ``batch.members.PoolingCall``."""

    saved: SavedCall
    table: TablePlace
    is_direct: bool = False

    @property
    def name(self) -> str:
        """Its name in the graph."""
        return self.saved.name

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.saved.label

    @property
    def table_name(self) -> str:
        """What the device calls its table."""
        return self.saved.table_name

    @property
    def is_pooling(self) -> bool:
        """Whether it is a pooling of bags."""
        return isinstance(self.saved.operation, SavedBags)

    @property
    def include_last_offset(self) -> bool:
        """Whether offsets have the end of the last bag."""
        operation = self.saved.operation
        return isinstance(operation, SavedBags) and operation.include_last_offset

    def in_torch(self, *sources: Any) -> NoReturn:
        """There is no PyTorch."""
        raise UnsupportedOperation(f"{self.label}: PyTorch must do this for such inputs: run the module that was saved")

    def labelled_request(self, sources: Sequence[Any]) -> Request:
        """The request; what is wrong with the sources is said of the operation as it is called in messages."""
        try:
            return request_of(self.name, self.saved.operation, sources)
        except DaedalError as error:
            told = str(error)
            if told.startswith(f"{self.name}: "):
                error.args = (self.label + told.removeprefix(self.name),)
            raise


@dataclass(frozen=True, eq=False)
class GraphJoin:
    """A concatenation of results of a launch, ``batch.members.Join``."""

    node: Any
    dim: int
    parts: tuple[Any, ...]
    private: frozenset[Any]
