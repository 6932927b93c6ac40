"""A graph of TensorFlow's as it is read here: of its protobuf messages, without TensorFlow."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RESOURCE = 20
"""TensorFlow's number of the type of a variable's handle."""

TYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64", 9: "int64", 10: "bool",
    14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
"""TensorFlow's numbers of types whose elements are bytes of their own -> their names."""

_FIELDS = {1: "float_val", 3: "int_val", 9: "int64_val", 10: "bool_val"}
"""Where messages have elements of these types, if not as bytes."""

_REFERENCE = re.compile(r"(?P<node>[^:]+)(?::(?P<number>\d+))?")


class Ref(NamedTuple):
    """A tensor of a graph: a result of a node, by its number."""

    node: str
    number: int = 0

    @classmethod
    def read(cls, text: str) -> "Ref":
        """What a graph writes as ``node`` or ``node:1``."""
        found = _REFERENCE.fullmatch(text)
        assert found is not None, text
        return cls(found["node"], int(found["number"] or 0))

    def __str__(self) -> str:
        return f"{self.node}:{self.number}"


@dataclass(frozen=True, eq=False)
class Node:
    """An operator of a graph: what it takes, which nodes it runs after, and its message (a ``NodeDef``)."""

    name: str
    op: str
    inputs: tuple[Ref, ...]
    controls: tuple[str, ...]
    message: Any

    @classmethod
    def read(cls, message: Any) -> "Node":
        """The node that a message of a graph is."""
        inputs = tuple(Ref.read(each) for each in message.input if not each.startswith("^"))
        controls = tuple(each[1:] for each in message.input if each.startswith("^"))
        return cls(message.name, message.op, inputs, controls, message)

    def attribute(self, name: str) -> Any:
        """An attribute's message; an empty one if there is none."""
        return self.message.attr[name]

    def type_of(self, attribute: str) -> str:
        """The name of the type that an attribute is; empty for strings, handles and the like."""
        return TYPES.get(self.attribute(attribute).type, "")

    @property
    def is_handle(self) -> bool:
        """Whether it is an input that is a handle of a variable, or of another resource."""
        return self.op == "Placeholder" and self.attribute("dtype").type == RESOURCE


class Graph:
    """Nodes by name, each behind what it takes.

    ``outputs`` are the tensors that are wanted, ``effects`` nodes that have to run besides.
    """

    def __init__(self, nodes: Iterable[Node], outputs: Iterable[Ref], effects: Iterable[str] = ()) -> None:
        self.nodes = {node.name: node for node in nodes}
        for node in [node for node in self.nodes.values() if node.op == "NoOp"]:
            kept = tuple(name for name in node.controls if not self._only_reads(name))
            self.nodes[node.name] = replace(node, controls=kept)
        self.outputs = tuple(outputs)
        self.effects = tuple(name for name in effects if not self._only_reads(name))

    def _only_reads(self, name: str) -> bool:
        """Whether a node need not run for itself: a function says so of all that has to do with variables."""
        return self.nodes[name].op in ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")

    @cached_property
    def needed(self) -> frozenset[str]:
        """The nodes of which outputs and effects come."""
        found, open_ = set[str](), [*(ref.node for ref in self.outputs), *self.effects]
        while open_:
            name = open_.pop()
            if name not in found:
                found.add(name)
                node = self.nodes[name]
                open_ += [ref.node for ref in node.inputs] + list(node.controls)
        return frozenset(found)

    def source(self, ref: Ref) -> Ref:
        """Where a tensor comes from, before it was handed on as it is."""
        while self.nodes[ref.node].op in ("Identity", "StopGradient", "Snapshot"):
            ref = self.nodes[ref.node].inputs[0]
        return ref

    def handed_on(self, ref: Ref) -> frozenset[str]:
        """The nodes on the way from :meth:`source` to here."""
        found = set[str]()
        while self.nodes[ref.node].op in ("Identity", "StopGradient", "Snapshot"):
            found.add(ref.node)
            ref = self.nodes[ref.node].inputs[0]
        return frozenset(found)

    def node_of(self, ref: Ref) -> Node:
        """The node that :meth:`source` names."""
        return self.nodes[self.source(ref).node]

    def constant(self, ref: Ref) -> NDArray[Any] | None:
        """The content of a tensor that is a constant of few elements, as axes and sizes are; None for any other."""
        node = self.node_of(ref)
        if node.op != "Const":
            return None
        tensor = node.attribute("value").tensor
        dtype = TYPES.get(tensor.dtype, "")
        shape = [dim.size for dim in tensor.tensor_shape.dim]
        if dtype not in ("float32", "int32", "int64", "bool"):
            return None
        if tensor.tensor_content:
            return np.frombuffer(tensor.tensor_content, dtype).reshape(shape)
        given = np.array(getattr(tensor, _FIELDS[tensor.dtype]), dtype)
        size = int(np.prod(shape))
        if given.size != size:  # what follows repeats the last one
            given = np.concatenate([given, np.repeat(given[-1:] if given.size else np.zeros(1, dtype), size)])[:size]
        return given.reshape(shape)
