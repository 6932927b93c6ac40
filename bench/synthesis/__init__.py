"""Size and clock of every unit on an ECP5: Yosys and nextpnr, with their results kept by content."""
