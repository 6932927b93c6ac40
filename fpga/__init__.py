"""The core on FPGA boards: boards, the system around the core, the open tools, patches of LiteDRAM."""
