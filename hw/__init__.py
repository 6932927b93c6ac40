"""Daedal's hardware: the core in Amaranth, its configuration and its encodings."""
