"""What an operator of TensorFlow's is to the front end; ``registry.py`` has all of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daedal.compiler.frontends.requests.checks import COPIED_TYPES, LONGEST_ROW
from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.driver.tables.table_sources import array_type, dtype_name
from daedal.errors import DaedalError, IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.runtime.request import Array, Request


@dataclass(frozen=True)
class Table:
    """Where rows come from: ``ref`` is a variable's handle, an input, a constant or what TensorFlow computes.

    ``op`` and ``target`` say which of these, and how it is called, as an executable asks of a node of a graph.
    """

    ref: Ref
    op: str
    target: str

    @property
    def is_given(self) -> bool:
        """Whether it is not computed."""
        return self.op != "call_function"


@dataclass(frozen=True)
class Tables:
    """The tables of a graph.

    Attributes
    ----------
    names
        Of variables, by the names of their handles, and of constants that a graph is given as inputs.
    shape_of
        The shapes of tensors, of handles those of their variables, as far as they are known.
    written
        Handles of variables that the graph itself changes.
    """

    names: Mapping[str, str]
    shape_of: Callable[[Ref], tuple[int | None, ...] | None]
    written: frozenset[str] = frozenset()

    def find(self, graph: Graph, ref: Ref) -> Table:
        """The table that a tensor is, or a handle's variable."""
        found = graph.source(ref)
        node = graph.nodes[found.node]
        if node.op == "ReadVariableOp":
            found = graph.source(node.inputs[0])
            node = graph.nodes[found.node]
        if node.op == "Placeholder":
            name = self.names.get(node.name)
            return Table(found, "placeholder" if name is None else "get_attr", name or node.name)
        return Table(found, "get_attr" if node.op == "Const" else "call_function", node.name)

    def rank(self, table: Table) -> int | None:
        """How many dimensions it has, if that is known."""
        shape = self.shape_of(table.ref)
        return None if shape is None else len(shape)

    def are_numbers(self, table: Table) -> bool:
        """Whether it is known that each row is one number, as weights and counts are."""
        shape = self.shape_of(table.ref)
        return shape is not None and (len(shape) < 2 or shape[1:] == (1,))


@dataclass(frozen=True)
class Operation(ABC):
    """An operation of a graph that the device does. A class for each kind; an instance for each node.

    Attributes
    ----------
    name
        The node whose result it gives.
    table
        What it looks up.
    absorbed
        The nodes whose work it does, its own among them.
    """

    targets: ClassVar[tuple[str, ...]]
    """TensorFlow's operators that are one."""

    is_numpy: ClassVar[bool] = False
    """Whether NumPy can do it, where there is nobody else."""

    name: str
    table: Table
    absorbed: frozenset[str]

    @classmethod
    @abstractmethod
    def match(cls, node: Node, graph: Graph, tables: Tables) -> "Operation | str | None":
        """What a node is that is one of ``targets``, or why it stays in TensorFlow; None if it is something else."""

    @property
    @abstractmethod
    def sources(self) -> tuple[Ref | None, ...]:
        """The tensors that it works on besides the table; None for those that it goes without."""

    @abstractmethod
    def request(self, table: Array, *sources: Any) -> Request:
        """What to ask the device for with these arrays; UnsupportedOperation if it cannot take them."""

    def in_numpy(self, table: Array, *sources: Any) -> Array:
        """What NumPy gives for these arrays, if it ``is_numpy``."""
        raise AssertionError(f"NumPy does no {type(self).__name__}")

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return f"{self.name} of {self.table.target}" if self.table.is_given else self.name

    def labelled_request(self, sources: tuple[Any, ...]) -> Request:
        """The request; what is wrong with the sources is said of the operation as it is called in messages."""
        try:
            return self.request(*sources)
        except DaedalError as error:
            told = str(error)
            if told.startswith(f"{self.name}: "):
                error.args = (self.label + told.removeprefix(self.name),)
            raise


@dataclass(frozen=True, eq=False)
class HandedOver:
    """An operation that an executable hands over (``batch.members.PoolingCall``), as all front ends here have it."""

    operation: Operation
    is_direct: ClassVar[bool] = False
    is_pooling: ClassVar[bool] = False
    include_last_offset: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The node whose result it gives."""
        return self.operation.name

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.operation.label

    @property
    def table_name(self) -> str:
        """What the device calls its table."""
        return self.operation.table.target

    @property
    def table(self) -> Table:
        """Where its table comes from."""
        return self.operation.table


def reading(graph: Graph, table: Ref) -> frozenset[str]:
    """The nodes by which a variable is read, and handed on."""
    found, node = graph.handed_on(table), graph.node_of(table)
    return found | ({node.name} | graph.handed_on(node.inputs[0]) if node.op == "ReadVariableOp" else frozenset())


def rows_of(name: str, table: Array, *, computes: bool) -> Array:
    """A table as rows: of binary32 for what computes with them, else of any type that is copied."""
    if table.ndim < 2:
        raise UnsupportedOperation(f"{name}: the table must have at least 2 dimensions, not {table.ndim}")
    if computes and dtype_name(table) != "float32":
        raise UnsupportedOperation(
            f"{name}: the table must be of float32, not {dtype_name(table)}, whose sums TensorFlow rounds as it goes"
        )
    if dtype_name(table) not in COPIED_TYPES:
        raise UnsupportedOperation(f"{name}: the table must be of numbers that are copied, not {dtype_name(table)}")
    width = int(np.prod(table.shape[1:]))
    size = array_type(dtype_name(table)).itemsize
    if not 1 <= width <= LONGEST_ROW // size:
        raise UnsupportedOperation(f"{name}: rows must have 1 to {LONGEST_ROW // size} elements, not {width}")
    return table if table.ndim == 2 else table.reshape(len(table), width)


def integers_of(name: str, what: str, values: Array) -> Array:
    """Integers of 32 or 64 bits, in order."""
    if values.dtype not in (np.int32, np.int64):
        raise UnsupportedOperation(f"{name}: {what} must be of int32 or int64, not {values.dtype}")
    return np.ascontiguousarray(values)


def check_range(name: str, what: str, values: Array, end: int, of: str) -> None:
    """Raise IndexOutOfRange for what does not lie in ``[0, end)``, as TensorFlow does on the CPU."""
    if values.size and not 0 <= values.min() <= values.max() < end:
        place = int(np.flatnonzero((values < 0) | (values >= end))[0])
        raise IndexOutOfRange(
            f"{name}: {what} {values.reshape(-1)[place]} is out of range for {of} of {end} rows: correct it; it is "
            f"number {place}, counted from 0"
        )


def check_sorted(name: str, segments: Array) -> None:
    """Raise InvalidOffsets for segments that do not follow each other, as TensorFlow does."""
    falling = np.flatnonzero(segments[1:] < segments[:-1])
    if falling.size or (segments.size and segments[0] < 0):
        place = int(falling[0]) + 1 if falling.size else 0
        raise InvalidOffsets(
            f"{name}: segment ids must not be negative nor decrease, but number {place}, counted from 0, is "
            f"{segments[place]}: sort them"
        )
