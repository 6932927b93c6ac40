"""Whether inputs are of the kind that a graph was made for: how many there are, and how they are nested."""

from collections.abc import Sequence
from typing import Any

from torch import fx
from torch.utils import _pytree as pytree

from daedal.errors import UnsupportedOperation


class OtherInputs(UnsupportedOperation):
    """The inputs do not fit the graph; a graph that is traced with them may be another."""


def check_nesting(wanted: Sequence[pytree.TreeSpec], inputs: Sequence[Any]) -> None:
    """Raise OtherInputs, with both kinds in words, unless ``inputs`` are nested as is wanted of each."""
    found = [pytree.tree_structure(value) for value in inputs]
    if found != list(wanted):
        raise OtherInputs(
            f"the inputs must be nested as those that the module was traced with, {_shown(wanted)}, "
            f"not as {_shown(found)}: give inputs of that kind"
        )


def check_number(graph: fx.Graph, inputs: Sequence[Any]) -> None:
    """Raise OtherInputs unless there are as many inputs as a graph takes."""
    places = graph.find_nodes(op="placeholder")
    if any(str(place.target).startswith("*") for place in places):
        return
    least = sum(1 for place in places if not place.args)
    if not least <= len(inputs) <= len(places):
        number = str(least) if least == len(places) else f"{least} to {len(places)}"
        names = ", ".join(str(place.target) for place in places)
        raise OtherInputs(f"the number of inputs ({names}) must be {number}, not {len(inputs)}")


def _shown(specs: Sequence[pytree.TreeSpec]) -> str:
    """The structures with ``*`` for each value."""
    nested = tuple(pytree.tree_unflatten(["*"] * spec.num_leaves, spec) for spec in specs)
    return str(nested).replace("'*'", "*")
