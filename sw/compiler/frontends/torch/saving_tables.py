"""The tensors of a module that its traces read, and what else a file is made from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from torch import Tensor, fx

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.names import name_of
from daedal.compiler.frontends.torch.partition import HELD, Schedule
from daedal.compiler.frontends.torch.trace.guards import Guards
from daedal.compiler.frontends.torch.trace.keywords import INNER
from daedal.compiler.frontends.torch.trace.structure import Structure
from daedal.driver.tables.table_sources import dtype_name


class TracedParts(NamedTuple):
    """A trace: its graph with launches, how inputs and results are nested, and what is asked of inputs."""

    schedule: Schedule
    structure: Structure
    guards: Guards | None


@dataclass(frozen=True)
class Names:
    """What a module calls its inputs, by position and by name only; ``order``: its tensors in their order."""

    by_position: Sequence[str] = ()
    by_name: Sequence[str] = ()
    order: Sequence[str] = ()


def tables_of(traces: Sequence[TracedParts], names: Names) -> dict[str, Any]:
    """The tensors of the module that these traces read, by name and in its order; of an input of a graph of Dynamo's,
    what is known of it.
    """
    tables: dict[str, Any] = {}
    for trace in traces:
        for node in tensors_of(trace.schedule, names):
            tables.setdefault(path_of(node), example_of(node) if node.op == "placeholder" else held_by(trace, node))
    place = {name: number for number, name in enumerate(names.order)}
    return dict(sorted(tables.items(), key=lambda each: place.get(each[0], len(place))))


def form_in_file(tensor: Any) -> tuple[str, tuple[int, ...]]:
    """Type and shape of a table."""
    return dtype_name(tensor), tuple(int(size) for size in tensor.shape)


def tensors_of(schedule: Schedule, names: Names) -> Iterator[fx.Node]:
    """Nodes of the graph that are tensors of the module by the names of ``state_dict``, and that something needs."""
    for node in schedule.graph.nodes:
        is_given = node.op == "placeholder" and name_of(node) is not None
        if node.users and (is_given or (node.op == "get_attr" and _is_stored(schedule, node, names))):
            yield node


def _is_stored(schedule: Schedule, node: fx.Node, names: Names) -> bool:
    """Whether ``state_dict`` has the tensor; others, as those that a trace lifted, are in the file."""
    if HELD not in node.meta:
        return False
    module: Any = schedule.graph.owning_module
    return path_of(node) in names.order if names.order else str(node.meta[HELD]) in module.state_dict(keep_vars=True)


def path_of(node: fx.Node) -> str:
    """The name of a tensor in ``state_dict``."""
    return str(node.meta[HELD]).removeprefix(f"{INNER}.") if node.op == "get_attr" else str(name_of(node))


def held_by(trace: TracedParts, node: fx.Node) -> Tensor:
    """The tensor that a node of a trace is."""
    found: Tensor = attrgetter(str(node.target))(trace.schedule.graph.owning_module)
    return found
