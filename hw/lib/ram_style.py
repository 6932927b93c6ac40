"""How memories are marked that are meant for block RAM, or for the RAM in logic cells."""

BLOCK_RAM: dict[str, str | int] = {"ram_style": "block", "no_rw_check": 1}
"""Attributes of a memory in block RAM whose word nobody reads in the cycle in which it is written.

Block RAM gives anything then. Without the second attribute, synthesis adds registers and multiplexers that give the
word from before: 170 LUTs for a memory of 128 bits.
"""

DISTRIBUTED_RAM: dict[str, str | int] = {"ram_style": "distributed"}
"""Attributes of a small memory in logic cells, which is read in the cycle in which its address is given."""
