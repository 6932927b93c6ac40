"""What ``daedal bench`` runs: for each suite the runs that it has, one after the other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from daedal.cosim.litedram import generate
from daedal.cosim.litedram.fit import check_fit
from daedal.errors import DaedalError
from daedal.hw.config import Config
from daedal.measure import known, sweep
from daedal.measure.host import Host
from daedal.measure.limit import dram_of
from daedal.measure.run import Row, Setting, measure
from daedal.measure.table import COLUMNS, KNOWN_COLUMNS, Column, column
from daedal.measure.workloads import OWN, WORKLOADS, Workload

SWEEP, ORACLE = "sweep", "oracle"

SUITES = {
    **{name: workload.what for name, workload in WORKLOADS.items()},
    SWEEP: "rows of 4 to 1,024 bytes, gathered and summed",
    ORACLE: "the limit itself on traffic whose best figure is known",
}
"""Name -> what it is."""

DEFAULT = tuple(WORKLOADS)
"""Suites that are run if none is named."""


@dataclass(frozen=True)
class Order:
    """What is to be measured.

    Attributes
    ----------
    machines
        Configuration and memory model of each machine.
    distributions
        Those of the workloads without indices of their own; none for the workload's usual ones.
    placements
        Placements of tables, from 0.
    seed, data, quick
        As in ``Setting``.
    host
        Whether PyTorch is measured beside each row.
    """

    machines: tuple[tuple[Config, str], ...]
    distributions: tuple[str, ...] = ()
    placements: int = 1
    seed: int = 1
    data: Path | None = None
    quick: bool = False
    host: bool = True

    def distributions_of(self, workload: Workload) -> tuple[str, ...]:
        """Those to measure this workload with."""
        return workload.distributions if workload.source else self.distributions or workload.distributions


def run(suite: str, order: Order, say: Callable[[str], None]) -> Iterator[Row]:
    """The rows of a suite; ``say`` is told what is being done."""
    if suite == ORACLE:
        yield from _known(order, say)
        return
    host = Host() if order.host and suite != SWEEP else None
    for workload in sweep.workloads() if suite == SWEEP else [WORKLOADS[suite]]:
        for distribution in order.distributions_of(workload):
            yield from _workload(suite, workload, distribution, order, host, say)


def _workload(
    suite: str, workload: Workload, distribution: str, order: Order, host: Host | None, say: Callable[[str], None]
) -> Iterator[Row]:
    for config, memory in order.machines:
        for placement in range(order.placements):
            stream = "" if distribution == OWN else f", {distribution}"
            say(f"{suite}: {workload.what}{stream} on {memory}, placement {placement}")
            setting = Setting(config, memory, placement, order.seed, order.data, order.quick)
            done = measure(workload, distribution, setting)
            if host is not None:
                done.row |= host.measure(done.made).as_row()
            yield {"suite": suite, **done.row, "row_bytes": workload.row_bytes}


def _known(order: Order, say: Callable[[str], None]) -> Iterator[Row]:
    """Of all DRAMs, or of those that were asked for."""
    asked = [dram for dram in (dram_of(memory) for _, memory in order.machines) if dram is not None]
    for dram in asked or known.DRAMS:
        say(f"{ORACLE}: {dram.name}")
        try:
            lines = known.LINES // 20 if order.quick else known.LINES
            for row in known.rows_of(dram, order.seed, lines=lines):
                yield {"suite": ORACLE, **row}
        except DaedalError as error:
            yield {"suite": ORACLE, "workload": ORACLE, "memory": dram.name, "verdict": str(error)}


def is_broken(row: Row) -> bool:
    """Whether a row is an error rather than a result."""
    return bool(row.get("verdict")) or row.get("bit_exact") is False


def columns_of(suite: str) -> Sequence[Column]:
    """What a table of the suite shows."""
    if suite == ORACLE:
        return KNOWN_COLUMNS
    if suite == SWEEP:
        left = [entry for entry in COLUMNS if entry.key not in ("data", "torch_share", "fbgemm_share")]
        return [left[0], column("row bytes", "row_bytes", "d"), *left[1:]]
    return COLUMNS


def machines(config: Config | None, memories: Sequence[str]) -> tuple[tuple[Config, str], ...]:
    """Each memory with this configuration, or with the preset for its width; ValueError if a machine is not for it."""
    found = tuple((config or preset_for(memory), memory) for memory in memories)
    for machine, memory in found:
        dram = dram_of(memory)
        if dram is not None:
            check_fit(machine, generate(dram, machine.ports).description)
    return found


def preset_for(memory: str) -> Config:
    """The preset whose bus is as wide as the memory's, with as many banks and as long pages."""
    dram = dram_of(memory)
    if dram is None or dram.word_bytes == Config.preset("ddr3").bus_bytes:
        return Config.preset("ddr3")
    return Config.preset("wide")
