"""Loop levels: pipelined ones, and serial ones that do one thing at a time."""
