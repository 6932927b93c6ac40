"""What PyTorch runs of a graph with launches, compiled by another Dynamo backend, from launch to launch."""

from collections.abc import Callable, Iterator, Sequence
from operator import getitem
from typing import Any

import torch
from torch import Tensor, fx
from torch._dynamo.exc import TorchDynamoException

from daedal.compiler.frontends.torch.host.code_helpers import named
from daedal.compiler.frontends.torch.host.process_state import Modes, restored

Compiled = Callable[..., Any]


def compile_graph(name: str, graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """What backend ``name`` makes of a whole graph; an error in it leaves PyTorch as it was before."""
    compiled: Compiled
    if name == "eager":
        modes = Modes(graph.graph)
        graph.recompile()
        compiled, guard = graph.forward, modes.restored
    else:
        compiled, guard = torch._dynamo.lookup_backend(name)(graph, list(example_inputs)), restored

    def run(*inputs: Any) -> Any:
        with guard():
            return compiled(*inputs)

    return run


def compile_rest(name: str, graph: fx.GraphModule, is_ours: Callable[[fx.Node], bool]) -> dict[str, str]:
    """Replace each stretch of nodes that are not ours by what backend ``name`` makes of it.

    A stretch stays as it is if something else than tensors and sizes goes in or out, or if the backend raises a
    RuntimeError, as AOT autograd does for some sizes that are expressions: the result has the first node of each of
    these with the error.
    """
    failed: dict[str, str] = {}
    for number, stretch in enumerate(list(_stretches(graph.graph, is_ours))):
        inputs, outputs = _ends(stretch)
        examples = [_example(node) for node in (*inputs, *outputs)]
        if all(isinstance(value, Tensor | torch.SymInt | int) for value in examples):
            try:
                _replace(name, graph, stretch, f"rest_{number}", (inputs, outputs, examples[: len(inputs)]))
            except TorchDynamoException:  # also how a backend asks Dynamo to begin anew
                raise
            except RuntimeError as error:
                failed[stretch[0].name] = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
    return failed


def _example(node: fx.Node) -> Any:
    return node.meta.get("example_value")


def _stretches(graph: fx.Graph, is_ours: Callable[[fx.Node], bool]) -> Iterator[list[fx.Node]]:
    """Longest runs of PyTorch's operations."""
    found: list[fx.Node] = []
    for node in graph.nodes:
        if node.op in ("call_function", "call_method") and not is_ours(node):
            found.append(node)
        elif node.op != "placeholder" and found:
            yield found
            found = []
    if found:
        yield found


def _ends(stretch: Sequence[fx.Node]) -> tuple[list[fx.Node], list[fx.Node]]:
    """What a stretch needs, and what others need of it."""
    inside = set(stretch)
    inputs = dict.fromkeys(source for node in stretch for source in node.all_input_nodes if source not in inside)
    outputs = [node for node in stretch if not inside.issuperset(node.users)]
    return list(inputs), outputs


def _replace(
    name: str, graph: fx.GraphModule, stretch: Sequence[fx.Node], title: str,
    ends: tuple[list[fx.Node], list[fx.Node], list[Any]],
) -> None:  # fmt: skip
    inputs, outputs, examples = ends
    part = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for source in inputs:
        copies[source] = part.placeholder(source.name)
        copies[source].meta = dict(source.meta)
    for node in stretch:
        copies[node] = part.node_copy(node, copies.__getitem__)
    part.output(tuple(copies[node] for node in outputs))
    compiled = compile_graph(name, fx.GraphModule(graph, part), examples)

    def run(*values: Any) -> Any:
        return compiled(*values)

    with graph.graph.inserting_after(stretch[-1]):
        whole = graph.graph.call_function(named(title, run), tuple(inputs))
    with graph.graph.inserting_after(whole):
        for position in reversed(range(len(outputs))):
            value = graph.graph.call_function(getitem, (whole, position))
            value.meta = dict(outputs[position].meta)
            outputs[position].replace_all_uses_with(value, delete_user_cb=lambda user: user not in set(stretch))
    for node in reversed(stretch):
        graph.graph.erase_node(node)
