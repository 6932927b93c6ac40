"""LiteDRAM behind the core: controller, crossbar and SDRAM model as Verilog, and what is known of them."""

from daedal.cosim.litedram.memories import MEMORIES, Dram
from daedal.cosim.litedram.text import Description, Generated, generate

__all__ = ["MEMORIES", "Description", "Dram", "Generated", "generate"]
