"""How simulated things are built: C++ by g++, Verilog by Verilator, both kept by content."""
