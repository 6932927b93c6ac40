"""The suite ``models``: models of other people, and how much of their gathering and pooling runs on the device."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import daedal
from daedal.base.messages import shown
from daedal.bench.published.counting import elements_of
from daedal.bench.published.listing import MODELS
from daedal.bench.published.model import Door, Published
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, machines_of, one_thread
from daedal.bench.workloads.runner import same_bits
from daedal.compiler.frontends.torch.dynamo import CompiledGraph
from daedal.driver.device import Device

NAME = "models"

WANTED = 0.95
"""Share of a model's gathered and pooled elements that is wanted on the device."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each model of the list, and one for each whose package is missing."""
    with one_thread():
        for machine in machines_of(order):
            for model in MODELS:
                say(f"{NAME}: {model.name}")
                yield {"workload": model.name, **machine.facts(), "target": "emulator", "seed": machine.seed} | (
                    measure(model, machine)
                    if model.is_here
                    else {"outcome": f"left out: no package {model.package}; pip install {model.package}"}
                )


class _Run(NamedTuple):
    """A call of a compiled model, and what there is to be said of it."""

    result: Any
    left: int
    launches: int
    fewest: int
    stays: str


def measure(model: Published, machine: Machine) -> Row:
    """Run a model in PyTorch and compiled; a run that fails gives a row too, whose ``verdict`` says of what."""
    torch.manual_seed(machine.seed)
    module, inputs = model.make()
    module.eval()
    try:
        with torch.no_grad(), Device.open("emulator", machine.config) as device:
            wanted, elements = elements_of(lambda: module(*inputs), inputs)
            compiled = _by_dynamo if model.door is Door.DYNAMO else _exported
            found = compiled(module, inputs, device)
    except Exception as error:
        return {"bit_exact": False, "verdict": f"{type(error).__name__}: {shown(str(error))}"}
    equal = _are_equal(found.result, wanted)
    share = 1 - found.left / elements if elements else 0.0
    reached = share >= WANTED and found.launches <= found.fewest
    return {
        "share": share, "elements": elements, "left": found.left, "launches": found.launches, "fewest": found.fewest,
        "bit_exact": equal, "stays": found.stays, "verdict": "" if equal else NOT_EQUAL,
        "outcome": "reached" if reached else f"missed: {model.stays or found.stays}",
    }  # fmt: skip


def _by_dynamo(module: nn.Module, inputs: tuple[Any, ...], device: Device) -> _Run:
    torch._dynamo.reset()
    options: dict[str, Any] = {"device": device}
    call = torch.compile(module, backend="daedal", dynamic=True, options=options)
    call(*inputs)
    graphs = daedal.graphs(device)
    called: list[CompiledGraph] = []
    for graph in graphs:
        graph.on_call = lambda inputs, graph=graph: called.append(graph)
    result, left = elements_of(lambda: call(*inputs), inputs)
    done = [graph.executable for graph in called if graph.executable is not None]
    launches, fewest = sum(each.stats.launches for each in done), sum(each.fewest_launches for each in done)
    return _Run(result, left, launches, fewest, "; ".join(why for each in graphs for why in _reasons(each.explain())))


def _exported(module: nn.Module, inputs: tuple[Any, ...], device: Device) -> _Run:
    exe = daedal.compile(module, inputs, device=device)
    exe(*inputs)
    result, left = elements_of(lambda: exe(*inputs), inputs)
    return _Run(result, left, exe.stats.launches, exe.fewest_launches, "; ".join(_reasons(exe.explain())))


def _reasons(explained: str) -> list[str]:
    """What a summary says of PyTorch's part."""
    return [line for line in explained.splitlines() if line.startswith(("PyTorch", "nothing to offload"))]


def _are_equal(found: Any, wanted: Any) -> bool:
    ours, theirs = ([leaf for leaf in pytree.tree_leaves(each) if isinstance(leaf, Tensor)] for each in (found, wanted))
    return len(ours) == len(theirs) > 0 and all(map(same_bits, ours, theirs))


SUITE = Suite(
    name=NAME,
    title="Models of other people: gathered and pooled elements on the device",
    columns=(
        column("model", "workload"), column("elements", "elements", ",d"), column("on the device", "share", ".3f"),
        column("launches", "launches", "d"), column("fewest", "fewest", "d"), column("equal", "bit_exact"),
        column("outcome", "outcome"),
    ),
    run=run,
)  # fmt: skip
