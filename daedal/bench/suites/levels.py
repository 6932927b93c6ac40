"""The suite ``levels``: cycles of layers at each optimisation level of the compiler."""

from collections.abc import Iterator
from dataclasses import replace

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, machines_of, one_thread
from daedal.bench.workloads.layers import Workload
from daedal.bench.workloads.runner import same_bits
from daedal.compiler.opt_levels import OPT_LEVELS

STEPS = {"vectorise": 5.1, "bufferise": 1.7, "align": 1.3}
"""What each step to the next level is, and how many times faster it is in the publication on decoupled embedding
operations.
"""

WORKLOADS = tuple(
    replace(workload, rows=4096, bags=16)
    for workload in (
        Workload("sum, D = 64", "sum", 64),
        Workload("weighted sum, D = 64", "sum", 64, weighted=True),
        Workload("sum, D = 16", "sum", 16),
        Workload("gather, D = 64", "gather", 64),
    )
)


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each workload."""
    with one_thread():
        for machine in machines_of(order):
            for workload in WORKLOADS:
                say(f"levels: {workload.name} on {machine.memory}")
                yield measure(workload.smaller() if machine.quick else workload, machine)


def measure(workload: Workload, machine: Machine) -> Row:
    """One workload at each level, each on a machine of its own; all results must have the bits of PyTorch's."""
    module, inputs = workload.make(machine.seed)
    wanted = module(*inputs)
    row: Row = {
        "workload": workload.name, **machine.facts(), "dim": workload.dim, "bags": workload.bags,
        "pooling": workload.pooling, "bit_exact": True,
    }  # fmt: skip
    compiled = []
    for opt in OPT_LEVELS:
        with daedal.Device.open(machine.target, config=machine.config, memory=machine.memory) as device:
            exe = daedal.compile(module, inputs, device=device, opt=opt)
            row["bit_exact"] &= same_bits(exe(*inputs), wanted)
            row[f"o{opt}"] = exe.stats.cycles or None
            compiled += [kernel.opt for kernel in exe.kernels.values()]
    verdict = "" if row["bit_exact"] else NOT_EQUAL
    return {**row, "verdict": verdict, "compiled_at": compiled, **steps([row[f"o{opt}"] for opt in OPT_LEVELS])}


def steps(cycles: list[int | None]) -> Row:
    """How many times faster each level is than the one before; None where there is no clock."""
    pairs = zip(STEPS, cycles, cycles[1:], strict=False)
    return {name: before / after if before and after else None for name, before, after in pairs}


SUITE = Suite(
    name="levels",
    title="Cycles of a layer at each optimisation level, and how many times faster each is (in brackets: published)",
    columns=(
        column("workload", "workload"), *(column(f"O{opt}", f"o{opt}", ",d") for opt in OPT_LEVELS),
        *(column(f"{name} ({published})", name, ".2f") for name, published in STEPS.items()),
        column("equal", "bit_exact"),
    ),
    run=run,
)  # fmt: skip
