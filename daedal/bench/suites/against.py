"""The suite ``against``: what PyTorch and FBGEMM take on this computer, and what is predicted for memories of Daedal.

Each row says what its figures are. ``measured``: by the wall clock, beside a triad on the same computer in the same
run. ``predicted``: by the target ``model``, for one channel and for all that a part of the memory has, each channel a
tile's. ``published``: what others say of their processors (``published_processors.py``).
"""

from collections.abc import Iterator, Sequence

import torch

from daedal.bench.explore.energy import BITS, DRAM
from daedal.bench.explore.machines import fitting
from daedal.bench.explore.subject import Work, work_of
from daedal.bench.explore.sweep import Point, start_of
from daedal.bench.host import Host
from daedal.bench.report.document import processor
from daedal.bench.report.table import column
from daedal.bench.suite import Order, Row, Say, Suite
from daedal.bench.suites.published_processors import PUBLISHED
from daedal.bench.workloads.made import Made
from daedal.bench.workloads.models import WORKLOADS
from daedal.hw.config.core import Config

NAME = "against"

MEMORIES = ("litedram-ddr3-x16", "ddr4-3200-x64", "ddr5-3200-x32", "lpddr4x", "hbm2e")
"""Memories of the predictions."""

MEASURED, PREDICTED, PUBLISHED_KIND = "measured", "predicted", "published"

HOST_ENERGY = "energy: the memory alone, as of DDR; the processor takes more"
"""What is to be said of a processor's energy."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """Rows of each workload, measured and predicted, and at the end those of others."""
    host = Host() if order.host else None
    starts: dict[str, float] = {}
    for name in names_of(order.only):
        workload = WORKLOADS[name].smaller() if order.quick else WORKLOADS[name]
        distribution = workload.distributions[0] if workload.source else (order.distributions or ("uniform",))[0]
        made = workload.make(distribution, order.seed, Config.preset("ddr3"), order.data)
        for row in [*_measured(made, host, say), *_predicted(made, starts, order, say)]:
            yield {"workload": name, "indices": distribution, "seed": order.seed, **row}
    yield from ({"workload": "", "kind": PUBLISHED_KIND, **each.as_row()} for each in PUBLISHED)


def names_of(only: Sequence[str]) -> Sequence[str]:
    """These workloads, or all that are bags and gathers; ValueError for one that there is not."""
    for name in only:
        if name not in WORKLOADS:
            raise ValueError(f"a workload must be one of {', '.join(WORKLOADS)}, not {name!r}")
    return only or tuple(WORKLOADS)


def _measured(made: Made, host: Host | None, say: Say) -> Iterator[Row]:
    """PyTorch, and FBGEMM if it is installed, with the share of the triad that their useful bytes are."""
    if host is None:
        return
    say(f"{NAME}: {made.workload.name}, PyTorch on this computer")
    found = host.measure(made)
    bit, per = DRAM["ddr4"], made.useful_bytes / made.lookups
    for engine, rate in (("PyTorch", found.torch), ("FBGEMM", found.fbgemm)):
        if rate is not None:
            yield {
                "engine": engine, "on": processor(), "kind": MEASURED, "lookups_per_s": rate * 1e9 / per,
                "bytes_per_s": rate * 1e9, "share": rate / found.triad, "of": f"triad, {found.triad:.1f} GB/s",
                "nj_least": per * BITS * bit.least / 1000, "nj_most": per * BITS * bit.most / 1000,
                "note": HOST_ENERGY, "threads": found.threads,
            }  # fmt: skip


def _predicted(made: Made, starts: dict[str, float], order: Order, say: Say) -> Iterator[Row]:
    """One channel of each memory, and all of a part."""
    for memory in MEMORIES[:1] if order.quick else MEMORIES:
        config, known = fitting(memory, ())[0]
        with torch.no_grad():
            work: Work = work_of(made.module, made.inputs, config)
            if memory not in starts:
                starts[memory] = start_of(config, memory)
            for channels in dict.fromkeys((1, known.channels)):
                say(f"{NAME}: {made.workload.name}, {memory}, {channels} channels")
                row = Point(config, memory, known, channels, starts[memory]).row(made.module, made.inputs, work)
                wanted = ("lookups_per_s", "bytes_per_s", "share", "nj_least", "nj_most", "note", "cycles", "checked")
                what = f"{memory}, {channels} channel{'s' if channels > 1 else ''}"
                yield {
                    "engine": f"Daedal, {config.name}", "on": what, "kind": PREDICTED, "of": "the pins, refresh off",
                    "config": config.name, "memory": memory, "tiles": channels,
                    **{each: row.get(each) for each in wanted},
                }  # fmt: skip


SUITE = Suite(
    name=NAME,
    title="Against CPUs and GPUs: measured here, predicted, and published by others",
    columns=(
        column("workload", "workload"), column("engine", "engine"), column("on", "on"), column("figures are", "kind"),
        column("look-ups/s", "lookups_per_s", ".3g"), column("bytes/s", "bytes_per_s", ".3g"),
        column("share", "share", ".3f"), column("of", "of"), column("nJ a look-up, least", "nj_least", ".1f"),
        column("most", "nj_most", ".1f"), column("note", "note"),
    ),
    run=run,
)  # fmt: skip
