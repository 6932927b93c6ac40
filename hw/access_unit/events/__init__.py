"""The event unit: from bundles to tokens, scalars, store addresses and row fetches."""
