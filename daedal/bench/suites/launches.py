"""The suite ``launches``: what a stream of launches costs, and how long memory stands still from one to the next."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, at_most, machines_of, one_thread
from daedal.bench.workloads.layers import Workload
from daedal.bench.workloads.runner import same_bits
from daedal.driver.targets.registers import Registers
from daedal.hw.isa.registers import Register

LAUNCHES = 4
"""Launches queued at once; the figures are of those behind the first."""

WINDOW = 600
"""Cycles before a completion record is in memory: in these the launch's last rows come and the next one's first."""

STEP = 16
"""Cycles between two looks."""

GOAL = 100
"""Most cycles in which no line is to move from one launch to the next."""

WORKLOADS = [
    Workload("sum", "sum", 64),
    Workload("sum", "sum", 16),
    Workload("sum", "sum", 4),
    Workload("small sum", "sum", 64, bags=4, pooling=4),
    Workload("empty sum", "sum", 64, bags=1, pooling=1),
]


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each workload, each on a machine of its own, which has a clock whatever the target of the order."""
    with one_thread():
        for machine in machines_of(order):
            for workload in WORKLOADS:
                say(f"launches: {workload.name}, D = {workload.dim}, on {machine.memory}")
                small = replace(workload, rows=1024, bags=min(workload.bags, 32))
                yield measure(small if machine.quick else workload, machine)


def measure(workload: Workload, machine: Machine) -> Row:
    """Queue launches of one workload, compare their results with PyTorch's, and put the figures together."""
    module, inputs = workload.make(machine.seed)
    with daedal.Device.open("verilator", config=machine.config, memory=machine.memory) as device:
        exe = daedal.compile(module, inputs, device=device)
        exe(*inputs)  # program and table are resident
        alone = exe.stats.cycles
        futures = [exe.submit(*inputs) for _ in range(LAUNCHES)]
        idle = watch(device.target, LAUNCHES)
        equal = all(same_bits(future.result(), module(*inputs)) for future in futures)
    cycles = [future.stats.cycles for future in futures[1:]]
    large = workload.bags * workload.pooling * workload.dim > WINDOW * 16 and not machine.quick
    row: Row = {
        "workload": workload.name, "config": machine.config.name, "memory": machine.memory, "dim": workload.dim,
        "bags": workload.bags, "pooling": workload.pooling, "launches": LAUNCHES, "bit_exact": equal,
        "cycles_alone": alone, "cycles_each": sum(cycles) / len(cycles), "idle": max(idle),
        "goal": GOAL if large and workload.dim == 64 else None,
    }  # fmt: skip
    return {**row, "verdict": "" if equal else NOT_EQUAL, "outcome": at_most(row["idle"], row["goal"])}


def watch(target: Any, launches: int) -> list[int]:
    """Let launches end; for each but the last one, the cycles before its end in which no line moved."""
    first = ended = target.csr_read(Register.COMPLETED.value)
    Registers(target).set_control()  # without an interrupt the clock does not stop
    target.traffic()
    steps: list[tuple[int, int]] = []
    idle = []
    while ended != first + launches:
        start = target.cycles
        target.step(STEP)
        completed = target.csr_read(Register.COMPLETED.value)
        steps.append((target.cycles - start, target.traffic().idle))
        if completed != ended:
            ended = completed
            idle.append(_last(steps))
    return idle[: launches - 1]


def _last(steps: list[tuple[int, int]]) -> int:
    """Idle cycles in the last WINDOW cycles."""
    cycles = idle = 0
    for taken, still in reversed(steps):
        if cycles >= WINDOW:
            break
        cycles, idle = cycles + taken, idle + still
    return idle


SUITE = Suite(
    name="launches",
    title=f"{LAUNCHES} launches queued at once; cycles in which no line moves from one to the next",
    columns=(
        column("workload", "workload"), column("D", "dim"), column("bags", "bags"), column("pooling", "pooling"),
        column("cycles alone", "cycles_alone", ",d"), column("cycles each", "cycles_each", ",.0f"),
        column("idle", "idle", ",d"), column("equal", "bit_exact"), column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
