"""Zeros and ones that a tensor makes only to be of its type."""

from typing import Any

import torch
from torch import fx

from daedal.compiler.frontends.torch.examples import example_of, is_floats, is_rows
from daedal.compiler.frontends.torch.operators import calls

_aten = torch.ops.aten


def plain_fills(graph: fx.Graph) -> None:
    """Make ``x.new_zeros(sizes)`` and ``x.new_ones(sizes)`` a matter of the sizes alone, so that ``x`` need not be made
    for it.
    """
    for make, overload in ((torch.zeros, _aten.new_zeros.default), (torch.ones, _aten.new_ones.default)):
        for node in [node for node in graph.nodes if calls(node, overload)]:
            is_plain = not {"dtype", "layout", "device", "requires_grad"} & node.kwargs.keys()
            if is_plain and (is_floats(node) or is_rows(node)):
                with graph.inserting_before(node):
                    filled = graph.call_function(
                        make, (_sizes(node),), {"dtype": example_of(node).dtype, "device": "cpu"}
                    )
                filled.meta = dict(node.meta)
                node.replace_all_uses_with(filled)
                graph.erase_node(node)


def _sizes(node: fx.Node) -> Any:
    """The shape that ``new_zeros`` or ``new_ones`` is given: numbers, a list of them, or a ``torch.Size``."""
    first = node.args[1] if len(node.args) > 1 else node.kwargs["size"]
    is_shape = isinstance(first, list | tuple) or isinstance(example_of(first), list | tuple)
    return first if is_shape else node.args[1:]
