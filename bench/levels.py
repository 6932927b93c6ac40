"""The suite ``levels``: cycles of layers at each optimisation level of the compiler."""

from dataclasses import replace

import torch

import daedal
from bench.options import Options
from bench.report import Row, Suite, column, say
from bench.workloads import Workload
from daedal.compiler.kernel import OPT_LEVELS
from daedal.workloads.runner import same_bits

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


def run(options: Options) -> list[Row]:
    """A row for each workload."""
    torch.set_num_threads(1)
    rows = []
    for workload in WORKLOADS:
        say(f"levels: {workload.name}")
        rows.append(measure(workload.smaller() if options.quick else workload, options))
    return rows


def measure(workload: Workload, options: Options) -> Row:
    """One workload at each level, each on a machine of its own; all results must have the bits of PyTorch's."""
    module, inputs = workload.make(options.seed)
    wanted = module(*inputs)
    row: Row = {
        "workload": workload.name, "target": options.target, "config": options.config.name, "memory": options.memory,
        "dim": workload.dim, "bags": workload.bags, "pooling": workload.pooling, "bit_exact": True,
    }  # fmt: skip
    compiled = []
    for opt in OPT_LEVELS:
        with daedal.Device.open(options.target, config=options.config, memory=options.memory) as device:
            exe = daedal.compile(module, inputs, device=device, opt=opt)
            row["bit_exact"] &= same_bits(exe(*inputs), wanted)
            row[f"o{opt}"] = exe.stats.cycles or None
            compiled += [kernel.opt for kernel in exe.kernels.values()]
    return {**row, "compiled_at": compiled, **steps([row[f"o{opt}"] for opt in OPT_LEVELS])}


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
    is_broken=lambda row: not row["bit_exact"],
    about=lambda options: f"{options.target}, {options.config.name}, {options.memory}",
)  # fmt: skip
