"""What is explored: a module with inputs, of a workload or of a user's file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn
from torch.export import ExportedProgram

from daedal.bench.workloads.fleets import FLEETS
from daedal.bench.workloads.models import OWN, WORKLOADS
from daedal.compiler.frontends.torch.trace.meta_tensors import with_memory
from daedal.compiler.planning import demands_of
from daedal.driver.device import MEMORY_BYTES
from daedal.hw.config.core import Config
from daedal.system.demand import Demand
from daedal.system.system import System

NAMES = (*WORKLOADS, *(name for name in FLEETS if name not in WORKLOADS))
"""Workloads that can be explored: those of bags and gathers."""

DISTRIBUTIONS = ("uniform", "zipf", "fixed", "stride", "sorted")


@dataclass(frozen=True)
class Subject:
    """A module and inputs for it.

    Attributes
    ----------
    name
        What the page calls it.
    made
        Module and inputs for a configuration: strides of indices depend on it.
    """

    name: str
    made: Callable[[Config], tuple[nn.Module | ExportedProgram, tuple[Any, ...]]]


@dataclass(frozen=True)
class Work:
    """What a call asks for.

    Attributes
    ----------
    demands
        Of each table.
    operations
        Look-ups of each operation, by its name.
    table_bytes
        Of all of the module's parameters.
    """

    demands: Sequence[Demand]
    operations: Mapping[str, int]
    table_bytes: int

    @property
    def tables(self) -> int:
        """How many there are."""
        return len(self.demands)

    @property
    def lookups(self) -> int:
        """Those in all tables."""
        return sum(self.operations.values())

    @property
    def elements(self) -> int:
        """Elements of the rows that are looked up."""
        return sum(each.lookups * each.table.dim for each in self.demands)


def of_module(name: str, module: nn.Module | ExportedProgram, inputs: tuple[Any, ...]) -> Subject:
    """A user's module; what is on device ``meta`` has shapes only, of which no figure needs more."""
    placed = with_memory(module) if isinstance(module, nn.Module) else module
    return Subject(name, lambda config: (placed, inputs))


def of_workload(name: str, distribution: str | None, seed: int, data: Path | None) -> Subject:
    """A workload of the bench, or a fleet. ValueError for a distribution that is not for it."""
    if name in WORKLOADS:
        workload = WORKLOADS[name]
        if workload.source and distribution is not None:
            raise ValueError(
                f"distribution must be left out for {name}, whose indices are its own, not {distribution!r}"
            )
        chosen = OWN if workload.source else distribution or "uniform"

        def make(config: Config) -> tuple[nn.Module, tuple[Any, ...]]:
            made = workload.make(chosen, seed, config, data)
            return made.module, made.inputs

        return Subject(f"{name}, {chosen} indices", make)
    chosen = distribution or "uniform"
    return Subject(f"{name}, {chosen} indices", lambda config: FLEETS[name].make(chosen, seed, config))


def bytes_of(module: nn.Module | ExportedProgram) -> int:
    """Bytes of a module's parameters."""
    held = module.parameters()
    return sum(each.numel() * each.element_size() for each in held)


def room_for(module: nn.Module | ExportedProgram, config: Config) -> int:
    """Bytes of a memory that has all tables of a module and room for its calls, as far as there are addresses."""
    return min(max(MEMORY_BYTES, bytes_of(module) * 3 // 2), 1 << config.place_bits)


def work_of(module: nn.Module | ExportedProgram, inputs: tuple[Any, ...], config: Config) -> Work:
    """What a call of it asks for. UnsupportedOperation if the inputs are not the module's."""
    with System.open("emulator", config, tiles=1) as system:
        found = demands_of(module, system, inputs)
    return Work(found.all, found.lookups, bytes_of(module))
