"""The access unit: walks index structures and sends tokens, scalars, store addresses and row fetches."""
