"""LiteDRAM behind the core: controller, crossbar and SDRAM model as Verilog, and what is known of them."""
