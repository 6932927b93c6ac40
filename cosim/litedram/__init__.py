"""LiteDRAM behind the core: controller, crossbar and SDRAM model as Verilog, and what is known of them."""

from daedal.cosim.litedram.memories import MEMORIES, Dram
from daedal.cosim.litedram.model import INTERFACE, build_dram
from daedal.cosim.litedram.text import Description, Generated, generate

__all__ = ["INTERFACE", "MEMORIES", "Description", "Dram", "Generated", "build_dram", "generate"]
