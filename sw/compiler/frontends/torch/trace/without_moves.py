"""A graph of Dynamo's without what does nothing: moves to the CPU of what is there, attributes that are not used."""

import builtins

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.examples import example_of


def drop_moves(module: fx.GraphModule) -> None:
    """Take out of a graph, in place, ``x.to("cpu")`` of tensors that are there, which gives ``x`` itself, and tensors'
    attributes of which nothing is made. Keras has both around each operation: a table behind such a move would be taken
    for one that PyTorch computes, and no launch goes past an attribute that is read.
    """
    dropped = False
    for node in list(module.graph.nodes):
        if _is_move(node):
            node.replace_all_uses_with(node.args[0])
        elif not _is_unused_attribute(node):
            continue
        module.graph.erase_node(node)
        dropped = True
    if dropped:
        module.recompile()


def _is_move(node: fx.Node) -> bool:
    if node.op != "call_method" or node.target != "to" or len(node.args) != 2 or node.kwargs:
        return False
    source, where = node.args
    example = example_of(source)
    is_cpu = isinstance(where, str | torch.device) and str(where) == "cpu"
    return isinstance(source, fx.Node) and isinstance(example, Tensor) and example.device.type == "cpu" and is_cpu


def _is_unused_attribute(node: fx.Node) -> bool:
    if node.op != "call_function" or node.target is not builtins.getattr or node.users:
        return False
    return isinstance(example_of(node.args[0]), Tensor) and node.args[1] in ("is_meta", "device", "dtype", "shape")
