"""Device memory: what is free, where buffers and rows lie, and what is written at which address."""
