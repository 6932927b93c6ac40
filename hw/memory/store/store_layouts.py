"""Payloads inside the store unit."""

from amaranth.hdl import Value
from amaranth.lib import data
from amaranth.utils import exact_log2

from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.isa.launch import STORE_GRANULE


def line_bits(config: Config) -> int:
    """Bits of a line's number, which is its address over ``bus_bytes``."""
    return config.address_bits - exact_log2(config.bus_bytes)


def piece_layout(config: Config) -> data.StructLayout:
    """A beat to store: its first ``steps`` go to ``line`` from step ``offset`` on, and on into the next."""
    return data.StructLayout(
        {
            "data": 8 * config.bus_bytes,
            "line": line_bits(config),
            "offset": range(config.line_steps),
            "steps": range(config.line_steps + 1),
        }
    )


def line_layout(config: Config) -> data.StructLayout:
    """A line to write; ``mask`` has a bit for each step that is to be written."""
    return data.StructLayout({"data": 8 * config.bus_bytes, "mask": config.line_steps, "line": line_bits(config)})


def burst_layout(config: Config) -> data.StructLayout:
    """A burst of ``beats`` lines from ``line`` on; ``outside``: they must not be written."""
    return data.StructLayout({"line": line_bits(config), "beats": range(MAX_BURST + 1), "outside": 1})


def window_layout(config: Config) -> data.StructLayout:
    """The memory that a launch may write, as ``StoreWindow`` says."""
    bits = config.place_bits - exact_log2(STORE_GRANULE)
    return data.StructLayout({"first": bits, "last": bits})


def is_outside(line: Value, window: data.View, config: Config) -> Value:
    """Whether a line's number (of memory, its class above it) is outside of the window."""
    piece = line[exact_log2(STORE_GRANULE // config.bus_bytes) :][: len(window.first)]
    return (piece < window.first) | (piece > window.last)
