"""Configurations far too small to be allowed, so that proofs end."""

import copy
from typing import Any

from daedal.hw.config.core import Config


def narrow(base: str = "minimum", **changes: Any) -> Config:
    """The preset ``base`` with ``changes`` that nobody checks."""
    config = copy.copy(Config.preset(base))
    for name, value in changes.items():
        object.__setattr__(config, name, value)
    return config


TINY = narrow(
    registers=3, lanes=1, ports=2, vector_beats=4, reorder_beats=8, vector_registers=2, register_beats=2,
    store_beats=4, steps=2, callbacks=2, instructions=2, lengths=1, banks=2, page_bytes=64, lookahead_lines=4,
    lookahead_burst=2, random_outstanding=2, alus=(1, 0), random_loads=(0, 1), sequential_loads=(1, 1),
    serial=(False, False), address_bits=14,
)  # fmt: skip
"""The smallest machine that has one of everything."""

GROUPED = narrow(**{**vars(TINY), "row_groups": 2, "port_requests": 3})
"""The same with ports that put requests to one DRAM row together."""

IN_TURN = narrow(
    registers=3, contexts=(2, 0), lookahead_lines=4, lookahead_burst=2, alus=(0, 0), random_loads=(0, 0),
    sequential_loads=(1, 0), register_beats=4, serial=(False, False),
)  # fmt: skip
"""The same with a level that interleaves its activations."""
