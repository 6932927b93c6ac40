"""The link from a host to a board: LiteX's bridges, and frames on top of them that survive a bad line."""
