"""The machines of a sweep: which configurations go with a memory, and what is known of their size."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from daedal.base.files import read_json
from daedal.cosim.clock.parameters import Memory, memory_of
from daedal.cosim.dram_times import DRAMS
from daedal.hw.config.core import PRESETS, Config

DEFAULT_MEMORIES = ("litedram-ddr3-x16", "litedram-ddr3-x64", "ddr4-3200-x64", "ddr5-3200-x32", "lpddr4x", "hbm2e")
"""Memories of a sweep if none is named."""

DEFAULT_TILES = (1, 4, 16)

IDEAL_CLOCK = 100_000_000
"""Hz of the core with memory ``ideal``, whose times are in cycles."""

_LANE_BYTES = 4
_HISTORY = Path(__file__).resolve().parents[3] / "bench" / "synthesis" / "history.json"
_CELLS = ("lut", "ff", "bram", "dsp")


def fitting(memory: str, configs: Sequence[Config]) -> list[tuple[Config, Memory]]:
    """The configurations that are for this memory, each with the memory as the model has it.

    Without configurations: the presets that are for it, or the one nearest to it with its lines and pages. ValueError
    if none of those named is for it, and for a memory that there is not.
    """
    found, refused = [], []
    for config in configs or PRESETS.values():
        try:
            found.append((config, memory_of(config, memory)))
        except ValueError as error:
            refused.append(error)
    if found and not configs and memory.partition(":")[0] == "ideal":
        return found[:1]
    if found:
        return found
    if configs or memory not in DRAMS:
        raise refused[0]
    config = adapted(memory)
    return [(config, memory_of(config, memory))]


def adapted(memory: str) -> Config:
    """The preset ``wide`` with the lines and pages of a memory that no preset is for."""
    dram = DRAMS[memory]
    lanes = dram.line_bytes // _LANE_BYTES
    return replace(
        PRESETS["wide"], name=f"wide-{memory}", bus_bytes=dram.line_bytes, lanes=lanes, page_bytes=dram.page_bytes
    )


def clock_of(memory: Memory) -> int:
    """Hz of the core."""
    return memory.clock or IDEAL_CLOCK


def size_of(config: Config, history: Path = _HISTORY) -> dict[str, int | str]:
    """Cells of the whole core as they were landed, with the commit; empty if there are none, as outside of the sources.

    A configuration is known by its preset's name and hash.
    """
    preset = PRESETS.get(config.name)
    if preset is None or preset.hash != config.hash or not history.is_file():
        return {}
    found: dict[str, int | str] = {}
    for landing in read_json(history, "a history of landings")["landings"]:
        core = landing["units"].get("core")
        if landing["config"] == config.name and core:
            found = {name: int(core[name]) for name in _CELLS if name in core} | {"revision": str(landing["revision"])}
    return found
