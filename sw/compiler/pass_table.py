"""Which passes lead to which level, and what each of them does at which optimisation level."""

from collections.abc import Callable, Mapping

from xdsl.passes import ModulePass

from daedal.compiler.context import load_pass
from daedal.compiler.opt_levels import BEST
from daedal.driver.memory.layout import longest_whole
from daedal.hw.config.core import MAX_BURST, Config

LEVELS: Mapping[str, tuple[str, ...]] = {
    "scf": ("lower-emb",),
    "slc": (
        "functions-from-calls",
        "promote-scalars",
        "promote-rows",
        "remove-empty-loops",
        "loop-distribution",
        "join-sibling-loops",
        "clamp-counts",
        "loop-invariant-code-motion",
        "convert-scf-to-slc",
    ),
    "slcv": ("convert-slc-to-slcv", "expand-functions", "elide-initialization", "tile-columns", "keep-invariant-rows"),
    "dlc": ("convert-slcv-to-dlc",),
    "mach": ("allocate-stream-registers",),
}
"""Level -> the passes that lead to it from the level before; to ``mach`` from what the back end generates."""

Option = bool | int | Callable[[Config], int]
"""What an option is, on any machine or as a function of it."""


def lockstep_bytes(config: Config) -> int:
    """Bytes of the rows that a callback may pop two at a time.

    A vector queue holds them all, and the budget that the queues share has a burst left for the rows after them.
    """
    return (min(config.vector_beats, config.reorder_beats) - MAX_BURST) * config.bus_bytes


def lanes(config: Config) -> int:
    """Elements that the machine works on at once."""
    return config.lanes


def row_elements(config: Config) -> int:
    """Elements of the longest row that a vector register holds."""
    return config.vl_max


def vector_registers(config: Config) -> int:
    """Rows that may be kept in registers."""
    return config.vector_registers


BY_OPT: Mapping[str, tuple[Option, Option, Option, Option]] = {
    "convert-slc-to-slcv{reuse}": (False, False, False, True),
    "elide-initialization{needed}": (True, True, True, False),
    "tile-columns{elements}": (1, lanes, row_elements, row_elements),
    "tile-columns{copies}": (True, True, True, False),
    "keep-invariant-rows{registers}": (0, 0, 0, vector_registers),
    "convert-slcv-to-dlc{lockstep}": (0, 0, 0, lockstep_bytes),
    "convert-slcv-to-dlc{streams}": (False, False, False, True),
    "software-pipelining": (False, False, False, True),
    "interleave-bags": (False, False, False, True),
}
"""``pass{option}`` -> its value at O0, O1, O2 and O3; of what the back end does, whether it does it.

All other passes are the same at every level.
"""


def value_at(option: str, opt: int, config: Config) -> bool | int:
    """The value of a row of ``BY_OPT`` at an optimisation level, for a machine."""
    value = BY_OPT[option][opt]
    return value(config) if callable(value) else value


def make_pass(name: str, config: Config, bounds: str, opt: int = BEST) -> ModulePass:
    """The pass called ``name`` with the options that it has for ``config``, ``bounds`` and ``opt``."""
    machine: Mapping[str, Mapping[str, object]] = {
        "lower-emb": {"bounds": bounds},
        "tile-columns": {"levels": config.levels, "line": config.bus_bytes, "whole": longest_whole(config)},
        "convert-slcv-to-dlc": {"steps": config.steps, "affine": config.has_affine},
        "allocate-stream-registers": {"registers": config.registers, "configuration": config.name},
    }
    options = dict(machine.get(name, {}))
    for row in BY_OPT:
        of, _, option = row.rstrip("}").partition("{")
        if of == name:
            options[option] = value_at(row, opt, config)
    return load_pass(name)(**options)
