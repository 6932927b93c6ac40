"""A small loop level that does one thing at a time."""
