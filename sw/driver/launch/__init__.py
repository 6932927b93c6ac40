"""Launches: the block that the host writes, the queue of them, and the records that the machine writes."""
