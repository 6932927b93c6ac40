"""The suites of the workloads: models of embedding layers against the limit of the memory."""

from collections.abc import Iterable, Iterator

from daedal.bench.host import Host
from daedal.bench.report.table import COLUMNS
from daedal.bench.run import Setting, measure
from daedal.bench.suite import Order, Row, Say, Suite
from daedal.bench.workloads import models, structured_models
from daedal.bench.workloads.measured import Model
from daedal.bench.workloads.models import OWN

TITLE = "Workloads"

WORKLOADS: dict[str, Model] = {**models.WORKLOADS, **structured_models.WORKLOADS}
"""Name -> workload, in the order in which they are measured."""


def distributions_of(workload: Model, order: Order) -> tuple[str, ...]:
    """Those to measure this workload with."""
    return workload.distributions if workload.source else order.distributions or workload.distributions


def measured(suite: str, workloads: Iterable[Model], order: Order, say: Say, *, host: bool) -> Iterator[Row]:
    """A row for each workload, distribution, machine and placement, with PyTorch on this ``host`` beside it."""
    beside = Host() if host else None
    for workload in workloads:
        for distribution in distributions_of(workload, order):
            for config, memory in order.machines:
                for placement in range(order.placements):
                    stream = "" if distribution == OWN else f", {distribution}"
                    say(f"{suite}: {workload.what}{stream} on {memory}, placement {placement}")
                    setting = Setting(config, memory, placement, order.seed, order.data, order.quick, order.target)
                    done = measure(workload, distribution, setting)
                    if beside is not None:
                        done.row |= beside.measure(done.made).as_row()
                    yield {"suite": suite, **done.row, "row_bytes": workload.row_bytes}


def _suite(name: str, workload: Model) -> Suite:
    return Suite(name, TITLE, COLUMNS, lambda order, say: measured(name, [workload], order, say, host=order.host))


SUITES = tuple(_suite(name, workload) for name, workload in WORKLOADS.items())
"""One for each workload."""
