"""A SavedModel's folder: one of its signatures as a graph, and the variables that it reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daedal.base.files import read_whole
from daedal.base.messages import shown
from daedal.compiler.frontends.tensorflow.graph import RESOURCE, TYPES, Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.inlining import CALLS, Inliner
from daedal.compiler.frontends.tensorflow.saved.bundle import Array, Bundle
from daedal.compiler.frontends.tensorflow.saved.messages import message_class, read_message
from daedal.errors import FileError, UnsupportedOperation

MOST_BYTES = 1 << 31
"""Bytes of the largest graph: protobuf has no longer message."""

_VALUE = "VARIABLE_VALUE"


@dataclass(frozen=True)
class Variable:
    """A variable that a graph reads: what the checkpoint calls it, and its shape."""

    key: str
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.key.removesuffix(f"/.ATTRIBUTES/{_VALUE}")


@dataclass(frozen=True)
class SavedGraph:
    """What a signature computes.

    Attributes
    ----------
    graph
        Its nodes; inputs and handles of variables are ``Placeholder``.
    inputs, outputs
        By the names of the signature: the node that an input is and what ``TensorInfo`` says of it, and the tensors.
    variables
        By the names of their handles.
    functions
        That the graph may still call.
    bundle
        The variables' contents.
    """

    graph: Graph
    inputs: Mapping[str, tuple[Ref, Any]]
    outputs: Mapping[str, Ref]
    variables: Mapping[str, Variable]
    functions: tuple[Any, ...]
    bundle: Bundle

    def content(self, handle: str) -> Array:
        """The content of a variable, as the checkpoint has it."""
        return np.array(self.bundle.array(self.variables[handle].key))


def read_saved_model(folder: Path, signature: str) -> SavedGraph:
    """The graph of a signature; FileError for a folder that is no SavedModel, or is damaged, UnsupportedOperation for a
    signature that it has not, and what is not read here.
    """
    path = folder / "saved_model.pb"
    if not path.is_file():
        kind = "a folder with saved_model.pb in it"
        raise FileError(f"{folder} must be a SavedModel, {kind}, as tf.saved_model.save and model.export write it")
    model = read_message("SavedModel", read_whole(path, str(path), MOST_BYTES), str(path))
    if len(model.meta_graphs) != 1:
        raise FileError(f"{path} must have one graph, not {len(model.meta_graphs)}")
    (meta,) = model.meta_graphs
    known = sorted(name for name in meta.signature_def if not name.startswith("__"))
    if signature not in known:
        there = ", ".join(known) or "none"
        raise UnsupportedOperation(f"signature must be one of {path}, which has {there}, not {shown(signature)}")
    bundle = Bundle(folder / "variables" / "variables")
    try:
        return _graph(meta, meta.signature_def[signature], bundle)
    except (KeyError, IndexError, AssertionError, ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} must have the nodes and functions that it names: {shown(str(error))}") from error


def _graph(meta: Any, signature: Any, bundle: Bundle) -> SavedGraph:
    for name, info in signature.inputs.items():
        if not info.name:
            raise UnsupportedOperation(
                f"{name} must be a dense tensor, not sparse or ragged: save the model again, with TensorFlow 2, which "
                "has the parts of such as inputs"
            )
    outputs = {
        f"{name}_{number}" if number else name: Ref.read(part)
        for name, info in signature.outputs.items()
        for number, part in enumerate(_parts(name, info))
    }
    nodes = {each.name: each for each in meta.graph_def.node}
    handles = dict(_handles(meta, nodes, {ref.node for ref in outputs.values()}))
    functions = tuple(meta.graph_def.library.function)
    made = Inliner(functions, _output_names(meta)).graph(
        _behind(nodes, {ref.node for ref in outputs.values()}), list(outputs.values()), ()
    )
    keys = _keys(meta.object_graph_def, bundle)
    variables = {}
    for name, number in handles.items():
        if number not in keys:
            raise FileError(f"{bundle.prefix}.index must have the content of variable {name}, and has not")
        variables[name] = Variable(keys[number], bundle.shape(keys[number]))
        _check_form(nodes[name], keys[number], bundle)
    given = {Ref.read(info.name).node for info in signature.inputs.values()}
    flat = [_as_input(node) if node.name in variables else node for node in made.nodes.values()]
    for node in flat:
        if node.op == "Placeholder" and node.name not in given and node.name not in variables:
            raise UnsupportedOperation(f"{node.name} must be an input of the signature, and is not: save another one")
    inputs = {name: (Ref.read(info.name), info) for name, info in sorted(signature.inputs.items())}
    ordered = _in_order(flat)
    graph = Graph(ordered, made.outputs)
    present = dict(zip(outputs, made.outputs, strict=True))
    return SavedGraph(graph, inputs, present, variables, functions, bundle)


def _parts(name: str, info: Any) -> list[str]:
    """The tensor that an output is, or the dense ones of which it is made if it is sparse or ragged."""
    if info.name:
        return [info.name]
    sparse = info.coo_sparse
    parts = [sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name]
    parts = parts if any(parts) else [each.name for each in info.composite_tensor.components]
    if not parts or not all(parts):
        raise UnsupportedOperation(f"{name} must be a tensor, dense, sparse or ragged: save the model again")
    return parts


def _check_form(handle: Any, key: str, bundle: Bundle) -> None:
    """Raise FileError for a variable whose content has another type or shape than the graph says."""
    shape, wanted = bundle.shape(key), handle.attr["shape"].shape
    sizes = [dim.size for dim in wanted.dim]
    fits = len(sizes) == len(shape) and all(size in (-1, own) for size, own in zip(sizes, shape, strict=True))
    types = [TYPES.get(each, f"TensorFlow's type {each}") for each in (handle.attr["dtype"].type, bundle.type(key))]
    if types[0] != types[1] or not (fits or wanted.unknown_rank):
        raise FileError(
            f"{bundle.prefix}.index must have {key} of {types[0]}{sizes}, as the graph says, not of "
            f"{types[1]}{list(shape)}: they belong to different models"
        )


def _as_input(node: Node) -> Node:
    message = message_class("NodeDef")(name=node.name, op="Placeholder")
    message.attr["dtype"].type = RESOURCE
    return Node(node.name, "Placeholder", (), (), message)


def _behind(nodes: Mapping[str, Any], names: set[str]) -> list[Any]:
    """The nodes of which these come, as the graph has them."""
    found, open_ = set[str](), list(names)
    while open_:
        name = open_.pop()
        if name not in found:
            found.add(name)
            open_ += [text.removeprefix("^").split(":")[0] for text in nodes[name].input]
    return [message for name, message in nodes.items() if name in found]


def _in_order(nodes: list[Node]) -> list[Node]:
    """Each behind what it takes."""
    by_name, done, found = {node.name: node for node in nodes}, set[str](), list[Node]()
    for root in nodes:
        open_, ahead = [root.name], set[str]()
        while open_:
            name = open_[-1]
            node = by_name[name]
            missing = [each for each in (*(ref.node for ref in node.inputs), *node.controls) if each not in done]
            if name in done or not missing:
                open_.pop()
                if name not in done:
                    done.add(name)
                    found.append(node)
                continue
            if name in ahead:
                raise ValueError(f"{name} takes what it gives")
            ahead.add(name)
            open_ += missing
    return found


def _handles(meta: Any, nodes: Mapping[str, Any], wanted: set[str]) -> Iterator[tuple[str, int]]:
    """The handles of variables that calls of the signature's function are given, and the numbers of these."""
    functions = meta.object_graph_def.concrete_functions
    for name in wanted:
        call = nodes[name]
        while call.op == "Identity":
            call = nodes[call.input[0].split(":")[0]]
        if call.op not in CALLS:
            continue
        bound = functions[call.attr["f"].func.name].bound_inputs
        given = [text for text in call.input if not text.startswith("^")]
        for text, number in zip(given[len(given) - len(bound) :], bound, strict=True):
            if nodes[text.split(":")[0]].op == "VarHandleOp":
                yield text.split(":")[0], number


def _keys(objects: Any, bundle: Bundle) -> Mapping[int, str]:
    """What the checkpoint calls variables, by their numbers among the model's objects: both have the same names for
    the same ways to them.
    """
    found, seen, open_ = dict[int, str](), set[tuple[int, int]](), [(0, 0)]
    kept = bundle.objects.nodes
    while open_:
        pair = open_.pop()
        if pair in seen:
            continue
        seen.add(pair)
        ours, theirs = objects.nodes[pair[0]], kept[pair[1]]
        for each in theirs.attributes:
            if each.name == _VALUE:
                found[pair[0]] = each.checkpoint_key
        ways = {each.local_name: each.node_id for each in theirs.children}
        open_ += [(each.node_id, ways[each.local_name]) for each in ours.children if each.local_name in ways]
    return found


def _output_names(meta: Any) -> Any:
    """What operators' results are called: the model says it of those that it has."""
    known = {each.name: each for each in meta.meta_info_def.stripped_op_list.op}

    def names(op: str) -> list[str] | None:
        if op not in known:
            return None
        outputs = known[op].output_arg
        if len(outputs) != 1 and any(each.number_attr or each.type_list_attr for each in outputs):
            return None
        return [each.name for each in outputs]

    return names
