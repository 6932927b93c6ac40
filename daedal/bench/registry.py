"""All suites of ``daedal bench`` by name, and the machines that they run on."""

from collections.abc import Iterator, Sequence

from daedal.bench.explore.machines import fitting
from daedal.bench.handwritten import comparison
from daedal.bench.limit import dram_of
from daedal.bench.suite import Order, Row, Say, Suite
from daedal.bench.suites import (
    against,
    calibration,
    element_types,
    hot_rows,
    launches,
    levels,
    linearity,
    model_check,
    model_runs,
    overhead,
    plans,
    prediction,
    published,
    shapes,
    single_layers,
    speed,
    sweep,
    systems,
    training,
)
from daedal.bench.workloads import models
from daedal.cosim.clock.parameters import memory_of
from daedal.cosim.litedram.fit import check_fit
from daedal.cosim.litedram.text import generate
from daedal.cosim.memory_spec import MemorySpec
from daedal.hw.config.core import Config

MODEL = "model"
"""The target that predicts."""

DETAILS: tuple[Suite, ...] = (
    single_layers.SUITE, comparison.SUITE, levels.SUITE, launches.SUITE, linearity.SUITE, speed.SUITE, overhead.SUITE,
    systems.SUITE, plans.SUITE, hot_rows.SUITE, against.SUITE,
    training.SUITE,
    published.SUITE,
)  # fmt: skip
"""What is measured in detail, of the machine, the compiler and the host."""

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        *model_runs.SUITES,
        sweep.SUITE,
        shapes.SUITE,
        element_types.SUITE,
        model_check.SUITE,
        calibration.SUITE,
        *DETAILS,
        prediction.SUITE,
    )
}
"""Name -> suite."""

WORKLOADS = model_runs.WORKLOADS
"""Name -> workload, a suite each."""

DEFAULT = tuple(models.WORKLOADS)
"""Suites that are run if none is named: bags and gathers, which take a tenth of the time of the other workloads."""


def run(suite: str, order: Order, say: Say) -> Iterator[Row]:
    """The rows of a suite; ``say`` is told what is being done."""
    return SUITES[suite].run(order, say)


def machines(
    config: Config | None, memories: Sequence[str], target: str = "verilator"
) -> tuple[tuple[Config, str], ...]:
    """Each memory with this configuration, or with the one for its width; ValueError if a machine is not for it, and
    for a memory that the target has not.
    """
    found = tuple((config or preset_for(memory), memory) for memory in memories)
    for machine, memory in found:
        if target == MODEL:
            memory_of(machine, memory)
            continue
        MemorySpec.parse(memory)
        dram = dram_of(memory)
        if dram is not None:
            check_fit(machine, generate(dram, machine.ports).description)
    return found


def preset_for(memory: str) -> Config:
    """The preset whose bus is as wide as the memory's, with as many banks and as long pages; for a memory without RTL
    that no preset is for, ``wide`` with its lines and pages.
    """
    if MemorySpec.parse(memory, predicted=True).times is not None:
        return fitting(memory, ())[0][0]
    dram = dram_of(memory)
    if dram is None or dram.word_bytes == Config.preset("ddr3").bus_bytes:
        return Config.preset("ddr3")
    return Config.preset("wide")
