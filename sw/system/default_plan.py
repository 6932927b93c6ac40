"""Plans for a system from what a sample of a model asks for, with and without a compiler."""

from collections.abc import Iterable
from dataclasses import replace

from daedal.system.demand import Demand, Demands
from daedal.system.plan import Plan
from daedal.system.planner import Planner
from daedal.system.system import System

EXTRA_BYTES = 0.1
"""Bytes for copies of tables, as a share of the tables' bytes, unless told otherwise."""


def system_plan(demands: Iterable[Demand], system: System, extra_bytes: float) -> Plan:
    """The plan for these demands; ``extra_bytes`` as for ``daedal.plan``."""
    memory_bytes = min(tile.target.memory_bytes for tile in system.tiles)
    planner = Planner(list(demands), system.config, system.memory, len(system.tiles), memory_bytes, extra_bytes)
    return planner.plan()


def default_plan(demands: Demands, system: System) -> Plan:
    """The plan where none is given."""
    return system_plan(demands.all, system, EXTRA_BYTES)


def plan_of_whole_rows(demands: Demands, system: System) -> Plan:
    """The same without slices of columns, for which a file of an executable of one device has no programs."""
    return system_plan((replace(each, step=0) for each in demands.all), system, EXTRA_BYTES)
