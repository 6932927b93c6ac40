"""The store unit: rows from the execute unit and the store stream to memory."""
