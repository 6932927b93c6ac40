"""What is explored: a module with inputs, of a workload or of a user's file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn
from torch.export import ExportedProgram

from daedal.bench.workloads.fleets import FLEETS
from daedal.bench.workloads.models import OWN, WORKLOADS
from daedal.compiler.planning import plan
from daedal.driver.device import MEMORY_BYTES
from daedal.hw.config.core import Config
from daedal.system.plan import Plan
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
    """What a call asks for: tables, look-ups over all of them, and elements of the rows that are looked up."""

    tables: int
    lookups: int
    elements: int
    table_bytes: int


def of_module(name: str, module: nn.Module | ExportedProgram, inputs: tuple[Any, ...]) -> Subject:
    """A user's module."""
    return Subject(name, lambda config: (module, inputs))


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


def room_for(module: nn.Module | ExportedProgram) -> int:
    """Bytes of a memory that has all tables of a module and room for its calls."""
    return max(MEMORY_BYTES, bytes_of(module) * 3 // 2)


def work_of(module: nn.Module | ExportedProgram, inputs: tuple[Any, ...], config: Config) -> Work:
    """What a call of it asks for. UnsupportedOperation if the inputs are not the module's, OutOfDeviceMemory if there
    is not so much memory.
    """
    with System.open("emulator", config, tiles=1, memory_bytes=room_for(module)) as system:
        found: Plan = plan(module, system, sample=inputs)
    tables = found.tables
    return Work(
        len(tables),
        sum(each.lookups for each in tables),
        sum(each.lookups * each.dim for each in tables),
        bytes_of(module),
    )
