"""The units that are synthesised, and what kinds of memory and multipliers each must map to."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from amaranth.lib import wiring

from daedal.hw.config.core import Config

BLOCK_RAM, DISTRIBUTED_RAM, DSP = "block RAM", "distributed RAM", "DSP"
"""Kinds of hard resource."""


@dataclass(frozen=True)
class Unit:
    """Something that is synthesised.

    Attributes
    ----------
    name
        What tables call it.
    source
        ``module:Class`` below ``daedal.hw``.
    make
        Makes a component from the class and a configuration.
    kinds
        What its memories and multipliers must map to; another outcome is marked.
    large
        Routing it takes so long that it is only done on request; without, its clock is estimated from the placement.
    exists
        Whether a configuration has it.
    """

    name: str
    source: str
    make: Callable[[Any, Config], wiring.Component]
    kinds: frozenset[str] = frozenset()
    large: bool = False
    exists: Callable[[Config], bool] = lambda _: True

    def build(self, config: Config) -> wiring.Component:
        """The component, with errors of its own if it cannot be made."""
        module, _, name = self.source.partition(":")
        return self.make(getattr(import_module(f"daedal.hw.{module}"), name), config)


def _of_config(cls: Any, config: Config) -> wiring.Component:
    component: wiring.Component = cls(config)
    return component


def _alone(cls: Any, config: Config) -> wiring.Component:
    component: wiring.Component = cls()
    return component


def _queue(layout: str, depth: str, *, sized: bool = True) -> Callable[[Any, Config], wiring.Component]:
    """Makes a Fifo for ``hw.interfaces.<layout>()`` with as many entries as ``depth`` of Config says.

    A layout that is not ``sized`` is the same for every configuration, and takes none.
    """

    def make(cls: Any, config: Config) -> wiring.Component:
        interfaces = import_module("daedal.hw.interfaces")
        shape = getattr(interfaces, layout)(*([config] if sized else []))
        component: wiring.Component = cls(shape, depth=getattr(config, depth))
        return component

    return make


def _level(number: int) -> Unit:
    def make(cls: Any, config: Config) -> wiring.Component:
        component: wiring.Component = cls(config, number)
        return component

    return Unit(f"level {number}", "access_unit.access_unit:make_level", make, large=True,
                exists=lambda config: number < config.levels)  # fmt: skip


def _unit(name: str, source: str, *kinds: str, make: Callable[[Any, Config], wiring.Component] = _of_config,
          large: bool = False, exists: Callable[[Config], bool] = lambda _: True) -> Unit:  # fmt: skip
    return Unit(name, source, make, frozenset(kinds), large, exists)


def _has_preadder(config: Config) -> bool:
    return bool(config.preadder)


def _has_affine(config: Config) -> bool:
    return config.has_affine


def _head_products(cls: Any, config: Config) -> wiring.Component:
    component: wiring.Component = cls(biases=bool(config.preadder))
    return component


def _is_quantised(config: Config) -> bool:
    return bool(config.quantised)


UNITS = (
    _unit("lane", "execute_unit.fpu.lane:Lane", DSP, make=_alone),
    _unit("pre-adder", "execute_unit.fpu.pre_adder:PreAdder", make=_alone, exists=_has_preadder),
    _unit("head products", "execute_unit.vector.head_products:HeadProducts", DSP, make=_head_products,
          exists=_has_affine),
    _unit("row unpacker", "execute_unit.vector.unpack_rows:UnpackRows", exists=_is_quantised),
    _unit("reciprocal", "execute_unit.fpu.float_reciprocal:Reciprocal", make=_alone),
    _unit("token queue", "queues.fifo:Fifo", make=_queue("token_layout", "token_depth", sized=False)),
    _unit("scalar queue", "queues.fifo:Fifo", make=_queue("scalar_layout", "scalar_depth")),
    _unit("store address queue", "queues.fifo:Fifo",
          make=_queue("store_address_layout", "store_address_depth")),
    _unit("vector queues", "queues.reorder_buffer:ReorderBuffers", BLOCK_RAM),
    _unit("read fabric", "memory.fabric.fabric:ReadFabric", large=True),
    _unit("store unit", "memory.store.store_unit:StoreUnit"),
    *map(_level, range(4)),
    _unit("event unit", "access_unit.events.event_unit:EventUnit", large=True),
    _unit("access unit", "access_unit.access_unit:AccessUnit", BLOCK_RAM, DSP, large=True),
    _unit("iterative unit", "execute_unit.fpu.iterative_unit:IterativeUnit", make=_alone),
    _unit("execute unit", "execute_unit.execute_unit:ExecuteUnit", BLOCK_RAM, DSP, large=True),
    _unit("loader", "control.loader:Loader"),
    _unit("control port", "control.csr:ControlRegisters"),
    _unit("controller", "control.launch_controller:LaunchController", make=_alone),
    _unit("statistics", "control.records.statistics:Statistics", BLOCK_RAM),
    _unit("record writer", "control.records.record_writer:RecordWriter"),
    _unit("core", "tile:Tile", BLOCK_RAM, DSP, large=True),
)  # fmt: skip
"""All units, small ones first."""
