"""What tensors of a module are called in messages: by the path that ``state_dict`` has for them, whoever traced it."""

import re

from torch import fx

from daedal.compiler.frontends.torch.trace.keywords import INNER

_NAME = "daedal_name"
"""Where a node has it."""

_STEP = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")
"""A step of the way that Dynamo goes to a tensor of a module."""


def take_names(graph: fx.Graph) -> None:
    """Note what inputs are called that are tensors of modules, as far as Dynamo says where it has them from."""
    for node in graph.find_nodes(op="placeholder"):
        source = getattr(node.meta.get("grapharg"), "source", None)
        path = ".".join(_STEP.findall(str(getattr(source, "name", ""))))
        if path:
            node.meta[_NAME] = path


def name_of(value: object) -> str | None:
    """The name of a tensor of a module; None for any other value of a graph."""
    if not isinstance(value, fx.Node):
        return None
    name = str(value.target).removeprefix(f"{INNER}.") if value.op == "get_attr" else value.meta.get(_NAME)
    return None if name is None else str(name)


def label_of(name: str, table: object) -> str:
    """What an operation by this name, on this table, is called in messages."""
    path = name_of(table)
    return name if path is None else f"{name} of {path}"


def label_of_node(node: fx.Node) -> str:
    """What a node is called in messages, of which the first tensor of the module that it takes is its table."""
    paths = (source for source in node.all_input_nodes if name_of(source) is not None)
    return label_of(node.name, next(paths, None))
